// One order: progress, results, errors in words, downloads.
import { html, useEffect, useState } from "../lib/view.js";
import { account, get, remove } from "../lib/api.js";
import { t, bytes, duration, known, moment, relative, sayParts } from "../lib/text.js";
import { go } from "../lib/route.js";
import {
  Badge, Button, Dialog, Failure, FileFault, Head, Icon, Link, Loaded, Notice, confirm, toast, useLoad, useNow, usePoll,
} from "../lib/ui.js";
import { Preview } from "../lib/pictures.js";
import { Viewer } from "../lib/viewer.js";
import { Drop } from "../lib/drop.js";
import { Progress } from "../lib/progress.js";
import { current, isEnded, orderGet, originalOf, resume } from "../lib/upload.js";
import { Result } from "./read.js";
import { Status, Thumbnail, pairName } from "./orders.js";

export function Order({ id }) {
  const state = useLoad((signal) => orderGet(id, signal), [id]);
  const order = state.data, upload = current.value?.orderId === id ? current.value : null;
  usePoll(async () => state.set(await orderGet(id)), Boolean(order) && !isEnded(order.status));
  const uploadState = upload?.state.value;
  useEffect(() => { if (uploadState === "done") { current.value = null; state.reload(); } }, [uploadState]);
  if (state.error?.status === 404) {
    return html`<${Head} title=${t("order.missing")} /><p>${t("order.missingText")}</p>
      <${Link} to="/orders" class="button">${t("order.back")}<//>`;
  }
  return html`<${Loaded} state=${state} title=${t("order.title")}>${(data) => html`
    <${Head} title=${data.orderName} lead=${html`<${Summary} order=${data} />`}>
      ${!upload && html`<${Actions} order=${data} reload=${state.reload} />`}<//>
    <${Body} order=${data} upload=${upload} reload=${state.reload} />
    ${data.metadata && html`<${Own} metadata=${data.metadata} />`}`}<//>`;
}

// The client's own data. Each value leads to the orders that have it.
const Own = ({ metadata }) => html`<article class="card"><h2>${t("order.metadata")}</h2>
  <dl class="pairs">${Object.entries(metadata).map(([key, value]) => html`<dt>${key}</dt>
    <dd>${value && html`<${Link} to="/orders" query=${{ [pairName(key)]: value }}>${value}<//>`}</dd>`)}</dl>
  </article>`;

const Summary = ({ order }) => html`<span class="facts">
  <${Status} order=${order} /> <span>${t(`type.${order.type}`)}</span>
  <span>${t("orders.fileCount", { count: order.fileCount })}</span>
  <span>${t("order.created", { at: moment(order.createdAt) })}</span>
  <span>${t(`channel.${order.channel}`)}</span></span>`;

