// For the operator: accounts, users, queue, health.
import { html, useState } from "../lib/view.js";
import { get, patch, post, user } from "../lib/api.js";
import { t, day, known, number } from "../lib/text.js";
import { go, href, route } from "../lib/route.js";
import { Badge, Button, Dialog, Failure, Field, Head, Link, Loaded, Notice, Pager, Secret, Table, Tabs, Time, confirm, toast, useForm, useLoad } from "../lib/ui.js";
import { Limits } from "./overview.js";

const PLANS = ["free", "pro", "enterprise"];
const planName = (plan) => known(`plan.${plan}`, plan);
const AdminTabs = () => html`<${Tabs} label=${t("admin.title")} current=${route.value.path.startsWith("/admin/accounts") ? "/admin" : route.value.path}
  tabs=${[["/admin", t("admin.accounts")], ["/admin/users", t("admin.users")], ["/admin/queue", t("admin.queue")], ["/admin/health", t("admin.health")]]} />`;
const Top = ({ children }) => html`<${Head} title=${t("admin.title")}>${children}<//><${AdminTabs} />`;
const Standing = ({ status }) => html`<${Badge} kind=${status === "active" ? "good" : "bad"}>${known(`standing.${status}`, status)}<//>`;

export function Accounts() {
  const { page = "1", keyword = "", status = "" } = route.value.query;
  const state = useLoad((signal) => get("/admin/accounts", { page, limit: 20, keyword, status }, { signal }), [page, keyword, status]);
  const [isOpen, setOpen] = useState(false);
  const filter = (changes) => go("/admin", { keyword, status, ...changes }, true);
  const columns = [
    ["name", t("name"), (entry) => html`<${Link} to=${`/admin/accounts/${entry.id}`}>${entry.name}<//>`, "main"], ["plan", t("admin.plan"), (entry) => planName(entry.plan)],
    ["status", t("orders.status"), (entry) => html`<${Standing} status=${entry.status} />`], ["users", t("admin.users"), (entry) => number(entry.users ?? 0)],
    ["rate", t("admin.rate"), (entry) => number(entry.requestsPerMinute)], ["created", t("orders.created"), (entry) => day(entry.createdAt)],
  ];
  return html`<${Top}><${Button} kind="primary" onClick=${() => setOpen(true)}>${t("admin.create")}<//><//>
    <form class="filters" aria-label=${t("orders.search")} onSubmit=${(event) => event.preventDefault()}>
      <${Field} label=${t("orders.search")} type="search" value=${keyword} onValue=${(value) => filter({ keyword: value })} />
      <${Field} label=${t("orders.status")} value=${status} onValue=${(value) => filter({ status: value })}><option value="">${t("all")}</option>
        ${["active", "suspended"].map((word) => html`<option key=${word} value=${word}>${t(`standing.${word}`)}</option>`)}<//></form>
    <${Loaded} state=${state}>${(data) => html`<${Table} caption=${t("admin.accounts")} columns=${columns} rows=${data.accounts} keyOf=${(entry) => entry.id} />
      <${Pager} info=${data.pageInfo} onPage=${(value) => filter({ page: value })} />`}<//>
    ${isOpen && html`<${AccountNew} onClose=${() => { setOpen(false); state.reload(); }} />`}`;
}

const Plan = (bound) => html`<${Field} label=${t("admin.plan")} ...${bound}>${PLANS.map((word) => html`<option key=${word} value=${word}>${planName(word)}</option>`)}<//>`;

function AccountNew({ onClose }) {
  const [made, setMade] = useState(null);
  const form = useForm({ name: "", plan: "free", ownerEmail: "" }, async ({ ownerEmail, ...values }) =>
    setMade(await post("/admin/accounts", { ...values, ...(ownerEmail ? { ownerEmail } : {}) })));
  if (made) {
    return html`<${Dialog} title=${t("admin.made", { name: made.name })} onClose=${onClose}>${made.link && html`<p>${t("members.link")}</p><${Secret} label=${t("members.linkLabel")} value=${made.link} />`}
      <footer class="actions"><${Button} kind="primary" onClick=${onClose}>${t("close")}<//></footer><//>`;
  }
  return html`<${Dialog} title=${t("admin.create")} onClose=${onClose}><form ...${form.form}>${form.failure && html`<${Failure} error=${form.failure} />`}
    <${Field} label=${t("name")} autofocus ...${form.bind("name")} /><${Plan} ...${form.bind("plan")} />
    <${Field} label=${t("admin.owner")} hint=${t("admin.ownerHint")} type="email" ...${form.bind("ownerEmail")} />
    <footer class="actions"><${Button} onClick=${onClose}>${t("cancel")}<//><${Button} type="submit" kind="primary" busy=${form.busy}>${t("admin.create")}<//></footer></form><//>`;
}

export function Account({ id }) {
  const state = useLoad((signal) => get(`/admin/accounts/${id}`, {}, { signal }), [id]);
  return html`<p class="small"><a href=${href("/admin")}>← ${t("admin.accounts")}</a></p><${Loaded} state=${state} title=${t("admin.account")}>${(data) => html`<${AccountView} data=${data} reload=${state.reload} />`}<//>`;
}

