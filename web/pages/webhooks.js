// Webhooks: create, edit, pause, rotate the secret, test, deliveries.
import { html, useState } from "../lib/view.js";
import { get, post, put, remove } from "../lib/api.js";
import { t, known, moment } from "../lib/text.js";
import { go, href, route } from "../lib/route.js";
import { Badge, Button, Dialog, Empty, Failure, Field, Head, Link, Loaded, Notice, Pager, Secret, Table, Time, confirm, toast, useForm, useLoad, usePoll } from "../lib/ui.js";
import { DeveloperTabs } from "./keys.js";

const BASE = "/v2/orders/webhooks";
const nameOf = (hook) => hook.name || hook.url;
const Active = ({ hook }) => html`<${Badge} kind=${hook.isActive ? "good" : "bad"}>${t(hook.isActive ? "webhooks.active" : "webhooks.paused")}<//>`;

export function Webhooks() {
  const { page = "1" } = route.value.query;
  const hooks = useLoad((signal) => get(BASE, { page, limit: 20 }, { signal }), [page]);
  const [isOpen, setOpen] = useState(false);
  const columns = [
    ["name", t("name"), (hook) => html`<${Link} to=${`/developers/webhooks/${hook.id}`}>${hook.name || t("webhooks.unnamed")}<//>`, "main"],
    ["url", t("webhooks.url"), (hook) => html`<code class="long">${hook.url}</code>`],
    ["state", t("orders.status"), (hook) => html`<${Active} hook=${hook} />`],
    ["updated", t("webhooks.updated"), (hook) => html`<${Time} at=${hook.updatedAt} />`],
  ];
  return html`<${Head} title=${t("developers.title")} lead=${t("webhooks.lead")}><${Button} kind="primary" onClick=${() => setOpen(true)}>${t("webhooks.create")}<//><//><${DeveloperTabs} />
    <${Loaded} state=${hooks}>${(data) => html`<${Table} caption=${t("webhooks.title")} columns=${columns} rows=${data.webhooks} keyOf=${(hook) => hook.id}
      empty=${html`<${Empty} icon="code" title=${t("webhooks.empty")}><p>${t("webhooks.emptyText")}</p><//>`} />
      <${Pager} info=${data.pageInfo} onPage=${(number) => go("/developers/webhooks", { page: number })} />`}<//>
    ${isOpen && html`<${Create} onClose=${(id) => { setOpen(false); if (id) go(`/developers/webhooks/${id}`); }} />`}`;
}

function Create({ onClose }) {
  const [hook, setHook] = useState(null);
  const form = useForm({ url: "", name: "" }, async ({ url, name }) => setHook(await post(BASE, { url, ...(name ? { name } : {}) })));
  if (hook) return html`<${SecretShown} title=${t("webhooks.made")} secret=${hook.secret} onClose=${() => onClose(hook.id)} />`;
  return html`<${Dialog} title=${t("webhooks.create")} onClose=${() => onClose()}><form ...${form.form}>
    ${form.failure && html`<${Failure} error=${form.failure} />`}
    <${Field} label=${t("webhooks.url")} hint=${t("webhooks.urlHint")} type="url" placeholder="https://" autofocus ...${form.bind("url")} />
    <${Field} label=${t("name")} maxlength="100" ...${form.bind("name")} />
    <footer class="actions"><${Button} onClick=${() => onClose()}>${t("cancel")}<//><${Button} type="submit" kind="primary" busy=${form.busy}>${t("webhooks.create")}<//></footer></form><//>`;
}

const SecretShown = ({ title, secret, until, onClose }) => html`<${Dialog} title=${title} onClose=${onClose}>
  <${Notice} kind="warning" title=${t("webhooks.once")} />${until && html`<p>${t("webhooks.until", { at: moment(until) })}</p>`}
  <${Secret} label=${t("webhooks.secret")} value=${secret} />
  <footer class="actions"><${Button} kind="primary" onClick=${onClose}>${t("keys.stored")}<//></footer><//>`;

