// For the operator: accounts, users, queue, health.
import { html, useState } from "../lib/view.js";
import { get, patch, post, user } from "../lib/api.js";
import { t, day, known, number, say } from "../lib/text.js";
import { go, href, route } from "../lib/route.js";
import {
  Badge, Button, Dialog, Failure, Field, Head, Link, Loaded, Notice, Pager, Secret, Section, Table, Tabs, Time,
  confirm, toast, useForm, useLoad,
} from "../lib/ui.js";
import { Limits } from "./overview.js";

const PLANS = ["free", "pro", "enterprise"];
const TABS = [
  ["/admin", "admin.accounts"], ["/admin/users", "admin.users"], ["/admin/queue", "admin.queue"],
  ["/admin/health", "admin.health"],
];
const planName = (plan) => known(`plan.${plan}`, plan);

function AdminTabs() {
  const { path } = route.value;
  return html`<${Tabs} label=${t("admin.title")} current=${path.startsWith("/admin/accounts") ? "/admin" : path}
    tabs=${TABS.map(([to, key]) => [to, t(key)])} />`;
}

const Top = ({ children }) => html`<${Head} title=${t("admin.title")}>${children}<//><${AdminTabs} />`;

const Standing = ({ status }) => html`
  <${Badge} kind=${status === "active" ? "good" : "bad"}>${known(`standing.${status}`, status)}<//>`;

const Keyword = ({ value, onValue }) => html`
  <${Field} label=${t("orders.search")} type="search" value=${value} onValue=${onValue} />`;

// ---- accounts ----

const accountColumns = () => [
  ["name", t("name"), (entry) => html`<${Link} to=${`/admin/accounts/${entry.id}`}>${entry.name}<//>`, "main"],
  ["plan", t("admin.plan"), (entry) => planName(entry.plan)],
  ["status", t("orders.status"), (entry) => html`<${Standing} status=${entry.status} />`],
  ["users", t("admin.users"), (entry) => number(entry.users ?? 0)],
  ["rate", t("admin.rate"), (entry) => number(entry.requestsPerMinute)],
  ["created", t("orders.created"), (entry) => day(entry.createdAt)],
];

export function Accounts() {
  const { page = "1", keyword = "", status = "" } = route.value.query;
  const query = { page, limit: 20, keyword, status };
  const state = useLoad((signal) => get("/admin/accounts", query, { signal }), [page, keyword, status]);
  const [isOpen, setOpen] = useState(false);
  const filter = (changes) => go("/admin", { keyword, status, ...changes }, true);
  const close = () => { setOpen(false); state.reload(); };
  return html`<${Top}><${Button} kind="primary" onClick=${() => setOpen(true)}>${t("admin.create")}<//><//>
    <form class="filters" aria-label=${t("orders.search")} onSubmit=${(event) => event.preventDefault()}>
      <${Keyword} value=${keyword} onValue=${(value) => filter({ keyword: value })} />
      <${Field} label=${t("orders.status")} value=${status} onValue=${(value) => filter({ status: value })}>
        <option value="">${t("all")}</option>
        ${["active", "suspended"].map((word) => html`
          <option key=${word} value=${word}>${t(`standing.${word}`)}</option>`)}<//></form>
    <${Loaded} state=${state}>${(data) => html`
      <${Table} caption=${t("admin.accounts")} columns=${accountColumns()} rows=${data.accounts}
        keyOf=${(entry) => entry.id} />
      <${Pager} info=${data.pageInfo} onPage=${(value) => filter({ page: value })} />`}<//>
    ${isOpen && html`<${AccountNew} onClose=${close} />`}`;
}

const Plan = (bound) => html`<${Field} label=${t("admin.plan")} ...${bound}>
  ${PLANS.map((word) => html`<option key=${word} value=${word}>${planName(word)}</option>`)}<//>`;