function AccountView({ data, reload }) {
  const isActive = data.status === "active";
  const form = useForm({ name: data.name, plan: data.plan, requestsPerMinute: String(data.requestsPerMinute) }, async ({ requestsPerMinute, ...values }) => {
    const rate = requestsPerMinute === "" ? null : Number(requestsPerMinute);
    await patch(`/admin/accounts/${data.id}`, { ...values, ...(rate === data.requestsPerMinute ? {} : { requestsPerMinute: rate }) });
    toast(t("saved"));
    reload();
  });
  const suspend = async () => {
    if (isActive && !await confirm({ title: t("admin.suspendTitle", { name: data.name }), text: t("admin.suspendText"), action: t("admin.suspend") })) return;
    await patch(`/admin/accounts/${data.id}`, { status: isActive ? "suspended" : "active" });
    reload();
  };
  return html`<${Head} title=${data.name} lead=${html`<span class="facts"><${Standing} status=${data.status} /> <span>${planName(data.plan)}</span></span>`}>
      <${Button} kind=${isActive ? "plain danger" : "primary"} onClick=${suspend}>${t(isActive ? "admin.suspend" : "admin.resume")}<//><//>
    <section class="card" aria-labelledby="limits"><h2 id="limits">${t("admin.usage")}</h2><${Limits} limits=${data.usage?.limits ?? []} /></section>
    <section class="card" aria-labelledby="change"><h2 id="change">${t("edit")}</h2><form ...${form.form}>${form.failure && html`<${Failure} error=${form.failure} />`}
      <${Field} label=${t("name")} ...${form.bind("name")} /><${Plan} ...${form.bind("plan")} />
      <${Field} label=${t("admin.rate")} hint=${t("admin.rateHint")} type="number" min="1" ...${form.bind("requestsPerMinute")} />
      <${Button} type="submit" kind="primary" busy=${form.busy}>${t("save")}<//></form></section>
    <section class="card" aria-labelledby="quota"><h2 id="quota">${t("admin.quota")}</h2><${Quota} data=${data} reload=${reload} /></section>`;
}

function Quota({ data, reload }) {
  const names = (data.usage?.limits ?? []).map((entry) => entry.name);
  const form = useForm({ name: names[0] ?? "", value: "" }, async ({ name, value }) => {
    await patch(`/admin/accounts/${data.id}`, { quota: { [name]: value === "" ? null : Number(value) } });
    toast(t("saved"));
    reload();
  });
  return html`<form ...${form.form}>${form.failure && html`<${Failure} error=${form.failure} />`}
    <${Field} label=${t("admin.limit")} ...${form.bind("name")}>${names.map((name) => html`<option key=${name} value=${name}>${known(`limit.${name}`, name)}</option>`)}<//>
    <${Field} label=${t("admin.value")} hint=${t("admin.valueHint")} type="number" min="0" ...${form.bind("value")} />
    <${Button} type="submit" busy=${form.busy}>${t("save")}<//></form>`;
}