function Body({ order, upload, reload }) {
  const { status, type } = order, isRead = type === "watermarkExtract";
  if (upload && status === "pending") {
    const onCancelled = () => (upload.isResumed ? reload() : go(isRead ? "/read" : "/new", {}, true));
    return html`<article class="card"><${Progress} upload=${upload} onCancelled=${onCancelled} /></article>`;
  }
  if (status === "pending") return html`<${Pending} order=${order} />`;
  if (isRead && status !== "expired") {
    return html`<${Result} order=${order} original=${order.files.length > 1} />`;
  }
  return html`
    ${status === "inProgress" && html`<${Working} order=${order} />`}
    ${status === "expired" && html`<${Expired} order=${order} />`}
    ${status === "failed" && html`<${Failed} order=${order} />`}
    ${status === "complete" && order.errors && html`
      <${Notice} kind="warning" title=${t("order.partly")}>${t("order.partlyText")}<//>`}
    ${status === "complete" && html`<${Countdown} order=${order} />`}
    <${Files} order=${order} />`;
}

const isCancelled = ({ status, errors }) => status === "failed" && (errors ?? "").includes("ORDER_CANCELLED");

const Failed = ({ order }) => (isCancelled(order) ? html`<${Notice} title=${t("file.ORDER_CANCELLED")} />`
  : html`<${Notice} kind="error" title=${t("order.failed")}>${t("order.failedText")}<//>`);

function Expired({ order: { deletedAt } }) {
  const time = duration(account.value.resultRetentionSeconds);
  if (!deletedAt) return html`<${Notice} title=${t("order.expired")}>${t("order.expiredText", { time })}<//>`;
  return html`<${Notice} title=${t("order.deleted", { at: moment(deletedAt) })}>${t("order.deletedText")}<//>`;
}

const Working = ({ order: { completedFileCount: done, fileCount: count } }) => html`
  <article class="card" aria-live="polite"><div class="row"><strong>${t("order.working")}</strong>
    <span class="muted">${t("order.done", { done, count })}</span></div>
    <progress max=${count} value=${done} aria-label=${t("order.working")}></progress>
    <p class="muted small">${t("order.leave")}</p></article>`;

function Countdown({ order: { expiresAt } }) {
  const now = useNow();
  if (!expiresAt) return null;
  return html`<p class="countdown muted small">${t("order.keeps", { when: relative(expiresAt, now) })}
    ${" "}<time datetime=${expiresAt}>(${moment(expiresAt)})</time></p>`;
}

// Links are made when they are used, so that they have not expired, however long the page was open.
const links = (id) => get(`/v2/orders/${id}/download`);
function save(url, name) {
  const link = Object.assign(document.createElement("a"), { href: url, download: name });
  document.body.append(link);
  link.click();
  link.remove();
}

function Actions({ order, reload }) {
  const { orderId, status, type, fileCount } = order;
  const all = async () => { const { downloadUrl, fileName } = await links(orderId); save(downloadUrl, fileName); };
  const again = async () => {
    const { draft } = await import("./order_new.js");
    const { pictureRead } = await import("../lib/check.js");
    const files = order.files.map((file) => originalOf(orderId, file.fileId)).filter((file) => file instanceof File);
    const pictures = await Promise.all([...new Set(files)].map(pictureRead));
    draft.value = { ...draft.value, type, texts: order.watermarks.join("\n"), pictures };
    if (files.length === 0) toast(t("order.againFiles"));
    go("/new");
  };
  const drop = async () => {
    const values = { count: fileCount, name: order.orderName };
    const words = isEnded(status)
      ? { title: t("order.deleteTitle", values), text: t("order.deleteText") }
      : { title: t("order.cancelTitle", values), text: t("order.cancelText") };
    if (!await confirm({ ...words, action: t("order.delete") })) return;
    await remove(`/v2/orders/${orderId}`);
    reload();
  };
  const isChange = type !== "watermarkExtract", hasMany = fileCount > 1 || order.watermarks.length > 1;
  const isGone = status === "expired" || isCancelled(order);
  return html`
    ${isChange && status === "complete" && html`
      <${Button} kind="primary" onClick=${all}>${t(hasMany ? "order.downloadAll" : "order.download")}<//>`}
    ${isChange && isEnded(status) && html`<${Button} onClick=${again}>${t("order.again")}<//>`}
    ${!isGone && html`<${Button} kind="plain danger" onClick=${drop}>${t("order.delete")}<//>`}`;
}

// If the tab was closed before all files were uploaded, the same files continue the order.
function Pending({ order }) {
  const [error, setError] = useState(null);
  const [missing, setMissing] = useState([]);
  const choose = async (files) => {
    setError(null);
    try {
      const found = await resume(order, files);
      setMissing(found.missing);
      if (found.upload) found.upload.run().catch(setError);
    } catch (failure) { setError(failure); }
  };
  return html`<article class="card"><h2>${t("order.waiting")}</h2><p>${t("order.waitingText")}</p>
    ${missing.length > 0 && html`<${Notice} kind="warning" title=${t("order.stillMissing")}>${missing.join(", ")}<//>`}
    ${error && html`<${Failure} error=${error} />`}
    <${Drop} onFiles=${choose} title=${t("order.choose")}
      hint=${order.files.map((file) => file.fileName).join(", ")} /></article>`;
}

const GRADES = { strong: "good", medium: "", weak: "warning" };
const STATES = { complete: "good", failed: "bad" };

// Status, protection and sizes of a file. The order says that it is complete.
function Facts({ file, isEnded: isOrderEnded }) {
  const { status, protection, inputBytes, resultBytes } = file;
  const sizes = { before: bytes(inputBytes ?? 0), after: bytes(resultBytes ?? 0) };
  return html`<span class="facts small">
    ${(status !== "complete" || !isOrderEnded) && html`
      <${Badge} kind=${STATES[status] ?? "busy"}>${t(`file.${status}`)}<//>`}
    ${protection && html`<span class="share"><meter max="100" value=${protection.share} aria-hidden="true"></meter>
      <${Badge} kind=${GRADES[protection.word]}>
        ${t(`protection.${protection.word}`, { share: protection.share })}<//></span>`}
    ${inputBytes && resultBytes && html`<span class="muted">${t("order.sizes", sizes)}</span>`}</span>`;
}

const Note = ({ note }) => html`
  <div class="note small"><strong>${known(`note.${note.code}`, t("note.title"))}</strong> ${sayParts(note)}</div>`;

const naming = (key, file, text) => [`${t(key)}: ${file.fileName}`, text].filter(Boolean).join(" ");

const lookOf = (original) => (original ? "compare.open" : "compare.view");

// The copies of a file, each with its text.
function Copies({ file, original, onSave, onCompare }) {
  const copies = file.watermarks.length > 0 ? file.watermarks : [null];
  const look = lookOf(original);
  return html`<ul class=${`copies ${copies[0] === null ? "single" : ""}`}>${copies.map((text, at) => html`<li key=${at}>
    ${text && html`<span class="text">${text}</span>`}
    <${Button} kind="plain small" aria-label=${naming("order.download", file, text)} onClick=${() => onSave(file, at)}>
      ${t("order.download")}<//>
    <${Button} kind="plain small" aria-label=${naming(look, file, text)} onClick=${() => onCompare(file, at)}>
      ${t(look)}<//></li>`)}</ul>`;
}

function FileRow({ order, file, onSave, onCompare }) {
  const { orderId, status } = order, url = file.thumbnailImageUrl;
  const original = originalOf(orderId, file.fileId);
  const isReady = status === "complete" && file.status === "complete";
  const picture = original && !url ? html`<${Preview} file=${original} box=${160} />`
    : html`<${Thumbnail} url=${url} />`;
  // A mouse opens the picture by a click on it; the keyboard uses the button next to it.
  return html`<li>
    ${isReady ? html`<${Button} kind="look" tabindex="-1" aria-label=${naming(lookOf(original), file)}
      onClick=${() => onCompare(file, 0)}>${picture}<//>` : picture}
    <div class="what"><span class="name">${file.fileName}</span>
      ${status !== "expired" && html`<${Facts} file=${file} isEnded=${isEnded(status)} />`}
      ${file.error && html`<${FileFault} error=${file.error} />`}
      ${file.note && status !== "expired" && html`<${Note} note=${file.note} />`}
      ${isReady && html`
        <${Copies} file=${file} original=${original} onSave=${onSave} onCompare=${onCompare} />`}</div></li>`;
}

function Files({ order }) {
  const [shown, setShown] = useState(null);
  const { orderId, files, status } = order;
  const copyOf = async (file, at) =>
    (await links(orderId)).files.filter((entry) => String(entry.fileId) === String(file.fileId))[at];
  const saveCopy = async (file, at) => {
    const found = await copyOf(file, at);
    save(found.downloadUrl, found.fileName);
  };
  const compare = async (file, at) => {
    const found = await copyOf(file, at);
    // The file knows the size of its largest copy only.
    const size = file.watermarks.length > 1 ? null : file.resultBytes;
    setShown({
      before: originalOf(orderId, file.fileId) ?? null, after: found.downloadUrl, name: found.fileName, size,
    });
  };
  return html`
    ${status !== "expired" && files.some((file) => file.protection) && html`
      <p class="muted small">${t("protection.text")}</p>`}
    <ul class="results card">${files.map((file) => html`
      <${FileRow} key=${file.fileId} order=${order} file=${file} onSave=${saveCopy} onCompare=${compare} />`)}</ul>
    ${shown && html`<${Shown} shown=${shown} onClose=${() => setShown(null)}
      onOriginal=${(before) => setShown({ ...shown, before })} />`}`;
}

// A result, next to the original if this browser has it.
function Shown({ shown: { before, ...shown }, onClose, onOriginal }) {
  const [undrawn, setUndrawn] = useState(null);
  const drop = ([file]) => onOriginal(file);
  return html`<${Dialog} wide title=${shown.name} onClose=${onClose}>
    <${Viewer} before=${before} onUndrawn=${setUndrawn} ...${shown} />
    ${before && before !== undrawn
      ? html`<p class="muted small"><${Icon} name="shield" /> ${t("compare.text")}</p>`
      : html`<${Drop} small many=${false} title=${t("compare.original")} onFiles=${drop} />`}<//>`;
}
