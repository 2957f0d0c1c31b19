// The requests of the last seven days, with filters in the URL.
import { html } from "../lib/view.js";
import { get } from "../lib/api.js";
import { t, moment, number } from "../lib/text.js";
import { go, route } from "../lib/route.js";
import { Badge, Button, Empty, Field, Head, Loaded, Pager, Table, useForm, useLoad } from "../lib/ui.js";
import { DeveloperTabs } from "./keys.js";

const kindOf = (status) => (status < 400 ? "good" : status < 500 ? "warning" : "bad");

export function Requests() {
  const { query } = route.value;
  const { page = "1", method = "", status = "", code = "", keyId = "", requestId = "", before = "" } = query;
  const found = useLoad((signal) => get("/requests", { page, limit: 50, method, status, code, keyId, requestId, before }, { signal }), [page, method, status, code, keyId, requestId, before]);
  const keys = useLoad((signal) => get("/keys", { limit: 100 }, { signal }), []);
  const filter = (changes) => go("/developers/requests", { ...query, page: "", before: "", ...changes });
  const form = useForm({ code, requestId }, async (values) => filter({ code: values.code.trim(), requestId: values.requestId.trim() }));
  const keyName = (id) => keys.data?.keys.find((key) => key.id === id)?.name ?? id;
  const columns = [
    ["at", t("requests.at"), (row) => html`<time class="small" datetime=${row.at}>${moment(row.at)}</time>`],
    ["request", t("requests.request"), (row) => html`<code class="long">${row.method} ${row.path}</code>`, "main"],
    ["status", t("orders.status"), (row) => html`<${Badge} kind=${kindOf(row.status)}>${row.status}<//>${row.code && html` <span class="small">${row.code}</span>`}`],
    ["key", t("requests.key"), (row) => (row.keyId ? keyName(row.keyId) : t("requests.console"))],
    ["ms", t("requests.ms"), (row) => t("requests.milliseconds", { count: number(row.milliseconds) })],
    ["id", t("requests.id"), (row) => html`<code class="cut" title=${row.requestId}>${row.requestId}</code>`],
  ];
  return html`<${Head} title=${t("developers.title")} lead=${t("requests.lead")}><${Button} onClick=${found.reload}>${t("reload")}<//><//><${DeveloperTabs} />
    <form class="filters" aria-label=${t("orders.search")} ...${form.form}>
      <${Field} label=${t("requests.method")} value=${method} onValue=${(value) => filter({ method: value })}><option value="">${t("all")}</option>
        ${["GET", "POST", "PUT", "PATCH", "DELETE"].map((word) => html`<option key=${word}>${word}</option>`)}<//>
      <${Field} label=${t("orders.status")} value=${status} onValue=${(value) => filter({ status: value })}><option value="">${t("all")}</option>
        ${["2xx", "4xx", "5xx"].map((word) => html`<option key=${word}>${word}</option>`)}<//>
      <${Field} label=${t("requests.key")} value=${keyId} onValue=${(value) => filter({ keyId: value })}><option value="">${t("all")}</option>
        ${(keys.data?.keys ?? []).map((key) => html`<option key=${key.id} value=${key.id}>${key.name}</option>`)}<//>
      <${Field} label=${t("requests.code")} ...${form.bind("code")} /><${Field} label=${t("requests.id")} ...${form.bind("requestId")} />
      <${Button} type="submit">${t("requests.filter")}<//></form>
    <${Loaded} state=${found}>${(data) => html`<${Table} caption=${t("requests.title")} columns=${columns} rows=${data.requests} keyOf=${(row) => row.requestId}
      empty=${html`<${Empty} icon="code" title=${t("requests.empty")} />`} /><${Pager} info=${data.pageInfo} onPage=${(value) => go("/developers/requests", { ...query, page: value })} onOlder=${(id) => filter({ before: id })} />`}<//>`;
}
