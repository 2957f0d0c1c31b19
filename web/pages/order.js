// One order: progress, results, errors in words, downloads.
import { html, useEffect, useState } from "../lib/view.js";
import { get, remove } from "../lib/api.js";
import { t, bytes, known, moment, relative } from "../lib/text.js";
import { go } from "../lib/route.js";
import { Badge, Button, Dialog, Failure, Head, Icon, Link, Loaded, Notice, confirm, toast, useLoad, useNow, usePoll } from "../lib/ui.js";
import { Compare, Preview } from "../lib/pictures.js";
import { Drop } from "../lib/drop.js";
import { Progress } from "../lib/progress.js";
import { current, isEnded, orderGet, originalOf, resume } from "../lib/upload.js";
import { Result } from "./read.js";
import { Status, Thumbnail } from "./orders.js";

export function Order({ id }) {
  const state = useLoad((signal) => orderGet(id, signal), [id]);
  const order = state.data, upload = current.value?.orderId === id ? current.value : null;
  usePoll(async () => state.set(await orderGet(id)), Boolean(order) && !isEnded(order.status));
  const uploadState = upload?.state.value;
  useEffect(() => { if (uploadState === "done") { current.value = null; state.reload(); } }, [uploadState]);
  if (state.error?.status === 404) {
    return html`<${Head} title=${t("order.missing")} /><p>${t("order.missingText")}</p><${Link} to="/orders" class="button">${t("order.back")}<//>`;
  }
  return html`<${Loaded} state=${state} title=${t("order.title")}>${(data) => html`
    <${Head} title=${data.orderName} lead=${html`<span class="facts"><${Status} status=${data.status} /> <span>${t(`type.${data.type}`)}</span>
        <span>${t("orders.fileCount", { count: data.fileCount })}</span> <span>${t("order.created", { at: moment(data.createdAt) })}</span>
        <span>${t(`channel.${data.channel}`)}</span></span>`}>
      <${Actions} order=${data} reload=${state.reload} /><//>
    <${Body} order=${data} upload=${upload} reload=${state.reload} />`}<//>`;
}

function Body({ order, upload, reload }) {
  const { status, type } = order;
  if (upload && status === "pending") return html`<article class="card"><${Progress} upload=${upload} onCancelled=${reload} /></article>`;
  if (status === "pending") return html`<${Pending} order=${order} />`;
  if (type === "watermarkExtract" && status !== "expired") return html`<${Result} order=${order} original=${order.files.length > 1} />`;
  return html`
    ${status === "inProgress" && html`<article class="card" aria-live="polite"><div class="row"><strong>${t("order.working")}</strong>
      <span class="muted">${t("order.done", { done: order.completedFileCount, count: order.fileCount })}</span></div>
      <progress max=${order.fileCount} value=${order.completedFileCount} aria-label=${t("order.working")}></progress><p class="muted small">${t("order.leave")}</p></article>`}
    ${status === "expired" && html`<${Notice} title=${t("order.expired")}>${t("order.expiredText")}<//>`}
    ${status === "failed" && html`<${Notice} kind="error" title=${t("order.failed")}>${t("order.failedText")}<//>`}
    ${status === "complete" && order.errors && html`<${Notice} kind="warning" title=${t("order.partly")}>${t("order.partlyText")}<//>`}
    ${status === "complete" && html`<${Countdown} order=${order} />`}
    <${Files} order=${order} />`;
}

function Countdown({ order }) {
  const now = useNow();
  if (!order.expiresAt) return null;
  return html`<p class="countdown muted small">${t("order.keeps", { when: relative(order.expiresAt, now) })} <time datetime=${order.expiresAt}>(${moment(order.expiresAt)})</time></p>`;
}

// Links are made when they are used: so they have not expired, however long the page was open.
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
    draft.value = { ...draft.value, type, texts: order.watermarks.join("\n"), pictures: await Promise.all([...new Set(files)].map(pictureRead)) };
    if (files.length === 0) toast(t("order.againFiles"));
    go("/new");
  };
  const drop = async () => {
    if (!await confirm({ title: t(isEnded(status) ? "order.deleteTitle" : "order.cancelTitle", { count: fileCount, name: order.orderName }), text: t(isEnded(status) ? "order.deleteText" : "order.cancelText"), action: t("order.delete") })) return;
    await remove(`/v2/orders/${orderId}`);
    reload();
  };
  const canDownload = status === "complete" && type !== "watermarkExtract";
  return html`${canDownload && html`<${Button} kind="primary" onClick=${all}>${fileCount > 1 || order.watermarks.length > 1 ? t("order.downloadAll") : t("order.download")}<//>`}
    ${type !== "watermarkExtract" && isEnded(status) && html`<${Button} onClick=${again}>${t("order.again")}<//>`}
    ${status !== "expired" && !(status === "failed" && order.errors?.includes("ORDER_CANCELLED")) && html`<${Button} kind="plain danger" onClick=${drop}>${t("order.delete")}<//>`}`;
}

// The tab was closed before all files were uploaded: the same files continue the order.
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
    <${Drop} onFiles=${choose} title=${t("order.choose")} hint=${order.files.map((file) => file.fileName).join(", ")} /></article>`;
}

