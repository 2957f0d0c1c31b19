// A new order: pictures, kind of work, upload. The choices stay when the user looks at another page.
import { html, effect, signal, useEffect, useMemo, useState } from "../lib/view.js";
import { service } from "../lib/api.js";
import { t, bytes, either, number, sayField } from "../lib/text.js";
import { go } from "../lib/route.js";
import { Button, Failure, Field, Head, Icon, Link, Notice } from "../lib/ui.js";
import { Drop } from "../lib/drop.js";
import { Preview, Compare, isPictureName, isSystemName } from "../lib/pictures.js";
import { hintsOf, orderNameOf, pictureProblem, pictureRead } from "../lib/check.js";
import { Upload, current } from "../lib/upload.js";
import { Waiting } from "../lib/waiting.js";

const EMPTY = { type: "antiAi", strength: "standard", texts: "", orderName: "", isSuffixed: true, pictures: [] };
// Added to the names of results, so that they differ from the originals. The same in each language.
const SUFFIXES = { antiAi: "-protected", watermarkEmbed: "-marked" };
export const draft = signal(EMPTY);
const NAMED_MOST = 5;

// The draft stays until its order has all files, so that a cancelled upload can begin again.
effect(() => {
  const upload = current.value;
  if (upload?.state.value === "done" && !upload.isResumed && upload.type !== "watermarkExtract") draft.value = EMPTY;
});

const change = (values) => { draft.value = { ...draft.value, ...values }; };

// Returns the texts of the list without duplicates.
export function textsOf(words) {
  const lines = words.split("\n").map((line) => line.replace(/[\u0000-\u001f\u007f]/g, " ").trim()).filter(Boolean);
  return [...new Set(lines)];
}

// A file has at most "maxTexts" texts; a longer list of recipients uses the picture several times.
function entriesOf({ type, pictures }, texts) {
  if (type === "antiAi") return pictures.map(({ file }) => ({ file }));
  const entries = [], most = service.value.maxTexts;
  for (const { file } of pictures) {
    for (let at = 0; at < texts.length; at += most) {
      entries.push({ file, more: { watermarks: texts.slice(at, at + most).map((text) => ({ text })) } });
    }
  }
  return entries;
}

export function OrderNew() {
  const upload = current.value, state = upload?.state.value;
  const isOver = !upload || state === "done" || upload.type === "watermarkExtract";
  // The page of the order shows its upload, so that a reload of the tab finds the order again.
  useEffect(() => {
    if (state === "done") current.value = null;
    else if (!isOver && upload.orderId) go(`/orders/${upload.orderId}`, {}, true);
  }, [state]);
  return html`<${Form} />`;
}

// Returns the state of the draft: which pictures are good, how many copies they make, and why the order cannot start.
function draftCheck(texts) {
  const { type, pictures } = draft.value, { maxFiles, maxTextLength } = service.value;
  const problems = pictures.map((picture) =>
    pictureProblem(picture, type) ?? (picture.isBroken ? t("problem.preview") : null));
  const good = pictures.filter((_, at) => !problems[at]);
  const entries = entriesOf({ type, pictures: good }, texts);
  return {
    problems, good, entries,
    copies: type === "antiAi" ? good.length : good.length * texts.length,
    isTooLong: type === "watermarkEmbed" && texts.some((text) => [...text].length > maxTextLength),
    isTooMany: entries.length > maxFiles,
  };
}

function Form() {
  const [left, setLeft] = useState(null);
  const [error, setError] = useState(null);
  const [isReading, setReading] = useState(false);
  const texts = useMemo(() => textsOf(draft.value.texts), [draft.value.texts]);
  const check = draftCheck(texts);
  const add = async (files) => {
    const shown = files.filter((file) => !isSystemName(file.name));
    const named = shown.length > 1 ? shown.filter((file) => isPictureName(file.name)) : shown;
    const room = Math.max(0, service.value.maxFiles - draft.value.pictures.length), taken = named.slice(0, room);
    const others = shown.filter((file) => !named.includes(file)).map((file) => file.name);
    setLeft({ others, beyond: named.length - taken.length });
    setReading(true);
    for (const file of taken) change({ pictures: [...draft.value.pictures, await pictureRead(file)] });
    setReading(false);
  };
  const clear = () => { change({ pictures: [] }); setLeft(null); };
  const start = async () => {
    const { type, orderName, strength, isSuffixed } = draft.value;
    setError(null);
    const body = { orderName: orderName.trim() || orderNameOf(check.good) };
    if (type === "antiAi") body.options = { strength };
    if (isSuffixed) body.resultSuffix = SUFFIXES[type];
    const upload = new Upload(type, body, check.entries);
    await upload.run().catch((failure) => {
      setError(failure);
      if (!upload.orderId) current.value = null;
    });
  };
  const fields = new Map((error?.details ?? []).map((detail) => [detail.field, sayField(detail)]));
  return html`<${Head} title=${t("new.title")} lead=${t("new.lead")} />
    <${Waiting} />
    <${PictureStep} check=${check} left=${left} fields=${fields} isReading=${isReading} onFiles=${add}
      onClear=${clear} />
    <${WorkStep} check=${check} texts=${texts} fields=${fields} />
    <${StartStep} check=${check} error=${error} fields=${fields} isReading=${isReading} onStart=${start} />`;
}

