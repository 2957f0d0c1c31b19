// API keys: create, show the value once, revoke.
import { html, useState } from "../lib/view.js";
import { get, post, remove, service } from "../lib/api.js";
import { t, day } from "../lib/text.js";
import {
  Badge, Button, Copy, Dialog, Empty, Failure, Field, Head, Loaded, Notice, Pager, Secret, Table, Tabs, Time,
  confirm, useForm, useLoad,
} from "../lib/ui.js";
import { route, go } from "../lib/route.js";

const TABS = [
  ["/developers", "keys.title"], ["/developers/webhooks", "webhooks.title"], ["/developers/requests", "requests.title"],
];

const SCOPES = ["all", "read", "antiAi", "watermarkEmbed", "watermarkExtract", "webhooks"];

export function DeveloperTabs() {
  const { path } = route.value;
  return html`<${Tabs} label=${t("developers.title")} tabs=${TABS.map(([to, key]) => [to, t(key)])}
    current=${path.startsWith("/developers/webhooks") ? "/developers/webhooks" : path}
    end=${html`<a href="/api/v2/docs" target="_blank" rel="noopener">${t("developers.docs")}</a>`} />`;
}

function stateOf({ revokedAt, expiresAt }) {
  if (revokedAt) return ["bad", "revoked"];
  return expiresAt && new Date(expiresAt) < new Date() ? ["", "expired"] : ["good", "active"];
}

function State({ entry }) {
  const [kind, word] = stateOf(entry);
  return html`<${Badge} kind=${kind}>${t(`keys.${word}`)}<//>`;
}

const Revoke = ({ entry, onRevoke }) => !entry.revokedAt && html`
  <${Button} kind="plain small danger" aria-label=${`${t("keys.revoke")}: ${entry.name}`}
    onClick=${() => onRevoke(entry)}>${t("keys.revoke")}<//>`;

const columns = (revoke) => [
  ["name", t("name"), (entry) => html`<strong>${entry.name}</strong>`, "main"],
  ["prefix", t("keys.prefix"), (entry) => html`<code class="short">${entry.prefix}…</code>`],
  ["scope", t("keys.scope"), ({ scopes }) => (scopes ?? ["all"]).map((scope) => t(`keys.scope.${scope}`)).join(", ")],
  ["state", t("orders.status"), (entry) => html`<${State} entry=${entry} />`],
  ["created", t("orders.created"), (entry) => html`<${Time} at=${entry.createdAt} />`],
  ["maker", t("keys.maker"), (entry) => entry.madeBy?.email ?? "–"],
  ["used", t("keys.used"), (entry) => html`<${Time} at=${entry.lastUsedAt} none=${t("never")} />`],
  ["expires", t("keys.expires"), (entry) => html`<span>${entry.expiresAt ? day(entry.expiresAt) : t("never")}</span>`],
  ["do", "", (entry) => html`<${Revoke} entry=${entry} onRevoke=${revoke} />`, "do"],
];

export function Keys() {
  const { page = "1" } = route.value.query;
  const keys = useLoad((signal) => get("/keys", { page, limit: 20 }, { signal }), [page]);
  const [isOpen, setOpen] = useState(false);
  const revoke = async ({ id, name }) => {
    const words = { title: t("keys.revokeTitle", { name }), text: t("keys.revokeText"), action: t("keys.revoke") };
    if (!await confirm(words)) return;
    await remove(`/keys/${id}`);
    keys.reload();
  };
  const create = html`<${Button} kind="primary" onClick=${() => setOpen(true)}>${t("keys.create")}<//>`;
  const empty = html`<${Empty} icon="key" title=${t("keys.empty")}><p>${t("keys.emptyText")}</p>${create}<//>`;
  return html`<${Head} title=${t("developers.title")} lead=${t("developers.lead")}>
      ${keys.data?.keys.length > 0 && create}<//><${DeveloperTabs} />
    <${Loaded} state=${keys}>${(data) => html`
      <${Table} caption=${t("keys.title")} columns=${columns(revoke)} rows=${data.keys} keyOf=${({ id }) => id}
        empty=${empty} />
      <${Pager} info=${data.pageInfo} onPage=${(number) => go("/developers", { page: number })} />`}<//>
    ${isOpen && html`<${Create} onClose=${() => { setOpen(false); keys.reload(); }} />`}`;
}