function AccountNew({ onClose }) {
  const [made, setMade] = useState(null);
  const form = useForm({ name: "", plan: "free", ownerEmail: "" }, async ({ ownerEmail, ...values }) =>
    setMade(await post("/admin/accounts", { ...values, ...(ownerEmail ? { ownerEmail } : {}) })));
  if (made) return html`<${AccountMade} made=${made} onClose=${onClose} />`;
  return html`<${Dialog} title=${t("admin.create")} onClose=${onClose}><form ...${form.form}>
    ${form.failure && html`<${Failure} error=${form.failure} />`}
    <${Field} label=${t("name")} required autofocus ...${form.bind("name")} />
    <${Plan} ...${form.bind("plan")} />
    <${Field} label=${t("admin.owner")} hint=${t("admin.ownerHint")} type="email" ...${form.bind("ownerEmail")} />
    <footer class="actions"><${Button} onClick=${onClose}>${t("cancel")}<//>
      <${Button} type="submit" kind="primary" busy=${form.busy}>${t("admin.create")}<//></footer></form><//>`;
}

const AccountMade = ({ made, onClose }) => html`
  <${Dialog} title=${t("admin.made", { name: made.name })} onClose=${onClose}>
    ${made.link && html`<p>${t("members.link")}</p><${Secret} label=${t("members.linkLabel")} value=${made.link} />`}
    <footer class="actions"><${Button} kind="primary" onClick=${onClose}>${t("close")}<//></footer><//>`;

// ---- one account ----

export function Account({ id }) {
  const state = useLoad((signal) => get(`/admin/accounts/${id}`, {}, { signal }), [id]);
  return html`<p class="small"><a href=${href("/admin")}>← ${t("admin.accounts")}</a></p>
    <${Loaded} state=${state} title=${t("admin.account")}>
      ${(data) => html`<${AccountView} data=${data} reload=${state.reload} />`}<//>`;
}

function AccountView({ data, reload }) {
  const isActive = data.status === "active";
  const suspend = async () => {
    const words = {
      title: t("admin.suspendTitle", { name: data.name }), text: t("admin.suspendText"), action: t("admin.suspend"),
    };
    if (isActive && !await confirm(words)) return;
    await patch(`/admin/accounts/${data.id}`, { status: isActive ? "suspended" : "active" });
    reload();
  };
  const lead = html`<span class="facts">
    <${Standing} status=${data.status} /> <span>${planName(data.plan)}</span></span>`;
  return html`<${Head} title=${data.name} lead=${lead}>
      <${Button} kind=${isActive ? "plain danger" : "primary"} onClick=${suspend}>
        ${t(isActive ? "admin.suspend" : "admin.resume")}<//><//>
    <${Section} name="limits" title=${t("admin.usage")}><${Limits} limits=${data.usage?.limits ?? []} /><//>
    <${Section} name="change" title=${t("edit")}><${AccountForm} data=${data} reload=${reload} /><//>
    <${Section} name="quota" title=${t("admin.quota")}><${Quota} data=${data} reload=${reload} /><//>`;
}

function AccountForm({ data, reload }) {
  const initial = { name: data.name, plan: data.plan, requestsPerMinute: String(data.requestsPerMinute) };
  const form = useForm(initial, async ({ requestsPerMinute, ...values }) => {
    const rate = requestsPerMinute === "" ? null : Number(requestsPerMinute);
    const changes = rate === data.requestsPerMinute ? values : { ...values, requestsPerMinute: rate };
    await patch(`/admin/accounts/${data.id}`, changes);
    toast(t("saved"));
    reload();
  });
  return html`<form ...${form.form}>${form.failure && html`<${Failure} error=${form.failure} />`}
    <${Field} label=${t("name")} required ...${form.bind("name")} />
    <${Plan} ...${form.bind("plan")} />
    <${Field} label=${t("admin.rate")} hint=${t("admin.rateHint")} type="number" min="1"
      ...${form.bind("requestsPerMinute")} />
    <${Button} type="submit" kind="primary" busy=${form.busy}>${t("save")}<//></form>`;
}

function Quota({ data, reload }) {
  const names = (data.usage?.limits ?? []).map((entry) => entry.name);
  const form = useForm({ name: names[0] ?? "", value: "" }, async ({ name, value }) => {
    await patch(`/admin/accounts/${data.id}`, { quota: { [name]: value === "" ? null : Number(value) } });
    toast(t("saved"));
    reload();
  });
  return html`<form ...${form.form}>${form.failure && html`<${Failure} error=${form.failure} />`}
    <${Field} label=${t("admin.limit")} ...${form.bind("name")}>
      ${names.map((name) => html`<option key=${name} value=${name}>${known(`limit.${name}`, name)}</option>`)}<//>
    <${Field} label=${t("admin.value")} hint=${t("admin.valueHint")} type="number" min="0" ...${form.bind("value")} />
    <${Button} type="submit" busy=${form.busy}>${t("save")}<//></form>`;
}