export function Webhook({ id }) {
  const path = `${BASE}/${id}`, { page = "1" } = route.value.query;
  const hook = useLoad((signal) => get(path, {}, { signal }), [id]);
  const events = useLoad((signal) => get(`${path}/events`, { page, limit: 20 }, { signal }), [id, page]);
  usePoll(events.reload, (events.data?.events ?? []).some((event) => event.status === "PENDING"), 2000, 10000);
  const [secret, setSecret] = useState(null);
  const [isEditing, setEditing] = useState(false);
  const test = async () => { await post(`${path}/test`); toast(t("webhooks.tested")); events.reload(); };
  const pauseOrResume = async () => { await put(path, { isActive: !hook.data.isActive }); hook.reload(); };
  const rotate = async () => {
    if (!await confirm({ title: t("webhooks.rotateTitle", { name: nameOf(hook.data) }), text: t("webhooks.rotateText"), action: t("webhooks.rotate"), kind: "primary" })) return;
    setSecret(await post(`${path}/rotate-secret`));
  };
  const drop = async () => {
    if (!await confirm({ title: t("webhooks.deleteTitle", { name: nameOf(hook.data) }), text: t("webhooks.deleteText"), action: t("order.delete") })) return;
    await remove(path);
    go("/developers/webhooks");
  };
  const retry = async (event) => { await post(`${path}/events/${event.eventId}/retry`); events.reload(); };
  const columns = [
    ["type", t("webhooks.event"), (event) => html`<span>${event.eventType}</span>`, "main"],
    ["order", t("webhooks.order"), (event) => (event.orderId ? html`<${Link} to=${`/orders/${event.orderId}`}>${event.orderId}<//>` : "–")],
    ["status", t("orders.status"), (event) => html`<${Badge} kind=${{ DELIVERED: "good", FAILED: "bad" }[event.status] ?? "busy"}>${t(`webhooks.${event.status}`)}<//>
      ${event.status === "PENDING" && html` <span class="muted small"><${Time} at=${event.nextAttemptAt} /></span>`}`],
    ["answer", t("webhooks.answer"), (event) => html`<span>${event.responseStatus ?? "–"}${event.reason && html` <span class="muted small">${known(`reason.${event.reason}`, event.reason)}</span>`}</span>`],
    ["attempts", t("webhooks.attempts"), (event) => event.failedAttempts],
    ["at", t("webhooks.at"), (event) => html`<${Time} at=${event.occurredAt} />`],
    ["do", "", (event) => event.status !== "PENDING" && html`<${Button} kind="plain small" aria-label=${`${t("webhooks.retry")}: ${event.eventId}`} onClick=${() => retry(event)}>${t("webhooks.retry")}<//>`, "do"],
  ];
  return html`<p class="small"><a href=${href("/developers/webhooks")}>← ${t("webhooks.title")}</a></p>
    <${Loaded} state=${hook} title=${t("webhook.title")}>${(data) => html`
      <${Head} title=${data.name || t("webhooks.unnamed")} lead=${html`<span class="facts"><${Active} hook=${data} /> <code class="long">${data.url}</code></span>`}>
        <${Button} kind="primary" onClick=${test}>${t("webhooks.test")}<//><${Button} onClick=${() => setEditing(true)}>${t("edit")}<//>
        <${Button} onClick=${pauseOrResume}>${t(data.isActive ? "webhooks.pause" : "webhooks.resume")}<//><${Button} onClick=${rotate}>${t("webhooks.rotate")}<//>
        <${Button} kind="plain danger" onClick=${drop}>${t("order.delete")}<//><//>
      ${!data.isActive && data.inactiveReason && html`<${Notice} kind="warning" title=${known(`webhooks.${data.inactiveReason}`, data.inactiveReason)} />`}
      ${isEditing && html`<${Edit} hook=${data} path=${path} onClose=${() => { setEditing(false); hook.reload(); }} />`}`}<//>
    <section class="card" aria-labelledby="deliveries"><div class="row"><h2 id="deliveries">${t("webhooks.deliveries")}</h2><${Button} kind="plain small" onClick=${events.reload}>${t("reload")}<//></div>
      <${Loaded} state=${events}>${(data) => html`<${Table} caption=${t("webhooks.deliveries")} columns=${columns} rows=${data.events} keyOf=${(event) => event.eventId}
        empty=${html`<p class="muted">${t("webhooks.noEvents")}</p>`} /><${Pager} info=${data.pageInfo} onPage=${(number) => go(`/developers/webhooks/${id}`, { page: number })} />`}<//></section>
    ${secret && html`<${SecretShown} title=${t("webhooks.rotated")} secret=${secret.secret} until=${secret.previousSecretExpiresAt} onClose=${() => setSecret(null)} />`}`;
}

function Edit({ hook, path, onClose }) {
  const form = useForm({ url: hook.url, name: hook.name ?? "" }, async (values) => { await put(path, values); onClose(); });
  return html`<${Dialog} title=${t("webhooks.editTitle", { name: nameOf(hook) })} onClose=${onClose}><form ...${form.form}>
    ${form.failure && html`<${Failure} error=${form.failure} />`}
    <${Field} label=${t("name")} maxlength="100" autofocus ...${form.bind("name")} />
    <${Field} label=${t("webhooks.url")} type="url" ...${form.bind("url")} />
    <footer class="actions"><${Button} onClick=${onClose}>${t("cancel")}<//><${Button} type="submit" kind="primary" busy=${form.busy}>${t("save")}<//></footer></form><//>`;
}