export function Users() {
  const { page = "1", keyword = "" } = route.value.query;
  const state = useLoad((signal) => get("/admin/users", { page, limit: 20, keyword }, { signal }), [page, keyword]);
  const [link, setLink] = useState(null);
  const change = async (entry, changes) => { await patch(`/admin/users/${entry.id}`, changes); state.reload(); };
  const reset = async (entry) => {
    if (!await confirm({ title: t("admin.resetTitle", { name: entry.name }), text: t("admin.resetText"), action: t("admin.reset"), kind: "primary" })) return;
    const made = await post(`/admin/users/${entry.id}/reset`);
    if (made.link) setLink(made.link); else toast(t("admin.resetSent"));
  };
  const isSelf = (entry) => entry.id === user.value.id;
  const columns = [
    ["name", t("name"), (entry) => html`<span><strong>${entry.name}</strong><br /><span class="muted small">${entry.email}</span></span>`, "main"],
    ["account", t("admin.account"), (entry) => html`<${Link} to=${`/admin/accounts/${entry.accountId}`}>${entry.accountName}<//>`], ["role", t("members.role"), (entry) => known(`role.${entry.role}`, entry.role)],
    ["state", t("orders.status"), (entry) => html`<${Badge} kind=${entry.isDisabled ? "bad" : "good"}>${t(entry.isDisabled ? "admin.disabled" : "admin.enabled")}<//>${entry.isAdmin && html` <${Badge}>${t("admin.operator")}<//>`}`],
    ["seen", t("members.seen"), (entry) => html`<${Time} at=${entry.lastSignInAt} none=${t("never")} />`],
    ["do", "", (entry) => !isSelf(entry) && html`<span class="actions"><${Button} kind="plain small" aria-label=${`${t("admin.reset")}: ${entry.name}`} onClick=${() => reset(entry)}>${t("admin.reset")}<//>
      <${Button} kind="plain small danger" aria-label=${`${t(entry.isDisabled ? "admin.enable" : "admin.disable")}: ${entry.name}`} onClick=${() => change(entry, { isDisabled: !entry.isDisabled })}>${t(entry.isDisabled ? "admin.enable" : "admin.disable")}<//></span>`, "do"],
  ];
  return html`<${Top} /><form class="filters" aria-label=${t("orders.search")} onSubmit=${(event) => event.preventDefault()}>
      <${Field} label=${t("orders.search")} type="search" value=${keyword} onValue=${(value) => go("/admin/users", { keyword: value }, true)} /></form>
    <${Loaded} state=${state}>${(data) => html`<${Table} caption=${t("admin.users")} columns=${columns} rows=${data.users} keyOf=${(entry) => entry.id} />
      <${Pager} info=${data.pageInfo} onPage=${(value) => go("/admin/users", { keyword, page: value })} />`}<//>
    ${link && html`<${Dialog} title=${t("admin.reset")} onClose=${() => setLink(null)}><p>${t("admin.resetLink")}</p><${Secret} label=${t("members.linkLabel")} value=${link} /><//>`}`;
}

export function Queue() {
  const { page = "1" } = route.value.query;
  const state = useLoad((signal) => get("/admin/queue", {}, { signal }), []);
  const jobs = useLoad((signal) => get("/admin/jobs", { status: "dead", page, limit: 20 }, { signal }), [page]);
  const retry = async (job) => { await post(`/admin/jobs/${job.id}/retry`); jobs.reload(); state.reload(); };
  const figures = ["queued", "running", "dead", "refused", "deliveriesPending"];
  const workers = [["name", t("name"), (entry) => entry.name, "main"], ["host", t("admin.host"), (entry) => entry.host], ["processes", t("admin.processes"), (entry) => entry.processes ?? "–"],
    ["seen", t("sessions.seen"), (entry) => html`<${Time} at=${entry.seenAt} />`], ["started", t("sessions.since"), (entry) => html`<${Time} at=${entry.startedAt} />`]];
  const columns = [["id", t("admin.job"), (job) => html`<code>${job.id}</code>`, "main"], ["kind", t("admin.kind"), (job) => job.kind], ["order", t("webhooks.order"), (job) => job.orderId],
    ["attempts", t("webhooks.attempts"), (job) => job.attempts], ["error", t("admin.error"), (job) => html`<span class="small long">${known(`reason.${job.error}`, job.error)}</span>`], ["at", t("webhooks.updated"), (job) => html`<${Time} at=${job.updatedAt} />`],
    ["do", "", (job) => job.canRetry && html`<${Button} kind="plain small" aria-label=${`${t("retry")}: ${job.id}`} onClick=${() => retry(job)}>${t("retry")}<//>`, "do"]];
  return html`<${Top}><${Button} onClick=${() => { state.reload(); jobs.reload(); }}>${t("reload")}<//><//>
    <${Loaded} state=${state}>${(data) => html`${data.isPaused && html`<${Notice} kind="warning" title=${t("admin.paused")} />`}<ul class="figures">${figures.map((name) => html`<li key=${name}><strong>${number(data[name] ?? 0)}</strong><span class="muted small">${t(`admin.${name}`)}</span></li>`)}
        <li><strong>${t("admin.seconds", { count: Math.round(data.oldestQueuedSeconds ?? 0) })}</strong><span class="muted small">${t("admin.oldest")}</span></li></ul>
      <section class="card" aria-labelledby="workers"><h2 id="workers">${t("admin.workers")}</h2>${data.workers.length === 0 && html`<${Notice} kind="error" title=${t("admin.noWorkers")} />`}
        ${data.workers.length > 0 && html`<${Table} caption=${t("admin.workers")} columns=${workers} rows=${data.workers} keyOf=${(entry) => entry.name} />`}</section>`}<//>
    <section class="card" aria-labelledby="dead"><h2 id="dead">${t("admin.deadJobs")}</h2><${Loaded} state=${jobs}>${(data) => html`<${Table} caption=${t("admin.deadJobs")} columns=${columns} rows=${data.jobs} keyOf=${(job) => job.id} />
      <${Pager} info=${data.pageInfo} onPage=${(value) => go("/admin/queue", { page: value })} />`}<//></section>`;
}

export function Health() {
  const state = useLoad((signal) => get("/admin/health", {}, { signal }), []);
  const columns = [["name", t("admin.check"), (entry) => html`<strong>${known(`check.${entry.name}`, entry.name)}</strong>`, "main"],
    ["status", t("orders.status"), (entry) => html`<${Badge} kind=${{ ok: "good", warning: "warning", failed: "bad" }[entry.status]}>${t(`health.${entry.status}`)}<//>`], ["message", t("audit.details"), (entry) => entry.message || "–"]];
  return html`<${Top}><${Button} onClick=${state.reload}>${t("reload")}<//><//>
    <${Loaded} state=${state}>${(data) => html`<${Table} caption=${t("admin.health")} columns=${columns} rows=${data.checks} keyOf=${(entry) => entry.name} />`}<//>`;
}