const Step = ({ number: at, title, children }) => html`<section class="card" aria-labelledby=${`step-${at}`}>
  <h2 id=${`step-${at}`}><span class="step">${at}</span>${title}</h2>${children}</section>`;

// ---- 1: the pictures ----

function PictureStep({ check, left, fields, isReading, onFiles, onClear }) {
  const { pictures } = draft.value, { maxFiles, maxFileBytes, formats } = service.value;
  const names = either(formats.map(({ name }) => name));
  return html`<${Step} number="1" title=${t("new.pictures")}>
    <${Drop} onFiles=${onFiles} small=${pictures.length > 0} title=${t(pictures.length ? "new.dropMore" : "new.drop")}
      hint=${t("new.dropHint", { count: maxFiles, size: bytes(maxFileBytes), formats: names })} />
    ${left && html`<${LeftOut} left=${left} />`}
    ${pictures.some(({ kind }) => kind === "heic") && html`<${Notice}>${t("hint.heic")}<//>`}
    <div role="status" class="row">${pictures.length > 0 && html`
      <span>${t("new.chosen", { count: check.good.length })}${isReading ? " …" : ""}</span>
      <${Button} kind="plain small" onClick=${onClear}>${t("new.clear")}<//>`}</div>
    <${Pictures} pictures=${pictures} problems=${check.problems} fields=${fields} entries=${check.entries} /><//>`;
}

function LeftOut({ left: { others, beyond } }) {
  const names = others.slice(0, NAMED_MOST).join(", ") + (others.length > NAMED_MOST ? " …" : "");
  const most = service.value.maxFiles;
  return html`
    ${beyond > 0 && html`<${Notice} kind="warning" title=${t("new.beyond", { count: beyond, most })} />`}
    ${others.length > 0 && html`
      <${Notice} kind="warning" title=${t("new.others", { count: others.length })}>${names}<//>`}`;
}

const pictureChange = (id, facts) => change({
  pictures: draft.value.pictures.map((other) => (other.id === id ? { ...other, ...facts } : other)),
});
const pictureDrop = (id) => change({ pictures: draft.value.pictures.filter((other) => other.id !== id) });

function Pictures({ pictures, problems, fields, entries }) {
  // The service's message about a picture stands next to the picture.
  const refusalOf = (file) => {
    const at = entries.findIndex((other) => other.file === file);
    return at < 0 ? null : [...fields].find(([field]) => field.startsWith(`files[${at}]`))?.[1];
  };
  return html`<ul class="pictures">${pictures.map((picture, at) => html`
    <${Picture} key=${picture.id} picture=${picture} problem=${problems[at] ?? refusalOf(picture.file)} />`)}</ul>`;
}

function Picture({ picture, problem }) {
  const { id, file, format, width, height, isBroken } = picture;
  const onDrawn = (isDrawn) => { if (isBroken === undefined && format) pictureChange(id, { isBroken: !isDrawn }); };
  return html`<li class=${problem ? "refused" : ""}><${Preview} file=${file} box=${160} onDrawn=${onDrawn} />
    <span class="name" title=${file.name}>${file.name}</span>
    <span class="muted small">${bytes(file.size)}${width ? ` · ${number(width)} × ${number(height)}` : ""}</span>
    ${problem && html`<span class="bad small">${problem}</span>`}
    ${isBroken && html`<button type="button" class="link small"
      onClick=${() => pictureChange(id, { isBroken: false })}>${t("new.anyway")}</button>`}
    <button type="button" class="close" aria-label=${t("new.remove", { name: file.name })}
      onClick=${() => pictureDrop(id)}><${Icon} name="close" /></button></li>`;
}

// ---- 2: the work ----

const TYPES = [["antiAi", "shield"], ["watermarkEmbed", "drop"]];