// ---- users ----

const UserName = ({ entry }) => html`<span><strong>${entry.name}</strong><br />
  <span class="muted small">${entry.email}</span></span>`;

const UserState = ({ entry }) => html`
  <${Badge} kind=${entry.isDisabled ? "bad" : "good"}>${t(entry.isDisabled ? "admin.disabled" : "admin.enabled")}<//>
  ${entry.isAdmin && html` <${Badge}>${t("admin.operator")}<//>`}`;

function UserActions({ entry, onReset, onChange }) {
  if (entry.id === user.value.id) return null;
  const word = t(entry.isDisabled ? "admin.enable" : "admin.disable");
  return html`<span class="actions">
    <${Button} kind="plain small" aria-label=${`${t("admin.reset")}: ${entry.name}`} onClick=${() => onReset(entry)}>
      ${t("admin.reset")}<//>
    <${Button} kind="plain small danger" aria-label=${`${word}: ${entry.name}`}
      onClick=${() => onChange(entry, { isDisabled: !entry.isDisabled })}>${word}<//></span>`;
}

export function Users() {
  const { page = "1", keyword = "" } = route.value.query;
  const query = { page, limit: 20, keyword };
  const state = useLoad((signal) => get("/admin/users", query, { signal }), [page, keyword]);
  const [made, setMade] = useState(null);
  const change = async (entry, changes) => { await patch(`/admin/users/${entry.id}`, changes); state.reload(); };
  const reset = async (entry) => {
    const title = t("admin.resetTitle", { name: entry.name }), text = t("admin.resetText");
    if (!await confirm({ title, text, action: t("admin.reset"), kind: "primary" })) return;
    const { link } = await post(`/admin/users/${entry.id}/reset`);
    if (link) setMade({ name: entry.name, link }); else toast(t("admin.resetSent"));
  };
  const columns = [
    ["name", t("name"), (entry) => html`<${UserName} entry=${entry} />`, "main"],
    ["account", t("admin.account"), (entry) => html`
      <${Link} to=${`/admin/accounts/${entry.accountId}`}>${entry.accountName}<//>`],
    ["role", t("members.role"), (entry) => known(`role.${entry.role}`, entry.role)],
    ["state", t("orders.status"), (entry) => html`<${UserState} entry=${entry} />`],
    ["seen", t("members.seen"), (entry) => html`<${Time} at=${entry.lastSignInAt} none=${t("never")} />`],
    ["do", "", (entry) => html`<${UserActions} entry=${entry} onReset=${reset} onChange=${change} />`, "do"],
  ];
  return html`<${Top} />
    <form class="filters" aria-label=${t("orders.search")} onSubmit=${(event) => event.preventDefault()}>
      <${Keyword} value=${keyword} onValue=${(value) => go("/admin/users", { keyword: value }, true)} /></form>
    <${Loaded} state=${state}>${(data) => html`
      <${Table} caption=${t("admin.users")} columns=${columns} rows=${data.users} keyOf=${(entry) => entry.id} />
      <${Pager} info=${data.pageInfo} onPage=${(value) => go("/admin/users", { keyword, page: value })} />`}<//>
    ${made && html`<${Dialog} title=${t("admin.resetMade", { name: made.name })} onClose=${() => setMade(null)}>
      <p>${t("admin.resetLink")}</p><${Secret} label=${t("members.linkLabel")} value=${made.link} />
      <footer class="actions">
        <${Button} kind="primary" onClick=${() => setMade(null)}>${t("close")}<//></footer><//>`}`;
}

// ---- queue ----

const FIGURES = ["queued", "running", "dead", "refused", "deliveriesPending"];

const Figure = ({ value, name }) => html`
  <li><strong>${value}</strong><span class="muted small">${t(`admin.${name}`)}</span></li>`;

