// A drawer on the right of the page with the details of an entry of a log: facts, and the bodies that were kept.
import { html } from "./view.js";
import { get } from "./api.js";
import { t } from "./text.js";
import { Copy, Dialog, Failure, useLoad } from "./ui.js";

// A fact is [key, title, value].
export const Facts = ({ facts }) => html`<dl class="facts-list">${facts.map(([key, title, value]) => html`
  <div key=${key}><dt>${title}</dt><dd>${value}</dd></div>`)}</dl>`;

// JSON gets lines. A text that was cut, or that is no JSON, stays as it is.
function spread(text) {
  try { return JSON.stringify(JSON.parse(text), null, 2); } catch { return text; }
}

export const Body = ({ title, text }) => html`<section class="body">
  <div class="row"><h3>${title}</h3>${text && html`<${Copy} value=${text} label=${`${t("copy")}: ${title}`} />`}</div>
  ${text ? html`<pre tabindex="0" role="region" aria-label=${title}><code>${spread(text)}</code></pre>`
    : html`<p class="muted small">${t("bodies.empty")}</p>`}</section>`;

// Loads what is kept of an entry; "children" gets it. Much is kept for a short time only, so its absence is no error.
export function Kept({ path, none, children }) {
  const state = useLoad((signal) => get(path, {}, { signal }), [path]);
  if (state.data) return children(state.data);
  if (state.error?.status === 404) return html`<p class="muted">${none}</p>`;
  if (state.error) return html`<${Failure} error=${state.error} retry=${state.reload} />`;
  return html`<div class="skeleton" aria-busy="true"><span class="vh">${t("loading")}</span></div>`;
}

export const Drawer = ({ title, onClose, children }) => html`
  <${Dialog} title=${title} onClose=${onClose} kind="drawer">${children}<//>`;