function WorkStep({ check, texts, fields }) {
  const { type } = draft.value;
  return html`<${Step} number="2" title=${t("new.what")}>
    <${Choice} name="type" legend=${t("new.what")} value=${type} onValue=${(value) => change({ type: value })}
      options=${TYPES.map(([value, icon]) => [value, t(`type.${value}`), t(`type.${value}.text`), icon])} />
    ${type === "antiAi" ? html`<${Strength} error=${fields.get("options.strength")} />`
      : html`<${Texts} texts=${texts} check=${check} />`}
    ${hintsOf(check.good, type).map((hint) => html`<${Notice} key=${hint}>${hint}<//>`)}
    <p class="small"><${Link} to="/read">${t("new.readLink")}<//></p><//>`;
}

export const Choice = ({ name, legend, value, onValue, options }) => html`<fieldset class="choice">
  <legend class="vh">${legend}</legend>
  ${options.map(([word, title, text, icon]) => html`<label key=${word} class=${word === value ? "chosen" : ""}>
    <input type="radio" name=${name} value=${word} checked=${word === value} onChange=${() => onValue(word)} />
    ${icon && html`<${Icon} name=${icon} />`}
    <span><strong>${title}</strong><span class="muted small">${text}</span></span></label>`)}</fieldset>`;

function Strength({ error }) {
  const { strength } = draft.value;
  const options = service.value.strengths.map((word) => [word, t(`strength.${word}`), t(`strength.${word}.text`)]);
  return html`<div class="split"><div><h3>${t("strength.title")}</h3>
    <${Choice} name="strength" legend=${t("strength.title")} value=${strength} options=${options}
      onValue=${(value) => change({ strength: value })} />
    ${error && html`<p class="bad small">${error}</p>`}</div>
    <div><${Compare} key=${strength} before="samples/before.webp" after=${`samples/${strength}.webp`}
      label=${t("compare.slider")} words=${[t("compare.before"), t("compare.after")]} />
      <p class="muted small">${t("strength.sample")}</p></div></div>`;
}

function Texts({ texts, check: { good, copies, isTooLong } }) {
  const counts = { texts: texts.length, pictures: good.length, copies };
  const error = isTooLong ? t("texts.long", { most: service.value.maxTextLength }) : undefined;
  return html`<${Field} label=${t("texts.title")} hint=${t("texts.hint")} rows="5" placeholder=${t("texts.example")}
      value=${draft.value.texts} error=${error} onValue=${(value) => change({ texts: value })} />
    <p role="status" class="muted small">${texts.length > 0 && t("texts.count", counts)}</p>`;
}

// ---- 3: the start ----

function StartStep({ check, error, fields, isReading, onStart }) {
  const { type, orderName, isSuffixed } = draft.value, { good, entries, copies, isTooLong, isTooMany } = check;
  const { maxFiles, maxNameLength } = service.value;
  return html`<${Step} number="3" title=${t("new.start")}>
    <${Field} label=${t("new.name")} hint=${t("new.nameHint")} maxlength=${maxNameLength} value=${orderName}
      placeholder=${orderNameOf(good)}
      error=${fields.get("orderName")} onValue=${(value) => change({ orderName: value })} />
    <label class="check"><input type="checkbox" checked=${isSuffixed}
        onChange=${(event) => change({ isSuffixed: event.target.checked })} />
      <span>${t("new.suffix")} <code>${SUFFIXES[type]}</code>
        <span class="muted small">${t("new.suffixHint")}</span></span></label>
    ${error && html`<${Refusal} error=${error} fields=${fields} />`}
    ${isTooMany && html`
      <${Notice} kind="error" title=${t("new.tooMany", { count: entries.length, most: maxFiles })} />`}
    <div class=${`start ${copies > 0 ? "ready" : ""}`}>
      <${Button} kind="primary large" onClick=${onStart}
        disabled=${isReading || copies === 0 || isTooMany || isTooLong}>
        ${t(`new.go.${type}`, { count: type === "antiAi" ? good.length : copies })}<//></div>
    ${copies === 0 && html`
      <p class="muted small">${t(good.length === 0 ? "new.needPictures" : "new.needTexts")}</p>`}<//>`;
}

// The messages that are not shown next to a picture or field.
function Refusal({ error, fields }) {
  const others = [...fields].filter(([field]) => !field.startsWith("files[") && field !== "orderName");
  return html`<${Failure} error=${error} />
    ${others.map(([field, message]) => html`<p class="bad small"><code>${field}</code> ${message}</p>`)}`;
}
