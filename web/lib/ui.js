// Parts that the pages share: forms, dialogs, tables, notices.
import { html, signal, useState, useEffect, useRef, useId, useCallback } from "./view.js";
import { ApiError, service, session } from "./api.js";
import {
  t, duration, either, instant, known, language, moment, relative, say, sayField, sayParts, stamp,
} from "./text.js";
import { href, route } from "./route.js";

// The question that confirm() asks at the moment.
const question = signal(null);

// ---- messages ----

const toasts = signal([]);
export function toast(text) {
  const entry = { text };
  toasts.value = [...toasts.value, entry];
  setTimeout(() => { toasts.value = toasts.value.filter((other) => other !== entry); }, 6000);
}
export const Toasts = () => html`<div class="toasts" role="status" aria-live="polite">
  ${toasts.value.map((entry) => html`<p key=${entry}>${entry.text}</p>`)}</div>`;

export const Notice = ({ kind = "info", title, children, action }) => html`
  <div class=${`notice ${kind}`} role=${kind === "error" ? "alert" : "note"}>
    <div>${title && html`<strong>${title}</strong>`}${children && html`<div>${children}</div>`}</div>
    ${action}
  </div>`;

// "JPEG, PNG or WebP": the formats that the service changes.
export const takenFormats = () => either((service.value?.formats ?? []).map(({ name }) => name));

// Returns the sentence for an error, by its code.
export function errorText(error) {
  if (!(error instanceof ApiError)) return t("error.unexpected");
  if (error.status === 0) return t("error.NETWORK");
  const values = { seconds: error.retryAfter || 2, formats: takenFormats() };
  return known(`error.${error.code}`, t("error.unexpected"), values);
}

// How users reach the operator, if the operator has configured it.
export function Contact() {
  const contact = session.value?.operatorContact;
  if (!contact) return null;
  const isMail = !contact.includes("/") && contact.includes("@"), isLink = isMail || /^https?:/.test(contact);
  if (!isLink) return html`<span>${contact}</span>`;
  return html`<a href=${isMail ? `mailto:${contact}` : contact} rel="noopener">${contact}</a>`;
}

export function Failure({ error, retry }) {
  if (!(error instanceof ApiError)) console.error(error);
  const detail = error.details?.length ? "" : say(error);
  const again = retry && html`<${Button} kind="plain" onClick=${retry}>${t("retry")}<//>`;
  return html`<${Notice} kind="error" title=${errorText(error)} action=${again}>
    ${detail && html`<p>${detail}</p>`}
    ${error.others?.map((other) => html`<p><code>${other.field}</code> ${sayField(other)}</p>`)}
    ${error.status >= 500 && error.requestId && html`
      <p class="muted small">${t("error.request")} <code>${error.requestId}</code> <${Contact} /></p>`}
  <//>`;
}

// The error of a file, what the service found, and the remedy.
export function FileFault({ error }) {
  const values = { formats: takenFormats(), time: duration(service.value.pendingSeconds) };
  return html`<div class="bad small"><strong>${known(`file.${error.code}`, t("file.failed"), values)}</strong>
    <p>${sayParts(error)} ${known(`file.${error.code}.help`, "", values)}</p></div>`;
}

// ---- buttons ----

// Runs an action once at a time, and shows that the action runs. A failure is shown as a message unless the caller
// handles it. While a question is open, nothing runs yet.
export function Button({ onClick, kind = "plain", type = "button", busy, children, ...rest }) {
  const [isRunning, setRunning] = useState(false);
  const isBusy = busy || (isRunning && !question.value) ? "true" : undefined;
  async function run(event) {
    if (busy || isRunning) { event.preventDefault(); return; }
    if (!onClick) return;
    const result = onClick(event);
    if (!(result instanceof Promise)) return;
    setRunning(true);
    try {
      await result;
    } catch (error) {
      if (error.name !== "AbortError") toast(errorText(error));
    } finally {
      setRunning(false);
    }
  }
  return html`<button type=${type} class=${kind} aria-disabled=${isBusy} aria-busy=${isBusy} onClick=${run} ...${rest}>
    ${children}</button>`;
}

export const Link = ({ to, query, children, ...rest }) => html`<a href=${href(to, query)} ...${rest}>${children}</a>`;

export function Copy({ value, label }) {
  const [isDone, setDone] = useState(false);
  const copy = async () => {
    await navigator.clipboard.writeText(value).catch(() => {
      const area = Object.assign(document.createElement("textarea"), { value });
      document.body.append(area);
      area.select();
      document.execCommand("copy");
      area.remove();
    });
    setDone(true);
    setTimeout(() => setDone(false), 2000);
  };
  return html`<${Button} kind="plain small" onClick=${copy} aria-label=${label}>${t(isDone ? "copied" : "copy")}<//>`;
}