function Create({ onClose }) {
  const [key, setKey] = useState(null);
  const form = useForm({ name: "", scope: "all", expiresAt: "" }, async ({ name, scope, expiresAt }) => {
    const scopes = scope === "all" ? null : [scope];
    setKey(await post("/keys", { name, scopes, ...(expiresAt ? { expiresAt: `${expiresAt}T23:59:59.000Z` } : {}) }));
  });
  if (key) return html`<${Made} entry=${key} onClose=${onClose} />`;
  const today = new Date().toISOString().slice(0, 10);
  return html`<${Dialog} title=${t("keys.create")} onClose=${onClose}><form ...${form.form}>
    ${form.failure && html`<${Failure} error=${form.failure} />`}
    <${Field} label=${t("name")} hint=${t("keys.nameHint")} required autofocus ...${form.bind("name")} />
    <${Field} label=${t("keys.scope")} hint=${t("keys.scopeHint")} ...${form.bind("scope")}>
      ${SCOPES.map((scope) => html`<option key=${scope} value=${scope}>${t(`keys.scope.${scope}`)}</option>`)}<//>
    <${Field} label=${t("keys.expires")} hint=${t("keys.expiresHint")} type="date" min=${today}
      ...${form.bind("expiresAt")} />
    <footer class="actions"><${Button} onClick=${onClose}>${t("cancel")}<//>
      <${Button} type="submit" kind="primary" busy=${form.busy}>${t("keys.create")}<//></footer></form><//>`;
}

// A private stack has a certificate that only its own file confirms.
const isPrivate = (url) => ["127.0.0.1", "localhost"].includes(new URL(url).hostname);

// A first order for a terminal: create it, upload the picture, start. "$" stands for a variable of the shell.
function firstOrder(key) {
  const url = service.value.apiBaseUrl, curl = `curl -sS${isPrivate(url) ? ' --cacert "$IMGWARD_CA"' : ""}`;
  const api = `${curl} -H 'Authorization: Bearer ${key}' -H 'Content-Type: application/json'`;
  const member = (name) => `"$(printf %s "$order" | sed 's/.*"${name}":"\\([^"]*\\)".*/\\1/')"`;
  return [
    `order=$(${api} -d '{"idempotencyKey":"'$(date +%s)'","files":[{"fileName":"picture.jpg"}]}' '${url}/anti-ai')`,
    `${curl} -T picture.jpg ${member("uploadUrl")}`,
    `${api} -d '{"idempotencyKey":"'$(date +%s)'-start","orderId":"'${member("orderId")}'"}' '${url}/anti-ai/confirm'`,
  ].join("\n");
}

function Made({ entry: { value, scopes }, onClose }) {
  const curl = firstOrder(value), isOwnCertificate = isPrivate(service.value.apiBaseUrl);
  return html`<${Dialog} title=${t("keys.made")} onClose=${onClose}>
    <${Notice} kind="warning" title=${t("keys.once")} /><${Secret} label=${t("keys.value")} value=${value} />
    ${(scopes ?? ["antiAi"]).includes("antiAi") && html`
      <p>${t("keys.curl")} ${isOwnCertificate && t("keys.private", { name: "IMGWARD_CA" })}</p>
      <div class="secret"><div><code class="lines">${curl}</code>
        <${Copy} value=${curl} label=${`${t("copy")}: curl`} /></div></div>`}
    <footer class="actions"><${Button} kind="primary" onClick=${onClose}>${t("keys.stored")}<//></footer><//>`;
}
