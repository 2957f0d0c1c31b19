// The newest requests of the account, with filters in the URL.
import { html, useState } from "../lib/view.js";
import { get, service } from "../lib/api.js";
import { t, instant, number } from "../lib/text.js";
import { go, route } from "../lib/route.js";
import { Badge, Button, Empty, Field, Head, Link, Loaded, Pager, Stamp, Table, useForm, useLoad } from "../lib/ui.js";
import { Body, Drawer, Facts, Kept } from "../lib/drawer.js";
import { DeveloperTabs } from "./keys.js";

const PATH = "/developers/requests";
const METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE"].map((word) => [word, word]);
const STATUSES = ["2xx", "4xx", "5xx"].map((word) => [word, word]);
const kindOf = (status) => (status < 400 ? "good" : status < 500 ? "warning" : "bad");

// A request of less than a millisecond took some time, too.
export const took = (ms) => (ms < 1000 ? t("requests.milliseconds", { count: ms < 1 ? "< 1" : ms })
  : t("requests.seconds", { count: number(Math.round(ms / 100) / 10) }));

const Status = ({ row }) => html`<${Badge} kind=${kindOf(row.status)}>${row.status}<//>
  ${row.code && html` <code>${row.code}</code>`}`;

const Open = ({ row, onOpen }) => html`<button type="button" class="open" onClick=${() => onOpen(row)}>
  <code class="long">${row.method} ${row.path}</code></button>`;

const columns = (keyName, open) => [
  ["at", t("requests.at"), (row) => html`<${Stamp} at=${row.at} />`],
  ["request", t("requests.request"), (row) => html`<${Open} row=${row} onOpen=${open} />`, "main"],
  ["status", t("orders.status"), (row) => html`<${Status} row=${row} />`, "state"],
  ["key", t("requests.key"), (row) => (row.keyId ? keyName(row.keyId) : t("requests.console")), "short"],
  ["ms", t("requests.ms"), ({ milliseconds: ms }) => took(ms), "short"],
  ["id", t("requests.id"), (row) => html`<code class="cut" title=${row.requestId}>${row.requestId}</code>`, "rare"],
];

const Bodies = ({ requestBody, responseBody }) => html`<${Body} title=${t("bodies.request")} text=${requestBody} />
  <${Body} title=${t("bodies.response")} text=${responseBody} />
  <p class="muted small">${t("bodies.note", { days: service.value.requestLogDays })}</p>`;

// The service keeps no bodies of reads that succeed.
const isReadOnly = ({ method, status }) => ["GET", "HEAD"].includes(method) && status < 400;

function Request({ row, keyName, onClose }) {
  const facts = [
    ["status", t("orders.status"), html`<${Status} row=${row} />`], ["at", t("requests.at"), instant(row.at)],
    ["ms", t("requests.ms"), took(row.milliseconds)], ["key", t("requests.key"), keyName(row.keyId)],
    ["id", t("requests.id"), html`<code>${row.requestId}</code>`],
  ];
  return html`<${Drawer} title=${html`<code>${row.method} ${row.path}</code>`}
      onClose=${onClose}><${Facts} facts=${facts} />
    ${isReadOnly(row) ? html`<p class="muted">${t("bodies.reads")}</p>` : html`
      <${Kept} path=${`/requests/${encodeURIComponent(row.requestId)}/bodies`} none=${t("bodies.none")}>
        ${(data) => html`<${Bodies} ...${data} />`}<//>`}<//>`;
}

const Nothing = ({ isFiltered }) => (isFiltered ? html`
  <${Empty} icon="read" title=${t("requests.empty")}>
    <${Button} onClick=${() => go(PATH)}>${t("requests.clear")}<//><//>` : html`
  <${Empty} icon="code" title=${t("requests.none")}><p>${t("requests.noneText")}</p>
    <${Link} to="/developers" class="button primary">${t("keys.title")}<//><//>`);

const Select = ({ label, value, options, onValue }) => html`<${Field} label=${label} value=${value} onValue=${onValue}>
  <option value="">${t("all")}</option>
  ${options.map(([word, title]) => html`<option key=${word} value=${word}>${title}</option>`)}<//>`;

export function Requests() {
  const { query } = route.value;
  const { page = "1", method = "", status = "", code = "", keyId = "", requestId = "", before = "" } = query;
  const asked = { page, limit: 50, method, status, code, keyId, requestId, before };
  const found = useLoad((signal) => get("/requests", asked, { signal }), Object.values(asked));
  const keys = useLoad((signal) => get("/keys", { limit: 100 }, { signal }), []);
  const filter = (changes) => go(PATH, { ...query, page: "", before: "", ...changes });
  const form = useForm({ code, requestId }, async (values) =>
    filter({ code: values.code.trim(), requestId: values.requestId.trim() }));
  const names = (keys.data?.keys ?? []).map(({ id, name }) => [id, name]);
  const [opened, setOpened] = useState(null);
  const keyName = (id) => names.find(([other]) => other === id)?.[1] ?? id;
  const isFiltered = method || status || code || keyId || requestId || before;
  const lead = t("requests.lead", { days: service.value.requestLogDays });
  return html`<${Head} title=${t("developers.title")} lead=${lead}>
      <${Button} onClick=${found.reload}>${t("reload")}<//><//><${DeveloperTabs} />
    <form class="filters" aria-label=${t("orders.search")} ...${form.form}>
      <${Select} label=${t("requests.method")} value=${method} options=${METHODS}
        onValue=${(value) => filter({ method: value })} />
      <${Select} label=${t("orders.status")} value=${status} options=${STATUSES}
        onValue=${(value) => filter({ status: value })} />
      <${Select} label=${t("requests.key")} value=${keyId} options=${names}
        onValue=${(value) => filter({ keyId: value })} />
      <${Field} label=${t("requests.code")} ...${form.bind("code")} />
      <${Field} label=${t("requests.id")} ...${form.bind("requestId")} />
      <${Button} type="submit">${t("requests.filter")}<//></form>
    <${Loaded} state=${found}>${(data) => html`
      <${Table} caption=${t("requests.title")} columns=${columns(keyName, setOpened)} rows=${data.requests} lines="two"
        keyOf=${(row) => row.requestId} empty=${html`<${Nothing} isFiltered=${isFiltered} />`} />
      <${Pager} info=${data.pageInfo} onPage=${(value) => go(PATH, { ...query, page: value })}
        onOlder=${(id) => filter({ before: id })} />`}<//>
    ${opened && html`<${Request} row=${opened} keyName=${keyName} onClose=${() => setOpened(null)} />`}`;
}