// A value that is shown once, with a button that copies it.
export const Secret = ({ label, value }) => html`<div class="secret">
  <span class="muted small">${label}</span>
  <div><code>${value}</code><${Copy} value=${value} label=${`${t("copy")}: ${label}`} /></div></div>`;

// ---- forms ----

// The messages for required fields of a form that are empty, by their names.
const emptyOf = (form) => Object.fromEntries([...form.elements].filter((one) => one.required && !one.value.trim())
  .map(({ name }) => [name, known(`required.${name}`, t("message.required"))]));

// Values, errors by field and the submit handler of a form. The API's details stand next to their fields.
export function useForm(initial, submit) {
  const [values, setValues] = useState(initial);
  const [errors, setErrors] = useState({});
  const [failure, setFailure] = useState(null);
  const [busy, setBusy] = useState(false);
  const form = useRef(null), fields = useRef(new Set());
  const set = (name, value) => {
    setValues((old) => ({ ...old, [name]: value }));
    setErrors((old) => ({ ...old, [name]: undefined }));
  };
  function refuse(error) {
    const found = {}, isShown = (detail) => fields.current.has(detail.field), { details = [] } = error;
    for (const detail of details.filter(isShown)) found[detail.field] = sayField(detail);
    error.others = details.filter((detail) => !isShown(detail));
    setErrors(found);
    setFailure(details.length > 0 && error.others.length === 0 ? null : error);
    focus();
  }
  function focus() {
    requestAnimationFrame(() => form.current?.querySelector("[aria-invalid=true], .notice.error")?.focus?.());
  }
  async function onSubmit(event) {
    event.preventDefault();
    if (busy) return;
    const empty = emptyOf(form.current);
    setErrors(empty);
    setFailure(null);
    if (Object.keys(empty).length > 0) { focus(); return; }
    setBusy(true);
    try {
      await submit(values);
    } catch (error) {
      refuse(error);
    } finally {
      setBusy(false);
    }
  }
  const bind = (name) => {
    fields.current.add(name);
    return { name, value: values[name], error: errors[name], onValue: (value) => set(name, value) };
  };
  return { values, set, setValues, bind, busy, failure, form: { ref: form, onSubmit, noValidate: true } };
}

export function Field({ label, hint, error, onValue, type = "text", rows, value, children, ...rest }) {
  const id = useId();
  const described = [error && `${id}-error`, hint && `${id}-hint`].filter(Boolean).join(" ") || undefined;
  const shared = { id, "aria-invalid": error ? "true" : undefined, "aria-describedby": described, ...rest };
  const onInput = (event) => onValue(event.target.value);
  const control = children ? html`<select ...${shared} value=${value} onChange=${onInput}>${children}</select>`
    : rows ? html`<textarea ...${shared} rows=${rows} value=${value} onInput=${onInput}></textarea>`
      : html`<input ...${shared} type=${type} value=${value} onInput=${onInput} />`;
  return html`<div class="field"><label for=${id}>${label}</label>${control}
    ${error && html`<small id=${`${id}-error`} class="bad">${error}</small>`}
    ${hint && html`<small id=${`${id}-hint`}>${hint}</small>`}</div>`;
}

// A search counts for the rate limit, so it waits until the user stops typing.
export function Search({ label, hint, value, onValue }) {
  const [word, setWord] = useState(value);
  const timer = useRef(0);
  useEffect(() => { setWord(value); }, [value]);
  const change = (next) => {
    setWord(next);
    clearTimeout(timer.current);
    timer.current = setTimeout(() => onValue(next.trim()), 350);
  };
  return html`<${Field} label=${label} type="search" value=${word} onValue=${change}
    placeholder=${hint} />`;
}

export function NewPassword(bound) {
  const hint = t("password.hint", { least: service.value.minPasswordLength });
  return html`<${Field} label=${t("password.new")} hint=${hint} type="password" autocomplete="new-password" required
    ...${bound} />`;
}

// ---- dialogs ----

