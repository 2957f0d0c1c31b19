// Webhooks: create, edit, pause, rotate the secret, test, deliveries.
import { html, useState } from "../lib/view.js";
import { get, post, put, remove, service } from "../lib/api.js";
import { t, duration, instant, known, moment } from "../lib/text.js";
import { go, href, route } from "../lib/route.js";
import {
  Badge, Button, Dialog, Empty, Failure, Field, Head, Link, Loaded, Notice, Pager, Search, Secret, Section, Stamp,
  Table, Time,
  confirm, toast, useForm, useLoad, usePoll,
} from "../lib/ui.js";
import { Body, Drawer, Facts, Kept } from "../lib/drawer.js";
import { DeveloperTabs } from "./keys.js";

const BASE = "/v2/orders/webhooks";
const nameOf = (hook) => hook.name || hook.url;
const Active = ({ hook }) => html`
  <${Badge} kind=${hook.isActive ? "good" : "bad"}>${t(hook.isActive ? "webhooks.active" : "webhooks.paused")}<//>`;

const hookColumns = () => [
  ["name", t("name"), (hook) => html`
    <${Link} to=${`/developers/webhooks/${hook.id}`}>${hook.name || t("webhooks.unnamed")}<//>`, "main"],
  ["url", t("webhooks.url"), (hook) => html`<code class="long">${hook.url}</code>`],
  ["state", t("orders.status"), (hook) => html`<${Active} hook=${hook} />`],
  ["updated", t("webhooks.updated"), (hook) => html`<${Time} at=${hook.updatedAt} />`],
];

export function Webhooks() {
  const { page = "1" } = route.value.query;
  const hooks = useLoad((signal) => get(BASE, { page, limit: 20 }, { signal }), [page]);
  const [isOpen, setOpen] = useState(false);
  const close = (id) => { setOpen(false); if (id) go(`/developers/webhooks/${id}`); };
  const create = html`<${Button} kind="primary" onClick=${() => setOpen(true)}>${t("webhooks.create")}<//>`;
  const empty = html`<${Empty} icon="code" title=${t("webhooks.empty")}><p>${t("webhooks.emptyText")}</p>${create}<//>`;
  return html`<${Head} title=${t("developers.title")} lead=${t("webhooks.lead")}>
      ${hooks.data?.webhooks.length > 0 && create}<//><${DeveloperTabs} />
    <${Loaded} state=${hooks}>${(data) => html`
      <${Table} caption=${t("webhooks.title")} columns=${hookColumns()} rows=${data.webhooks}
        keyOf=${(hook) => hook.id} empty=${empty} />
      <${Pager} info=${data.pageInfo} onPage=${(number) => go("/developers/webhooks", { page: number })} />`}<//>
    ${isOpen && html`<${Create} onClose=${close} />`}`;
}

function Create({ onClose }) {
  const [hook, setHook] = useState(null);
  const form = useForm({ url: "", name: "" }, async ({ url, name }) =>
    setHook(await post(BASE, { url, ...(name ? { name } : {}) })));
  if (hook) {
    return html`<${SecretShown} title=${t("webhooks.made")} secret=${hook.secret} onClose=${() => onClose(hook.id)} />`;
  }
  return html`<${Dialog} title=${t("webhooks.create")} onClose=${() => onClose()}><form ...${form.form}>
    ${form.failure && html`<${Failure} error=${form.failure} />`}
    <${Field} label=${t("webhooks.url")} hint=${t("webhooks.urlHint")} type="url" placeholder="https://" required
      autofocus ...${form.bind("url")} />
    <${Field} label=${t("name")} maxlength="100" ...${form.bind("name")} />
    <footer class="actions"><${Button} onClick=${() => onClose()}>${t("cancel")}<//>
      <${Button} type="submit" kind="primary" busy=${form.busy}>${t("webhooks.create")}<//></footer></form><//>`;
}

const SecretShown = ({ title, secret, until, onClose }) => html`<${Dialog} title=${title} onClose=${onClose}>
  <${Notice} kind="warning" title=${t("webhooks.once")} />
  ${until && html`<p>${t("webhooks.until", { at: moment(until) })}</p>`}
  <${Secret} label=${t("webhooks.secret")} value=${secret} />
  <footer class="actions"><${Button} kind="primary" onClick=${onClose}>${t("keys.stored")}<//></footer><//>`;

export function Webhook({ id }) {
  const hook = useLoad((signal) => get(`${BASE}/${id}`, {}, { signal }), [id]);
  return html`<p class="small"><a href=${href("/developers/webhooks")}>← ${t("webhooks.title")}</a></p>
    <${Loaded} state=${hook} title=${t("webhook.title")}>
      ${(data) => html`<${WebhookView} hook=${data} reload=${hook.reload} />`}<//>`;
}

