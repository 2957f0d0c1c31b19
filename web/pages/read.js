// Read a watermark: a suspect picture, and the original if the user has it.
import { html, useEffect, useState } from "../lib/view.js";
import { service } from "../lib/api.js";
import { t, bytes, day, either, known, number, sayParts } from "../lib/text.js";
import { Button, Failure, FileFault, Head, Icon, Link, Notice, usePoll } from "../lib/ui.js";
import { Drop } from "../lib/drop.js";
import { Preview } from "../lib/pictures.js";
import { orderNameOf, pictureProblem, pictureRead } from "../lib/check.js";
import { go, route } from "../lib/route.js";
import { Upload, current, isEnded, orderGet, originalOf } from "../lib/upload.js";
import { Progress } from "../lib/progress.js";

const SHOWN_PX = 320;
const problemOf = (picture) => picture && pictureProblem(picture, "watermarkExtract");

// The picture, or a sentence if the browser has no decoder, for example of TIFF.
function Shown({ file, label }) {
  const [isDrawn, setDrawn] = useState(true);
  return isDrawn ? html`<${Preview} file=${file} box=${SHOWN_PX} label=${label} onDrawn=${setDrawn} />`
    : html`<p class="undrawn muted small">${t("read.undrawn")}</p>`;
}

function Slot({ title, hint, picture, onPicture }) {
  const add = async ([file]) => { if (file) onPicture(await pictureRead(file)); };
  return html`<div class="slot"><h2>${title}</h2>
    ${picture ? html`<${Chosen} picture=${picture} onOther=${() => onPicture(null)} />`
      : html`<${Drop} many=${false} isReading title=${t("read.drop")} hint=${hint} onFiles=${add} />`}</div>`;
}

function Chosen({ picture, onOther }) {
  const { file } = picture, problem = problemOf(picture);
  return html`<div class="one"><${Shown} file=${file} /><div><span class="name">${file.name}</span>
    <span class="muted small">${bytes(file.size)}</span>${problem && html`<p class="bad small">${problem}</p>`}
    <p><${Button} kind="plain small" onClick=${onOther}>${t("read.other")}<//></p></div></div>`;
}

export function Read() {
  const [suspect, setSuspect] = useState(null);
  const [original, setOriginal] = useState(null);
  const [error, setError] = useState(null);
  const [order, setOrder] = useState(null);
  const [upload, setUpload] = useState(null);
  const start = () => {
    setError(null);
    const body = { orderName: orderNameOf([suspect]) };
    const made = new Upload("watermarkExtract", body, [suspect, original].filter(Boolean));
    setUpload(made);
    return made.run().catch(setError);
  };
  const state = upload?.state.value;
  // A reload of the tab finds the order again.
  useEffect(() => { if (route.value.query.order) go(`/orders/${route.value.query.order}`, {}, true); }, []);
  useEffect(() => {
    if (upload?.orderId && state === "uploading") go("/read", { order: upload.orderId }, true);
    if (!upload || upload.isBusy.value) return;
    if (current.value === upload && state !== "failed") current.value = null;
    if (state === "done") setOrder({ orderId: upload.orderId, status: "inProgress" });
  }, [state]);
  usePoll(async () => setOrder(await orderGet(order.orderId)), order !== null && !isEnded(order.status), 700);
  const again = () => {
    setSuspect(null); setOriginal(null); setOrder(null); setError(null); setUpload(null);
    go("/read", {}, true);
  };
  const canStart = suspect && !problemOf(suspect) && !problemOf(original);
  const isSending = upload?.orderId && ["uploading", "failed", "refused", "starting"].includes(state);
  const formats = either(service.value.extractFormats.map(({ name }) => name));
  return html`<${Head} title=${t("read.title")} lead=${t("read.lead")} />
    ${order ? html`<${Result} order=${order} original=${original} onAgain=${again} />` : html`<article class="card">
      <div class="split">
        <${Slot} title=${t("read.suspect")} hint=${t("read.suspectHint", { formats })} picture=${suspect}
          onPicture=${setSuspect} />
        <${Slot} title=${t("read.original")} hint=${t("read.originalHint")} picture=${original}
          onPicture=${setOriginal} /></div>
      ${error && !isSending && html`<${Failure} error=${error} />`}
      ${isSending ? html`<${Progress} upload=${upload} onCancelled=${again} />` : html`
        <${Button} kind="primary large" disabled=${!canStart} onClick=${start}>${t("read.action")}<//>`}</article>`}`;
}

