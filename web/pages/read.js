// Read a watermark: a suspect picture, and the original where there is one.
import { html, useEffect, useState } from "../lib/view.js";
import { service } from "../lib/api.js";
import { t, bytes, day, number } from "../lib/text.js";
import { Button, Failure, Head, Icon, Link, Notice, usePoll } from "../lib/ui.js";
import { Drop } from "../lib/drop.js";
import { Preview } from "../lib/pictures.js";
import { LIMITS, pictureProblem, pictureRead } from "../lib/check.js";
import { Upload, current, isEnded, orderGet, originalOf } from "../lib/upload.js";
import { Progress } from "../lib/progress.js";

function Slot({ title, hint, picture, limits, onPicture }) {
  const add = async ([file]) => { if (file) onPicture(await pictureRead(file)); };
  const problem = picture && pictureProblem(picture, "watermarkExtract", limits);
  return html`<div class="slot"><h2>${title}</h2>
    ${picture ? html`<div class="one"><${Preview} file=${picture.file} box=${320} /><div><span class="name">${picture.file.name}</span>
        <span class="muted small">${bytes(picture.file.size)}</span>${problem && html`<p class="bad small">${problem}</p>`}
        <p><${Button} kind="plain small" onClick=${() => onPicture(null)}>${t("read.other")}<//></p></div></div>`
      : html`<${Drop} many=${false} isReading title=${t("read.drop")} hint=${hint} onFiles=${add} />`}</div>`;
}

export function Read() {
  const [suspect, setSuspect] = useState(null);
  const [original, setOriginal] = useState(null);
  const [error, setError] = useState(null);
  const [order, setOrder] = useState(null);
  const [upload, setUpload] = useState(null);
  const [limits, setLimits] = useState(LIMITS);
  useEffect(() => { service().then((found) => setLimits({ ...LIMITS, ...found }), () => {}); }, []);
  const start = () => {
    setError(null);
    const made = new Upload("watermarkExtract", {}, [suspect, original].filter(Boolean));
    setUpload(made);
    return made.run().catch(setError);
  };
  const state = upload?.state.value;
  useEffect(() => {
    if (!upload || upload.isBusy.value) return;
    if (current.value === upload && state !== "failed") current.value = null;
    if (state === "done") setOrder({ orderId: upload.orderId, status: "inProgress" });
  }, [state]);
  usePoll(async () => setOrder(await orderGet(order.orderId)), order !== null && !isEnded(order.status), 700);
  const again = () => { setSuspect(null); setOriginal(null); setOrder(null); setError(null); setUpload(null); };
  const isBad = suspect && (pictureProblem(suspect, "watermarkExtract", limits) || (original && pictureProblem(original, "watermarkExtract", limits)));
  const isSending = upload?.orderId && ["uploading", "failed", "refused", "starting"].includes(state);
  return html`<${Head} title=${t("read.title")} lead=${t("read.lead")} />
    ${order ? html`<${Result} order=${order} original=${original} onAgain=${again} />` : html`<article class="card">
      <div class="split"><${Slot} title=${t("read.suspect")} hint=${t("read.suspectHint")} picture=${suspect} limits=${limits} onPicture=${setSuspect} />
        <${Slot} title=${t("read.original")} hint=${t("read.originalHint")} picture=${original} limits=${limits} onPicture=${setOriginal} /></div>
      ${error && !isSending && html`<${Failure} error=${error} />`}
      ${isSending ? html`<${Progress} upload=${upload} onCancelled=${again} />`
        : html`<${Button} kind="primary large" disabled=${!suspect || Boolean(isBad)} onClick=${start}>${t("read.action")}<//>`}</article>`}`;
}

// The order, file and date of the mark. A text may mark several files; the newest is first.
function Place({ place, isMixed }) {
  return html`<p>${isMixed && html`<strong>${place.watermark}</strong><br />`}<${Link} to=${`/orders/${place.orderId}`}>${place.orderName}<//><br />
    <span class="muted small">${t("read.place", { file: place.fileName, day: day(place.createdAt) })}</span></p>`;
}

function Places({ found }) {
  if (!found) return null;
  const { others } = found, isMixed = others.some((place) => place.watermark !== found.watermark);
  return html`<section aria-labelledby="places"><h2 id="places">${t(isMixed ? "read.mixed" : others.length > 0 ? "read.places" : "read.from")}</h2>
    ${[found, ...others].map((place) => html`<${Place} key=${`${place.orderId} ${place.fileName} ${place.watermark}`} place=${place} isMixed=${isMixed} />`)}</section>`;
}

export function Result({ order, original, onAgain }) {
  const { status, watermarkText, files = [], errors } = order;
  const note = files.find((file) => file.note)?.note;
  const picture = files.length > 0 && originalOf(order.orderId, files[0].fileId);
  return html`<article class="card result" aria-live="polite">
    ${picture && isEnded(status) && html`<div class="one asked"><${Preview} file=${picture} box=${320} label=${t("read.picture", { name: picture.name })} /><span class="name">${picture.name}</span></div>`}
    ${status === "detected" && html`<div class="found"><${Icon} name="check" /><div><p class="muted">${t("read.found")}</p><p class="mark">${watermarkText}</p><p class="muted small">${t("read.certainty", { count: number(order.certainty) })}</p></div></div><${Places} found=${order.foundIn} />`}
    ${status === "undetected" && html`<h2>${t("read.nothing")}</h2><p>${t("read.help")}</p>
      <ul>${!original && html`<li>${t("read.help.original")}</li>`}<li>${t("read.help.larger")}</li><li>${t("read.help.untouched")}</li><li>${t("read.help.account")}</li></ul>`}
    ${status === "failed" && html`<${Notice} kind="error" title=${t("read.failed")}>${errors}<//>`}
    ${!isEnded(status) && html`<h2>${t("read.running")}</h2><progress aria-label=${t("read.running")}></progress>`}
    ${note && html`<${Notice} kind="warning" title=${t("note.title")}>${note.message}<//>`}
    ${isEnded(status) && html`<div class="actions">${onAgain && html`<${Button} kind="primary" onClick=${onAgain}>${t("read.again")}<//>`}
      ${onAgain && html`<${Link} to=${`/orders/${order.orderId}`} class="button">${t("read.order")}<//>`}</div>`}</article>`;
}