const workerColumns = () => [
  ["name", t("name"), (entry) => entry.name, "main"],
  ["host", t("admin.host"), (entry) => entry.host],
  ["processes", t("admin.processes"), (entry) => entry.processes ?? "–"],
  ["seen", t("sessions.seen"), (entry) => html`<${Time} at=${entry.seenAt} />`],
  ["started", t("sessions.since"), (entry) => html`<${Time} at=${entry.startedAt} />`],
];

function QueueView({ data }) {
  const oldest = t("admin.seconds", { count: Math.round(data.oldestQueuedSeconds ?? 0) });
  return html`${data.isPaused && html`<${Notice} kind="warning" title=${t("admin.paused")} />`}
    <ul class="figures">
      ${FIGURES.map((name) => html`<${Figure} key=${name} name=${name} value=${number(data[name] ?? 0)} />`)}
      <${Figure} name="oldest" value=${oldest} /></ul>
    <${Section} name="workers" title=${t("admin.workers")}>
      ${data.workers.length === 0 ? html`<${Notice} kind="error" title=${t("admin.noWorkers")} />` : html`
        <${Table} caption=${t("admin.workers")} columns=${workerColumns()} rows=${data.workers}
          keyOf=${(entry) => entry.name} />`}<//>`;
}

const JobRetry = ({ job, onRetry }) => job.canRetry && html`
  <${Button} kind="plain small" aria-label=${`${t("retry")}: ${job.id}`} onClick=${() => onRetry(job)}>
    ${t("retry")}<//>`;

export function Queue() {
  const { page = "1" } = route.value.query;
  const state = useLoad((signal) => get("/admin/queue", {}, { signal }), []);
  const jobs = useLoad((signal) => get("/admin/jobs", { status: "dead", page, limit: 20 }, { signal }), [page]);
  const reload = () => { state.reload(); jobs.reload(); };
  const retry = async (job) => { await post(`/admin/jobs/${job.id}/retry`); reload(); };
  const columns = [
    ["id", t("admin.job"), (job) => html`<code>${job.id}</code>`, "main"],
    ["kind", t("admin.kind"), (job) => html`<code>${job.kind}</code>`],
    ["order", t("webhooks.order"), (job) => job.orderId],
    ["attempts", t("webhooks.attempts"), (job) => job.attempts],
    ["error", t("admin.error"), (job) => html`
      <span class="small long">${known(`reason.${job.error}`, html`<code>${job.error}</code>`)}</span>`],
    ["at", t("webhooks.updated"), (job) => html`<${Time} at=${job.updatedAt} />`],
    ["do", "", (job) => html`<${JobRetry} job=${job} onRetry=${retry} />`, "do"],
  ];
  return html`<${Top}><${Button} onClick=${reload}>${t("reload")}<//><//>
    <${Loaded} state=${state}>${(data) => html`<${QueueView} data=${data} />`}<//>
    <${Section} name="dead" title=${t("admin.deadJobs")}><${Loaded} state=${jobs}>${(data) => html`
      <${Table} caption=${t("admin.deadJobs")} columns=${columns} rows=${data.jobs} keyOf=${(job) => job.id} />
      <${Pager} info=${data.pageInfo} onPage=${(value) => go("/admin/queue", { page: value })} />`}<//><//>`;
}

// ---- health ----

const KINDS = { ok: "good", warning: "warning", failed: "bad" };

const healthColumns = () => [
  ["name", t("admin.check"), (entry) => html`<strong>${known(`check.${entry.name}`, entry.name)}</strong>`, "main"],
  ["status", t("orders.status"), (entry) => html`
    <${Badge} kind=${KINDS[entry.status]}>${t(`health.${entry.status}`)}<//>`],
  ["message", t("audit.details"), (entry) => [entry.params?.label, say(entry) || "–"].filter(Boolean).join(": ")],
];

export function Health() {
  const state = useLoad((signal) => get("/admin/health", {}, { signal }), []);
  return html`<${Top}><${Button} onClick=${state.reload}>${t("reload")}<//><//>
    <${Loaded} state=${state}>${(data) => html`
      <${Table} caption=${t("admin.health")} columns=${healthColumns()} rows=${data.checks}
        keyOf=${(entry) => entry.name} />`}<//>`;
}