// The order, file and date of the mark. A text may mark several files; the newest is first.
function Place({ place, isMixed, isOneOfMany }) {
  return html`<p>${isMixed && html`<strong>${place.watermark}</strong><br />`}
    <${Link} to=${`/orders/${place.orderId}`}>${place.orderName}<//><br />
    <span class="muted small">${t("read.place", { file: place.fileName, day: day(place.createdAt) })}</span>
    ${isOneOfMany && place.isSamePicture === false
      && html`<br /><span class="small">${t("read.otherPlace")}</span>`}</p>`;
}

function Places({ found }) {
  if (!found) return null;
  const { others } = found, isMixed = others.some((place) => place.watermark !== found.watermark);
  const title = t(isMixed ? "read.mixed" : others.length > 0 ? "read.places" : "read.from");
  const keyOf = (place) => `${place.orderId} ${place.fileName} ${place.watermark}`;
  return html`<section aria-labelledby="places"><h2 id="places">${title}</h2>${[found, ...others].map((place) => html`
    <${Place} key=${keyOf(place)} place=${place} isMixed=${isMixed} isOneOfMany=${others.length > 0} />`)}</section>`;
}

const Found = ({ order }) => html`<div class="found"><${Icon} name="check" /><div>
    <p class="muted">${t("read.found")}</p><p class="mark">${order.watermarkText}</p>
    <p class="muted small">${t("read.certainty", { count: number(order.certainty) })}</p></div></div>
  ${order.isSamePicture === false && html`
    <${Notice} kind="warning" title=${t("read.otherPicture")}>${t("read.otherPicture.help")}<//>`}
  ${order.isSamePicture === true && html`<p class="muted small">${t("read.samePicture")}</p>`}
  <${Places} found=${order.foundIn} />`;

function Nothing({ hasOriginal }) {
  const helps = ["original", "larger", "untouched", "account"].filter((word) => word !== "original" || !hasOriginal);
  return html`<h2>${t("read.nothing")}</h2><p>${t("read.help")}</p>
    <ul>${helps.map((word) => html`<li key=${word}>${t(`read.help.${word}`)}</li>`)}</ul>`;
}

const Asked = ({ picture }) => html`<div class="one asked">
  <${Shown} file=${picture} label=${t("read.picture", { name: picture.name })} />
  <span class="name">${picture.name}</span></div>`;

const Next = ({ order, onAgain }) => html`<div class="actions">${onAgain && html`
  <${Button} kind="primary" onClick=${onAgain}>${t("read.again")}<//>
  <${Link} to=${`/orders/${order.orderId}`} class="button">${t("read.order")}<//>`}</div>`;

export function Result({ order, original, onAgain }) {
  const { status, files = [] } = order;
  const note = files.find((file) => file.note)?.note, failed = files.filter((file) => file.error);
  const picture = files.length > 0 && originalOf(order.orderId, files[0].fileId);
  return html`<article class="card result" aria-live="polite">
    ${picture && isEnded(status) && html`<${Asked} picture=${picture} />`}
    ${status === "detected" && html`<${Found} order=${order} />`}
    ${status === "undetected" && html`<${Nothing} hasOriginal=${Boolean(original)} />`}
    ${status === "failed" && html`<${Notice} kind="error" title=${t("read.failed")}>
      ${failed.map((file) => html`
        <div key=${file.fileId}>${file.fileName}<${FileFault} error=${file.error} /></div>`)}<//>`}
    ${!isEnded(status) && html`<h2>${t("read.running")}</h2><progress aria-label=${t("read.running")}></progress>`}
    ${note && html`<${Notice} kind="warning" title=${known(`note.${note.code}`, t("note.title"))}>
      ${sayParts(note)}<//>`}
    ${isEnded(status) && html`<${Next} order=${order} onAgain=${onAgain} />`}</article>`;
}