// Navigation, such as the browser's Back, closes the dialog, because its subject is no longer on the screen.
export function Dialog({ title, onClose, children, wide, kind = wide ? "wide" : "" }) {
  const element = useRef(null), id = useId(), place = useRef(route.value);
  useEffect(() => { if (route.value !== place.current) onClose?.(); }, [route.value]);
  useEffect(() => {
    const dialog = element.current;
    dialog.showModal();
    return () => dialog.close();
  }, []);
  return html`<dialog ref=${element} class=${kind} aria-labelledby=${id}
      onCancel=${(event) => { event.preventDefault(); onClose?.(); }}>
    <article>
      <header><h2 id=${id}>${title}</h2>
        ${onClose && html`<button type="button" class="close" aria-label=${t("close")} onClick=${onClose}>
          <${Icon} name="close" /></button>`}</header>
      ${children}
    </article></dialog>`;
}

// Asks before a change that cannot be undone; resolves to whether the user agreed.
export const confirm = (words) => new Promise((resolve) => {
  question.value = { ...words, answer: (value) => { question.value = null; resolve(value); } };
});
export function Question() {
  const asked = question.value;
  if (!asked) return null;
  return html`<${Dialog} title=${asked.title} onClose=${() => asked.answer(false)}>
    <p>${asked.text}</p>
    <footer class="actions"><${Button} onClick=${() => asked.answer(false)}>${t("cancel")}<//>
      <${Button} kind=${asked.kind ?? "danger"} onClick=${() => asked.answer(true)}>${asked.action}<//></footer><//>`;
}

// ---- data ----

// Loads data when "keys" change, and keeps the old data until the new data is there.
export function useLoad(load, keys) {
  const [state, setState] = useState({ data: null, error: null, loading: true });
  const run = useRef(null);
  const reload = useCallback(async () => {
    run.current?.abort();
    const control = (run.current = new AbortController());
    setState((old) => ({ ...old, loading: true }));
    try {
      const data = await load(control.signal);
      if (!control.signal.aborted) setState({ data, error: null, loading: false });
    } catch (error) {
      if (!control.signal.aborted) setState((old) => ({ data: old.data, error, loading: false }));
    }
  }, keys);
  useEffect(() => {
    reload();
    return () => run.current?.abort();
  }, [reload]);
  return { ...state, reload, set: (data) => setState({ data, error: null, loading: false }) };
}

// Repeats "work" while "isActive" and the page is visible. The wait grows, because each request counts for the limit.
export function usePoll(work, isActive, first = 1500, most = 8000) {
  const saved = useRef(work);
  saved.current = work;
  useEffect(() => {
    if (!isActive) return undefined;
    let timer = 0, wait = first, isOver = false;
    const next = () => { timer = setTimeout(step, wait); wait = Math.min(most, wait * 1.3); };
    const step = async () => {
      if (!document.hidden) await saved.current().catch(() => {});
      if (!isOver) next();
    };
    next();
    return () => { isOver = true; clearTimeout(timer); };
  }, [isActive]);
}

// Returns the current time, updated every "ms", for countdowns.
export function useNow(ms = 30000) {
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), ms);
    return () => clearInterval(timer);
  }, [ms]);
  return now;
}

// "title" is the heading of a page that cannot show its data yet.
export function Loaded({ state, title, children }) {
  const failure = state.error && html`<${Failure} error=${state.error} retry=${state.reload} />`;
  if (state.data) return html`${failure}${children(state.data)}`;
  const head = title && html`<${Head} title=${title} />`;
  if (failure) return html`${head}${failure}`;
  return html`${head}<div class="skeleton" aria-busy="true"><span class="vh">${t("loading")}</span></div>`;
}

export const Time = ({ at, none = "–" }) => (at
  ? html`<time datetime=${at} title=${moment(at)}>${relative(at)}</time>` : html`<span class="muted">${none}</span>`);

// The time of an entry in a log.
export const Stamp = ({ at }) => html`<time class="stamp" datetime=${at} title=${instant(at)}>${stamp(at)}</time>`;

export const Badge = ({ kind = "", children }) => html`<span class=${`badge ${kind}`}>${children}</span>`;

// A table that becomes a list of cards on a narrow screen. A column is [key, title, cell of a row, class].
// With lines="two" a card has two lines: the cells "main" and "state", then the others without their titles.
// Roles stay explicit, because a table that is displayed as blocks loses them.
export function Table({ caption, columns, rows, keyOf, empty, lines }) {
  language.value;
  if (rows.length === 0) return html`<div class="sheet">${empty ?? html`<p class="muted">${t("none")}</p>`}</div>`;
  return html`<div class="sheet"><table role="table" class=${lines}><caption class="vh">${caption}</caption>
    <thead role="rowgroup"><tr role="row">${columns.map(([key, title, , style]) => html`
      <th key=${key} role="columnheader" scope="col" class=${style}>
        ${title || html`<span class="vh">${t("actions")}</span>`}</th>`)}</tr></thead>
    <tbody role="rowgroup">${rows.map((row) => html`
      <tr role="row" key=${keyOf(row)}>${columns.map(([key, title, cell, style]) => html`
        <td key=${key} role="cell" data-label=${title} class=${style}>${cell(row)}</td>`)}</tr>`)}</tbody></table>
  </div>`;
}

