// A new order: pictures, kind of work, upload. What was chosen stays when the user looks at another page.
import { html, signal, useEffect, useMemo, useRef, useState } from "../lib/view.js";
import { service } from "../lib/api.js";
import { t, bytes, number } from "../lib/text.js";
import { go } from "../lib/route.js";
import { Button, Failure, Field, Head, Icon, Link, Notice } from "../lib/ui.js";
import { Drop } from "../lib/drop.js";
import { Preview, Compare, isPictureName, isSystemName } from "../lib/pictures.js";
import { LIMITS, hintsOf, pictureProblem, pictureRead } from "../lib/check.js";
import { Upload, current } from "../lib/upload.js";
import { Progress } from "../lib/progress.js";

const EMPTY = { type: "antiAi", strength: "standard", texts: "", orderName: "", pictures: [] };
export const draft = signal(EMPTY);
const TEXTS_A_FILE = 10;
const TEXT_LENGTH = 1000;
const NAMED_MOST = 5;

const change = (values) => { draft.value = { ...draft.value, ...values }; };

// The texts of the list, each once.
export function textsOf(words) {
  const lines = words.split("\n").map((line) => line.replace(/[\u0000-\u001f\u007f]/g, " ").trim()).filter(Boolean);
  return [...new Set(lines)];
}

// A file has at most ten texts; a longer list of recipients uses the picture several times.
function entriesOf({ type, pictures }, texts) {
  if (type === "antiAi") return pictures.map(({ file }) => ({ file }));
  const entries = [];
  for (const { file } of pictures) {
    for (let at = 0; at < texts.length; at += TEXTS_A_FILE) {
      entries.push({ file, more: { watermarks: texts.slice(at, at + TEXTS_A_FILE).map((text) => ({ text })) } });
    }
  }
  return entries;
}

export function OrderNew() {
  const upload = current.value;
  const [limits, setLimits] = useState(LIMITS);
  useEffect(() => { service().then((found) => setLimits({ ...LIMITS, ...found }), () => {}); }, []);
  // An upload that ends while this page is open leads to its order. One that ended before is over.
  const state = upload?.state.value, wasBusy = useRef(false);
  useEffect(() => {
    wasBusy.current = wasBusy.current || Boolean(upload?.isBusy.value);
    if (state !== "done") return;
    current.value = null;
    draft.value = EMPTY;
    if (wasBusy.current) go(`/orders/${upload.orderId}`);
  }, [state]);
  if (upload && state !== "cancelled" && upload.type !== "watermarkExtract" && upload.orderId) {
    return html`<${Head} title=${t("new.uploading")} /><article class="card"><${Progress} upload=${upload} /></article>`;
  }
  return html`<${Form} limits=${limits} />`;
}