function WebhookView({ hook, reload }) {
  const path = `${BASE}/${hook.id}`, { page = "1", status = "", keyword = "" } = route.value.query;
  const asked = { page, limit: 20, status, keyword };
  const events = useLoad((signal) => get(`${path}/events`, asked, { signal }), [hook.id, ...Object.values(asked)]);
  const [secret, setSecret] = useState(null);
  const [isEditing, setEditing] = useState(false);
  const test = async () => { await post(`${path}/test`); toast(t("webhooks.tested")); events.reload(); };
  const rotated = t("webhooks.rotateText", { time: duration(service.value.secretOverlapSeconds) });
  const rotate = async () => {
    const title = t("webhooks.rotateTitle", { name: nameOf(hook) });
    if (!await confirm({ title, text: rotated, action: t("webhooks.rotate"), kind: "primary" })) return;
    setSecret(await post(`${path}/rotate-secret`));
  };
  const lead = html`<span class="facts"><${Active} hook=${hook} /> <code class="long">${hook.url}</code></span>`;
  return html`<${Head} title=${hook.name || t("webhooks.unnamed")} lead=${lead}>
      <${Button} kind="primary" onClick=${test}>${t("webhooks.test")}<//>
      <${Button} onClick=${() => setEditing(true)}>${t("edit")}<//>
      <${PauseOrResume} hook=${hook} path=${path} reload=${reload} />
      <${Button} onClick=${rotate}>${t("webhooks.rotate")}<//>
      <${Delete} hook=${hook} path=${path} /><//>
    ${!hook.isActive && hook.inactiveReason && html`<${Inactive} reason=${hook.inactiveReason} />`}
    ${isEditing && html`<${Edit} hook=${hook} path=${path} onClose=${() => { setEditing(false); reload(); }} />`}
    <${Section} name="deliveries" title=${t("webhooks.deliveries")}
        action=${html`<${Button} kind="plain small" onClick=${events.reload}>${t("reload")}<//>`}>
      <${Deliveries} hook=${hook} path=${path} events=${events} /><//>
    ${secret && html`<${SecretShown} title=${t("webhooks.rotated")} secret=${secret.secret}
      until=${secret.previousSecretExpiresAt} onClose=${() => setSecret(null)} />`}`;
}

function PauseOrResume({ hook, path, reload }) {
  const change = async () => { await put(path, { isActive: !hook.isActive }); reload(); };
  return html`<${Button} onClick=${change}>${t(hook.isActive ? "webhooks.pause" : "webhooks.resume")}<//>`;
}

function Delete({ hook, path }) {
  const drop = async () => {
    const title = t("webhooks.deleteTitle", { name: nameOf(hook) });
    if (!await confirm({ title, text: t("webhooks.deleteText"), action: t("order.delete") })) return;
    await remove(path);
    go("/developers/webhooks");
  };
  return html`<${Button} kind="plain danger" onClick=${drop}>${t("order.delete")}<//>`;
}

function Inactive({ reason }) {
  const time = duration(service.value.webhookFailureSeconds);
  return html`<${Notice} kind="warning" title=${known(`webhooks.${reason}`, reason, { time })} />`;
}

// ---- deliveries ----

const KINDS = { DELIVERED: "good", FAILED: "bad" };

const EventStatus = ({ event: { status, nextAttemptAt } }) => html`
  <${Badge} kind=${KINDS[status] ?? "busy"}>${t(`webhooks.${status}`)}<//>
  ${status === "PENDING" && html` <span class="muted small"><${Time} at=${nextAttemptAt} /></span>`}`;

const Answer = ({ event: { responseStatus, reason } }) => html`<span>${responseStatus ?? "–"}
  ${reason && html` <span class="muted small">
    ${known(`reason.${reason}`, html`<code>${reason}</code>`)}</span>`}</span>`;

const Retry = ({ event, onRetry }) => event.status !== "PENDING" && html`
  <${Button} kind="plain small" aria-label=${`${t("webhooks.retry")}: ${event.eventId}`}
    onClick=${() => onRetry(event)}>${t("webhooks.retry")}<//>`;

const Open = ({ event, onOpen }) => html`<button type="button" class="open" onClick=${() => onOpen(event)}>
  <code>${event.eventType}</code></button>`;

const eventColumns = (retry, open) => [
  ["type", t("webhooks.event"), (event) => html`<${Open} event=${event} onOpen=${open} />`, "main"],
  ["order", t("webhooks.order"), ({ orderId }) =>
    (orderId ? html`<${Link} to=${`/orders/${orderId}`}>${orderId}<//>` : "–")],
  ["status", t("orders.status"), (event) => html`<${EventStatus} event=${event} />`, "state"],
  ["answer", t("webhooks.answer"), (event) => html`<${Answer} event=${event} />`],
  ["at", t("webhooks.at"), (event) => html`<${Stamp} at=${event.occurredAt} />`],
  ["do", "", (event) => html`<${Retry} event=${event} onRetry=${retry} />`, "do"],
];