export function Pager({ info, onPage, onOlder }) {
  if (!info || (info.totalPages <= 1 && !info.olderBefore)) return null;
  const { currentPage: page, totalPages: pages, totalItems } = info;
  return html`<nav class="pager" aria-label=${t("pages")}>
    <${Button} disabled=${page <= 1} onClick=${() => onPage(page - 1)}>${t("page.before")}<//>
    <span>${t("page.of", { page, pages, items: totalItems })}</span>
    <${Button} disabled=${page >= pages} onClick=${() => onPage(page + 1)}>${t("page.next")}<//>
    ${info.olderBefore && html`<${Button} onClick=${() => onOlder(info.olderBefore)}>${t("page.older")}<//>`}</nav>`;
}

export const Empty = ({ icon, title, children }) => html`
  <div class="empty"><${Icon} name=${icon} /><h2>${title}</h2>${children}</div>`;

export const Head = ({ title, lead, children }) => html`<header class="head">
  <div><h1 tabindex="-1">${title}</h1>${lead && html`<p>${lead}</p>`}</div>
  ${children && html`<div class="actions">${children}</div>`}</header>`;

// A part of a page. "name" is the id of its heading, "action" stands next to it.
export const Section = ({ name, title, action, children }) => html`<section class="card" aria-labelledby=${name}>
  ${action ? html`<div class="row"><h2 id=${name}>${title}</h2>${action}</div>` : html`<h2 id=${name}>${title}</h2>`}
  ${children}</section>`;

// On a narrow screen the tabs scroll, and the current one is in view. "end" is a link on the right.
export function Tabs({ label, tabs, current, end }) {
  const element = useRef(null);
  useEffect(() => {
    element.current.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });
  }, [current, language.value]);
  return html`<nav class="tabs" aria-label=${label} ref=${element}><ul>
    ${tabs.map(([path, title]) => html`<li key=${path}>
      <a href=${href(path)} aria-current=${path === current ? "page" : undefined}>${title}</a></li>`)}
    ${end && html`<li class="end">${end}</li>`}</ul></nav>`;
}

// ---- icons: paths of 24 by 24, drawn as lines ----

const icons = {
  home: "M4 11 12 4l8 7M6 9.500V20h12V9.500M10 20v-6h4v6",
  add: "M12 5v14M5 12h14",
  orders: "M4 5h16v14H4zM4 15l4.500-4.500 4 4 2.500-2.500 5 5M15.500 9h.01",
  read: "M11 4a7 7 0 1 0 0 14 7 7 0 0 0 0-14zM16 16l5 5",
  code: "m8 7-5 5 5 5M16 7l5 5-5 5M14 4l-4 16",
  person: "M12 4a4 4 0 1 0 0 8 4 4 0 0 0 0-8zM4 21c0-4 3.500-6 8-6s8 2 8 6",
  gauge: "M4 17a8 8 0 1 1 16 0M12 17l4-5",
  close: "M6 6l12 12M18 6 6 18",
  menu: "M4 7h16M4 12h16M4 17h16",
  sun: "M12 8a4 4 0 1 0 0 8 4 4 0 0 0 0-8z" +
    "M12 2v2M12 20v2M2 12h2M20 12h2M5 5l1.500 1.500M17.500 17.500 19 19M19 5l-1.500 1.500M6.500 17.500 5 19",
  moon: "M20 14A8.500 8.500 0 0 1 10 4a8.500 8.500 0 1 0 10 10z",
  upload: "M12 16V5M7 9.500 12 4.500l5 5M4 16v4h16v-4",
  check: "m5 12.500 4.500 4.500L19 7.500",
  key: "M8 11a4 4 0 1 0 0 8 4 4 0 0 0 0-8zM11 12l9-9M16 7l3 3",
  shield: "M12 3 5 6v6c0 4.500 3 7.500 7 9 4-1.500 7-4.500 7-9V6z",
  drop: "M12 3c4 5 6 8 6 11a6 6 0 0 1-12 0c0-3 2-6 6-11z",
};
export const Icon = ({ name }) => html`
  <svg class="icon" viewBox="0 0 24 24" aria-hidden="true" focusable="false"><path d=${icons[name]} /></svg>`;