function Form({ limits }) {
  const { type, pictures, orderName } = draft.value;
  const [left, setLeft] = useState(null);
  const [error, setError] = useState(null);
  const [isReading, setReading] = useState(false);
  const texts = useMemo(() => textsOf(draft.value.texts), [draft.value.texts]);
  const problems = pictures.map((picture) => pictureProblem(picture, type, limits) ?? (picture.isBroken ? t("problem.preview") : null));
  const good = pictures.filter((_, at) => !problems[at]);
  const entries = entriesOf({ type, pictures: good }, texts);
  const copies = type === "antiAi" ? good.length : good.length * texts.length;
  const tooLong = type === "watermarkEmbed" && texts.find((text) => [...text].length > TEXT_LENGTH);
  const tooMany = entries.length > limits.maxFiles;

  const add = async (files) => {
    const shown = files.filter((file) => !isSystemName(file.name));
    const named = shown.length > 1 ? shown.filter((file) => isPictureName(file.name)) : shown;
    const room = Math.max(0, limits.maxFiles - draft.value.pictures.length), taken = named.slice(0, room);
    setLeft({ others: shown.filter((file) => !named.includes(file)).map((file) => file.name), beyond: named.length - taken.length });
    setReading(true);
    for (const file of taken) change({ pictures: [...draft.value.pictures, await pictureRead(file)] });
    setReading(false);
  };
  const start = async () => {
    setError(null);
    const body = orderName ? { orderName } : {};
    if (type === "antiAi") body.options = { strength: draft.value.strength };
    const upload = new Upload(type, body, entries);
    await upload.run().catch((failure) => {
      setError(failure);
      if (!upload.orderId) current.value = null;
    });
  };
  const fields = new Map((error?.details ?? []).map(({ field, message }) => [field, message]));
  return html`<${Head} title=${t("new.title")} lead=${t("new.lead")} />
    <section class="card" aria-labelledby="step-1"><h2 id="step-1"><span class="step">1</span>${t("new.pictures")}</h2>
      <${Drop} onFiles=${add} small=${pictures.length > 0} title=${t(pictures.length ? "new.dropMore" : "new.drop")}
        hint=${t("new.dropHint", { count: limits.maxFiles, size: bytes(limits.maxFileBytes) })} />
      ${left?.beyond > 0 && html`<${Notice} kind="warning" title=${t("new.beyond", { count: left.beyond, most: limits.maxFiles })} />`}
      ${left?.others.length > 0 && html`<${Notice} kind="warning" title=${t("new.others", { count: left.others.length })}>
        ${left.others.slice(0, NAMED_MOST).join(", ")}${left.others.length > NAMED_MOST ? " …" : ""}<//>`}
      ${pictures.some(({ kind }) => kind === "heic") && html`<${Notice}>${t("hint.heic")}<//>`}
      <div role="status" class="row">${pictures.length > 0 && html`<span>${t("new.chosen", { count: good.length })}${isReading ? " …" : ""}</span>
        <${Button} kind="plain small" onClick=${() => { change({ pictures: [] }); setLeft(null); }}>${t("new.clear")}<//>`}</div>
      <${Pictures} pictures=${pictures} problems=${problems} fields=${fields} entries=${entries} /></section>
    <section class="card" aria-labelledby="step-2"><h2 id="step-2"><span class="step">2</span>${t("new.what")}</h2>
      <${Choice} name="type" legend=${t("new.what")} value=${type} onValue=${(value) => change({ type: value })}
        options=${[["antiAi", "shield"], ["watermarkEmbed", "drop"]].map(([value, icon]) => [value, t(`type.${value}`), t(`type.${value}.text`), icon])} />
      ${type === "antiAi" ? html`<${Strength} limits=${limits} error=${fields.get("options.strength")} />`
        : html`<${Texts} texts=${texts} good=${good.length} copies=${copies} tooLong=${tooLong} />`}
      ${hintsOf(good, type).map((hint) => html`<${Notice} key=${hint}>${hint}<//>`)}
      <p class="small"><${Link} to="/read">${t("new.readLink")}<//></p></section>
    <section class="card" aria-labelledby="step-3"><h2 id="step-3"><span class="step">3</span>${t("new.start")}</h2>
      <${Field} label=${t("new.name")} hint=${t("new.nameHint")} maxlength="64" value=${orderName} error=${fields.get("orderName")}
        onValue=${(value) => change({ orderName: value })} />
      ${error && html`<${Failure} error=${error} />${[...fields].filter(([field]) => !field.startsWith("files[") && field !== "orderName")
        .map(([field, message]) => html`<p class="bad small">${field}: ${message}</p>`)}`}
      ${tooMany && html`<${Notice} kind="error" title=${t("new.tooMany", { count: entries.length, most: limits.maxFiles })} />`}
      <${Button} kind="primary large" onClick=${start} disabled=${isReading || copies === 0 || tooMany || Boolean(tooLong)}>
        ${t(`new.go.${type}`, { count: type === "antiAi" ? good.length : copies })}<//>
      ${copies === 0 && html`<p class="muted small">${t(good.length === 0 ? "new.needPictures" : "new.needTexts")}</p>`}</section>`;
}

const mark = (id, facts) => change({ pictures: draft.value.pictures.map((other) => (other.id === id ? { ...other, ...facts } : other)) });

function Pictures({ pictures, problems, fields, entries }) {
  const drop = (id) => change({ pictures: draft.value.pictures.filter((other) => other.id !== id) });
  return html`<ul class="pictures">${pictures.map((picture, at) => {
    const { id, file, format, width, height } = picture;
    const entry = entries.findIndex((other) => other.file === file);
    const problem = problems[at] ?? [...fields].find(([field]) => entry >= 0 && field.startsWith(`files[${entry}]`))?.[1];
    return html`<li key=${id} class=${problem ? "refused" : ""}><${Preview} file=${file} box=${160}
        onDrawn=${(isDrawn) => { if (picture.isBroken === undefined && format) mark(id, { isBroken: !isDrawn }); }} />
      <span class="name" title=${file.name}>${file.name}</span>
      <span class="muted small">${bytes(file.size)}${width ? ` · ${number(width)} × ${number(height)}` : ""}</span>
      ${problem && html`<span class="bad small">${problem}</span>`}
      ${picture.isBroken && html`<button type="button" class="link small" onClick=${() => mark(id, { isBroken: false })}>${t("new.anyway")}</button>`}
      <button type="button" class="close" aria-label=${t("new.remove", { name: file.name })} onClick=${() => drop(id)}><${Icon} name="close" /></button></li>`;
  })}</ul>`;
}

export const Choice = ({ name, legend, value, onValue, options }) => html`<fieldset class="choice"><legend class="vh">${legend}</legend>
  ${options.map(([word, title, text, icon]) => html`<label key=${word} class=${word === value ? "chosen" : ""}>
    <input type="radio" name=${name} value=${word} checked=${word === value} onChange=${() => onValue(word)} />
    ${icon && html`<${Icon} name=${icon} />`}<span><strong>${title}</strong><span class="muted small">${text}</span></span></label>`)}</fieldset>`;

function Strength({ limits, error }) {
  const { strength } = draft.value;
  return html`<div class="split"><div><h3>${t("strength.title")}</h3>
    <${Choice} name="strength" legend=${t("strength.title")} value=${strength} onValue=${(value) => change({ strength: value })}
      options=${limits.strengths.map((word) => [word, t(`strength.${word}`), t(`strength.${word}.text`)])} />
    ${error && html`<p class="bad small">${error}</p>`}</div>
    <div><${Compare} key=${strength} before="samples/before.webp" after=${`samples/${strength}.webp`} label=${t("compare.slider")}
      words=${[t("compare.before"), t("compare.after")]} /><p class="muted small">${t("strength.sample")}</p></div></div>`;
}

function Texts({ texts, good, copies, tooLong }) {
  return html`<${Field} label=${t("texts.title")} hint=${t("texts.hint")} rows="5" placeholder=${t("texts.example")} value=${draft.value.texts}
      error=${tooLong ? t("texts.long", { most: TEXT_LENGTH }) : undefined} onValue=${(value) => change({ texts: value })} />
    <p role="status" class="muted small">${texts.length > 0 && t("texts.count", { texts: texts.length, pictures: good, copies })}</p>`;
}