const headersOf = (lines) => lines.map((line) => {
  const [name, ...rest] = line.split(": ");
  return [name, name, html`<code>${rest.join(": ")}</code>`];
});

// What was signed, in the form of Standard Webhooks: id, time and body, with points between them.
function Signed({ headers }) {
  const value = (name) => headers.find((line) => line.startsWith(`${name}: `))?.split(": ")[1] ?? "";
  return html`<p class="muted small">${t("delivery.signed")}
    ${" "}<code>${value("webhook-id")}.${value("webhook-timestamp")}.${t("delivery.body")}</code></p>`;
}

const Exchange = ({ headers, payload, responseBody }) => html`
  <section class="body"><h3>${t("delivery.headers")}</h3><${Facts} facts=${headersOf(headers)} />
    <${Signed} headers=${headers} /></section>
  <${Body} title=${t("delivery.payload")} text=${payload} />
  <${Body} title=${t("bodies.response")} text=${responseBody} />
  <p class="muted small">${t("delivery.note")}</p>`;

function Delivery({ hook, event, onClose }) {
  const facts = [
    ["status", t("orders.status"), html`<${EventStatus} event=${event} />`],
    ["answer", t("webhooks.answer"), html`<${Answer} event=${event} />`],
    ["url", t("webhooks.url"), html`<code>POST ${hook.url}</code>`],
    ["at", t("webhooks.at"), instant(event.occurredAt)],
    ["last", t("delivery.last"), event.lastAttemptAt ? instant(event.lastAttemptAt) : "–"],
    ["attempts", t("webhooks.attempts"), event.failedAttempts],
    ["id", t("delivery.id"), html`<code>${event.eventId}</code>`],
  ];
  return html`<${Drawer} title=${html`<code>${event.eventType}</code>`} onClose=${onClose}><${Facts} facts=${facts} />
    <${Kept} path=${`/webhooks/${hook.id}/events/${event.eventId}/bodies`} none=${t("delivery.none")}>
      ${(data) => html`<${Exchange} ...${data} />`}<//><//>`;
}

const STATES = ["PENDING", "DELIVERED", "FAILED"];

const DeliveryFilters = ({ query: { status = "", keyword = "" }, onFilter }) => html`
  <form class="filters" aria-label=${t("orders.search")} onSubmit=${(event) => event.preventDefault()}>
    <${Search} label=${t("orders.search")} hint=${t("delivery.searchHint")} value=${keyword}
      onValue=${(value) => onFilter({ keyword: value }, true)} />
    <${Field} label=${t("orders.status")} value=${status} onValue=${(value) => onFilter({ status: value })}>
      <option value="">${t("all")}</option>
      ${STATES.map((word) => html`<option key=${word} value=${word}>${t(`webhooks.${word}`)}</option>`)}<//></form>`;

function Deliveries({ hook, path, events }) {
  const { query } = route.value, isFiltered = query.status || query.keyword, place = `/developers/webhooks/${hook.id}`;
  const [opened, setOpened] = useState(null);
  const filter = (changes, isTyped) => go(place, { ...query, page: "", ...changes }, isTyped);
  const empty = isFiltered ? html`<${Empty} icon="read" title=${t("delivery.nothing")}>
    <${Button} onClick=${() => go(place)}>${t("delivery.clear")}<//><//>`
    : html`<p class="muted">${t("webhooks.noEvents")}</p>`;
  usePoll(events.reload, (events.data?.events ?? []).some((event) => event.status === "PENDING"), 2000, 10000);
  const retry = async (event) => { await post(`${path}/events/${event.eventId}/retry`); events.reload(); };
  return html`<${DeliveryFilters} query=${query} onFilter=${filter} />
    <${Loaded} state=${events}>${(data) => html`
      <${Table} caption=${t("webhooks.deliveries")} columns=${eventColumns(retry, setOpened)} rows=${data.events}
        keyOf=${(event) => event.eventId} empty=${empty} lines="two" />
      <${Pager} info=${data.pageInfo} onPage=${(page) => go(place, { ...query, page })} />`}<//>
    ${opened && html`<${Delivery} hook=${hook} event=${opened} onClose=${() => setOpened(null)} />`}`;
}

function Edit({ hook, path, onClose }) {
  const form = useForm({ url: hook.url, name: hook.name ?? "" }, async (values) => {
    await put(path, values);
    onClose();
  });
  return html`<${Dialog} title=${t("webhooks.editTitle", { name: nameOf(hook) })} onClose=${onClose}>
    <form ...${form.form}>${form.failure && html`<${Failure} error=${form.failure} />`}
      <${Field} label=${t("name")} maxlength="100" autofocus ...${form.bind("name")} />
      <${Field} label=${t("webhooks.url")} type="url" required ...${form.bind("url")} />
      <footer class="actions"><${Button} onClick=${onClose}>${t("cancel")}<//>
        <${Button} type="submit" kind="primary" busy=${form.busy}>${t("save")}<//></footer></form><//>`;
}
