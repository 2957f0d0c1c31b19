// API keys: create, show the value once, revoke.
import { html, useState } from "../lib/view.js";
import { get, post, remove, service } from "../lib/api.js";
import { t, day } from "../lib/text.js";
import { Badge, Button, Copy, Dialog, Empty, Failure, Field, Head, Loaded, Notice, Pager, Secret, Table, Tabs, Time, confirm, useForm, useLoad } from "../lib/ui.js";
import { route, go } from "../lib/route.js";

export const DeveloperTabs = () => html`<${Tabs} label=${t("developers.title")} current=${route.value.path.startsWith("/developers/webhooks") ? "/developers/webhooks" : route.value.path}
  tabs=${[["/developers", t("keys.title")], ["/developers/webhooks", t("webhooks.title")], ["/developers/requests", t("requests.title")]]} />
  <p class="small"><a href="/api/v2/docs" target="_blank" rel="noopener">${t("developers.docs")}</a></p>`;

const state = (key) => (key.revokedAt ? ["bad", "revoked"] : key.expiresAt && new Date(key.expiresAt) < new Date() ? ["", "expired"] : ["good", "active"]);

export function Keys() {
  const { page = "1" } = route.value.query;
  const keys = useLoad((signal) => get("/keys", { page, limit: 20 }, { signal }), [page]);
  const [isOpen, setOpen] = useState(false);
  const revoke = async (key) => {
    if (!await confirm({ title: t("keys.revokeTitle", { name: key.name }), text: t("keys.revokeText"), action: t("keys.revoke") })) return;
    await remove(`/keys/${key.id}`);
    keys.reload();
  };
  const columns = [
    ["name", t("name"), (key) => html`<strong>${key.name}</strong>`, "main"],
    ["prefix", t("keys.prefix"), (key) => html`<code>${key.prefix}…</code>`],
    ["state", t("orders.status"), (key) => { const [kind, word] = state(key); return html`<${Badge} kind=${kind}>${t(`keys.${word}`)}<//>`; }],
    ["created", t("orders.created"), (key) => html`<${Time} at=${key.createdAt} />`],
    ["maker", t("keys.maker"), (key) => key.madeBy?.email ?? "–"],
    ["used", t("keys.used"), (key) => html`<${Time} at=${key.lastUsedAt} none=${t("never")} />`],
    ["expires", t("keys.expires"), (key) => html`<span>${key.expiresAt ? day(key.expiresAt) : t("never")}</span>`],
    ["do", "", (key) => !key.revokedAt && html`<${Button} kind="plain small danger" aria-label=${`${t("keys.revoke")}: ${key.name}`} onClick=${() => revoke(key)}>${t("keys.revoke")}<//>`, "do"],
  ];
  return html`<${Head} title=${t("developers.title")} lead=${t("developers.lead")}><${Button} kind="primary" onClick=${() => setOpen(true)}>${t("keys.create")}<//><//><${DeveloperTabs} />
    <${Loaded} state=${keys}>${(data) => html`<${Table} caption=${t("keys.title")} columns=${columns} rows=${data.keys} keyOf=${(key) => key.id}
      empty=${html`<${Empty} icon="key" title=${t("keys.empty")}><p>${t("keys.emptyText")}</p><//>`} />
      <${Pager} info=${data.pageInfo} onPage=${(number) => go("/developers", { page: number })} />`}<//>
    ${isOpen && html`<${Create} onClose=${() => { setOpen(false); keys.reload(); }} />`}`;
}

function Create({ onClose }) {
  const [key, setKey] = useState(null);
  const limits = useLoad(() => service(), []);
  const form = useForm({ name: "", expiresAt: "" }, async ({ name, expiresAt }) => {
    setKey(await post("/keys", { name, ...(expiresAt ? { expiresAt: `${expiresAt}T23:59:59.000Z` } : {}) }));
  });
  if (key) {
    const base = limits.data?.apiBaseUrl ?? `${location.origin}/api/v2/orders`;
    const curl = `curl -H 'Authorization: Bearer ${key.value}' '${base}?limit=1'`;
    return html`<${Dialog} title=${t("keys.made")} onClose=${onClose}><${Notice} kind="warning" title=${t("keys.once")} />
      <${Secret} label=${t("keys.value")} value=${key.value} />
      <p>${t("keys.curl")}</p><div class="secret"><div><code>${curl}</code><${Copy} value=${curl} label=${`${t("copy")}: curl`} /></div></div>
      <footer class="actions"><${Button} kind="primary" onClick=${onClose}>${t("keys.stored")}<//></footer><//>`;
  }
  const today = new Date().toISOString().slice(0, 10);
  return html`<${Dialog} title=${t("keys.create")} onClose=${onClose}><form ...${form.form}>
    ${form.failure && html`<${Failure} error=${form.failure} />`}
    <${Field} label=${t("name")} hint=${t("keys.nameHint")} autofocus ...${form.bind("name")} />
    <${Field} label=${t("keys.expires")} hint=${t("keys.expiresHint")} type="date" min=${today} ...${form.bind("expiresAt")} />
    <footer class="actions"><${Button} onClick=${onClose}>${t("cancel")}<//><${Button} type="submit" kind="primary" busy=${form.busy}>${t("keys.create")}<//></footer></form><//>`;
}