const GRADES = { strong: "good", medium: "", weak: "warning" };

// Status, protection and sizes of a file.
function Facts({ file }) {
  const { status, protection, inputBytes, resultBytes } = file;
  return html`<span class="facts small"><${Badge} kind=${{ complete: "good", failed: "bad" }[status] ?? "busy"}>${t(`file.${status}`)}<//>
    ${protection && html`<${Badge} kind=${GRADES[protection.word]}>${t(`protection.${protection.word}`, { share: protection.share })}<//>`}
    ${inputBytes && resultBytes && html`<span class="muted">${t("order.sizes", { before: bytes(inputBytes), after: bytes(resultBytes) })}</span>`}</span>`;
}

const naming = (key, file, text) => [`${t(key)}: ${file.fileName}`, text].filter(Boolean).join(" ");

function Files({ order }) {
  const [shown, setShown] = useState(null);
  const { orderId, status, files } = order;
  const copy = async (file, at) => {
    const found = (await links(orderId)).files.filter((entry) => String(entry.fileId) === String(file.fileId))[at];
    save(found.downloadUrl, found.fileName);
  };
  const compare = async (file, at) => {
    const found = (await links(orderId)).files.filter((entry) => String(entry.fileId) === String(file.fileId))[at];
    setShown({ before: originalOf(orderId, file.fileId), after: found.downloadUrl, name: found.fileName });
  };
  return html`${files.some((file) => file.protection) && html`<p class="muted small">${t("protection.text")}</p>`}<ul class="results card">${files.map((file) => {
    const original = originalOf(orderId, file.fileId), canSave = status === "complete" && file.status === "complete";
    const copies = file.watermarks.length > 0 ? file.watermarks : [null];
    return html`<li key=${file.fileId}>
      ${original ? html`<${Preview} file=${original} box=${128} />` : html`<${Thumbnail} url=${files.length === 1 ? order.thumbnailImageUrl : null} />`}
      <div class="what"><span class="name">${file.fileName}</span>
        ${status !== "expired" && html`<${Facts} file=${file} />`}
        ${file.error && html`<div class="bad small"><strong>${known(`file.${file.error.code}`, file.error.message)}</strong>
          <p>${known(`file.${file.error.code}.help`, "")}</p><p class="muted">${file.error.message}</p></div>`}
        ${file.note && html`<div class="note small"><strong>${known(`note.${file.note.code}`, t("note.title"))}</strong> ${file.note.message}</div>`}
        ${canSave && html`<ul class="copies">${copies.map((text, at) => html`<li key=${at}>
          ${text && html`<span class="text">${text}</span>`}
          <${Button} kind="plain small" onClick=${() => copy(file, at)} aria-label=${naming("order.download", file, text)}>${t("order.download")}<//>
          <${Button} kind="plain small" aria-label=${original ? undefined : naming("compare.view", file, text)} onClick=${() => compare(file, at)}>
            ${t(original ? "compare.open" : "compare.view")}<//></li>`)}</ul>`}</div></li>`;
  })}</ul>
  ${shown && html`<${Dialog} wide title=${shown.name} onClose=${() => setShown(null)}>
    ${shown.before ? html`<${Compare} before=${shown.before} after=${shown.after} label=${t("compare.slider")} words=${[t("compare.before"), t("compare.after")]} />
      <p class="muted small"><${Icon} name="shield" /> ${t("compare.text")}</p>`
      : html`<p><img src=${shown.after} alt=${shown.name} /></p>
        <${Drop} small many=${false} title=${t("compare.original")} onFiles=${([before]) => setShown({ ...shown, before })} />`}<//>`}`;
}
