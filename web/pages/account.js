// Profile and language, members, audit log.
import { html, useState } from "../lib/view.js";
import { account, get, isOwner, patch, post, remove, session, sessionSet, user } from "../lib/api.js";
import { t, day, known, language, languages, languageSet, moment } from "../lib/text.js";
import { go, route } from "../lib/route.js";
import { Badge, Button, Dialog, Failure, Field, Head, Loaded, Pager, Secret, Table, Tabs, Time, confirm, errorText, toast, useForm, useLoad } from "../lib/ui.js";

export const AccountTabs = () => html`<${Tabs} label=${t("account.title")} current=${route.value.path}
  tabs=${[["/account", t("profile.title")], ["/account/security", t("security.title")], ["/account/members", t("members.title")], ["/account/audit", t("audit.title")]]} />`;

const sessionChange = (changes) => sessionSet({ ...session.value, ...changes });

export function Profile() {
  const form = useForm({ name: user.value.name }, async ({ name }) => {
    sessionChange({ user: { ...user.value, ...await patch("/user", { name }) } });
    toast(t("saved"));
  });
  const speak = async (word) => { await languageSet(word); sessionChange({ user: { ...user.value, ...await patch("/user", { language: word }) } }); };
  return html`<${Head} title=${t("account.title")} /><${AccountTabs} />
    <section class="card" aria-labelledby="profile"><h2 id="profile">${t("profile.title")}</h2><form ...${form.form}>
      ${form.failure && html`<${Failure} error=${form.failure} />`}
      <${Field} label=${t("name")} autocomplete="name" ...${form.bind("name")} />
      <p><span class="muted small">${t("email")}</span><br />${user.value.email} ${user.value.emailVerified && html`<${Badge} kind="good">${t("verified")}<//>`}</p>
      <${Button} type="submit" kind="primary" busy=${form.busy}>${t("save")}<//></form></section>
    <section class="card" aria-labelledby="language"><h2 id="language">${t("language.title")}</h2>
      <${Field} label=${t("language.title")} value=${language.value} onValue=${speak}>${Object.entries(languages).map(([word, title]) =>
        html`<option key=${word} value=${word} lang=${word}>${title}</option>`)}<//></section>
    ${isOwner.value && html`<${AccountName} />`}`;
}

function AccountName() {
  const form = useForm({ name: account.value.name }, async ({ name }) => {
    sessionChange({ account: { ...account.value, name: (await patch("/account", { name })).name } });
    toast(t("saved"));
  });
  return html`<section class="card" aria-labelledby="account"><h2 id="account">${t("accountName")}</h2><form ...${form.form}>
    ${form.failure && html`<${Failure} error=${form.failure} />`}<${Field} label=${t("accountName")} ...${form.bind("name")} />
    <${Button} type="submit" kind="primary" busy=${form.busy}>${t("save")}<//></form></section>`;
}

export function Members() {
  const state = useLoad((signal) => get("/account/members", {}, { signal }), []);
  const [isOpen, setOpen] = useState(false);
  const changeRole = async (member, role) => { await patch(`/account/members/${member.userId}`, { role }).catch((error) => toast(errorText(error))); state.reload(); };
  const drop = async (member) => {
    if (!await confirm({ title: t("members.removeTitle", { name: member.name }), text: t("members.removeText"), action: t("members.remove") })) return;
    const isRevoking = member.keys > 0 && await confirm({ title: t("members.keysTitle", { count: member.keys, name: member.name }), text: t("members.keysText"), action: t("members.keysRevoke") });
    await remove(`/account/members/${member.userId}${isRevoking ? "?keys=revoke" : ""}`);
    state.reload();
  };
  const withdraw = async (invitation) => { await remove(`/account/invitations/${invitation.id}`); state.reload(); };
  const members = [
    ["name", t("name"), (member) => html`<span><strong>${member.name}</strong><br /><span class="muted small">${member.email}</span></span>`, "main"],
    ["role", t("members.role"), (member) => (isOwner.value ? html`<select aria-label=${`${t("members.role")}: ${member.name}`} value=${member.role} onChange=${(event) => changeRole(member, event.target.value)}>
      ${["owner", "member"].map((word) => html`<option key=${word} value=${word}>${t(`role.${word}`)}</option>`)}</select>` : t(`role.${member.role}`))],
    ["factor", t("factor.title"), (member) => html`<${Badge} kind=${member.totpEnabled ? "good" : ""}>${t(member.totpEnabled ? "on" : "off")}<//>`],
    ["seen", t("members.seen"), (member) => html`<${Time} at=${member.lastSignInAt} none=${t("never")} />`],
    ["do", "", (member) => isOwner.value && member.userId !== user.value.id && html`<${Button} kind="plain small danger" onClick=${() => drop(member)} aria-label=${`${t("members.remove")}: ${member.name}`}>${t("members.remove")}<//>`, "do"],
  ];
  const invitations = [
    ["email", t("email"), (entry) => entry.email, "main"], ["role", t("members.role"), (entry) => t(`role.${entry.role}`)],
    ["expires", t("keys.expires"), (entry) => html`<${Time} at=${entry.expiresAt} />`],
    ["do", "", (entry) => isOwner.value && html`<${Button} kind="plain small" onClick=${() => withdraw(entry)} aria-label=${`${t("members.withdraw")}: ${entry.email}`}>${t("members.withdraw")}<//>`, "do"],
  ];
  return html`<${Head} title=${t("account.title")} lead=${t("members.lead")}>${isOwner.value && html`<${Button} kind="primary" onClick=${() => setOpen(true)}>${t("members.invite")}<//>`}<//><${AccountTabs} />
    <${Loaded} state=${state}>${(data) => html`<${Table} caption=${t("members.title")} columns=${members} rows=${data.members} keyOf=${(member) => member.userId} />
      ${data.invitations.length > 0 && html`<h2>${t("members.invited")}</h2><${Table} caption=${t("members.invited")} columns=${invitations} rows=${data.invitations} keyOf=${(entry) => entry.id} />`}`}<//>
    ${isOpen && html`<${Invite} onClose=${() => { setOpen(false); state.reload(); }} />`}`;
}

function Invite({ onClose }) {
  const [made, setMade] = useState(null);
  const form = useForm({ email: "", role: "member" }, async (values) => setMade(await post("/account/invitations", values)));
  if (made) {
    return html`<${Dialog} title=${t("members.invite")} onClose=${onClose}>
      ${made.link ? html`<p>${t("members.link")}</p><${Secret} label=${t("members.linkLabel")} value=${made.link} />` : html`<p>${t("members.sent", { email: form.values.email })}</p>`}
      <footer class="actions"><${Button} kind="primary" onClick=${onClose}>${t("close")}<//></footer><//>`;
  }
  return html`<${Dialog} title=${t("members.invite")} onClose=${onClose}><form ...${form.form}>
    ${form.failure && html`<${Failure} error=${form.failure} />`}
    <${Field} label=${t("email")} type="email" autofocus ...${form.bind("email")} />
    <${Field} label=${t("members.role")} hint=${t("members.roleHint")} ...${form.bind("role")}>${["member", "owner"].map((word) => html`<option key=${word} value=${word}>${t(`role.${word}`)}</option>`)}<//>
    <footer class="actions"><${Button} onClick=${onClose}>${t("cancel")}<//><${Button} type="submit" kind="primary" busy=${form.busy}>${t("members.invite")}<//></footer></form><//>`;
}

export function Audit() {
  const { page = "1", before = "" } = route.value.query;
  const state = useLoad((signal) => get("/audit", { page, limit: 50, before }, { signal }), [page, before]);
  const words = (details) => Object.entries(details ?? {}).map(([name, value]) => `${name}: ${value}`).join(", ");
  const columns = [
    ["at", t("requests.at"), (entry) => html`<time datetime=${entry.at} title=${day(entry.at)}>${moment(entry.at)}</time>`],
    ["event", t("audit.event"), (entry) => html`<strong>${known(`audit.${entry.event}`, entry.event)}</strong>`, "main"],
    ["user", t("audit.user"), (entry) => (entry.user ? html`<span>${entry.user.name}<br /><span class="muted small">${entry.user.email ?? ""}</span></span>` : "–")], ["address", t("audit.address"), (entry) => html`<code>${entry.address ?? "–"}</code>`],
    ["details", t("audit.details"), (entry) => html`<span class="small long">${words(entry.details) || "–"}</span>`],
  ];
  return html`<${Head} title=${t("account.title")} lead=${t("audit.lead")} /><${AccountTabs} />
    <${Loaded} state=${state}>${(data) => html`<${Table} caption=${t("audit.title")} columns=${columns} rows=${data.events} keyOf=${(entry) => entry.id} />
      <${Pager} info=${data.pageInfo} onPage=${(number) => go("/account/audit", { page: number, before })} onOlder=${(id) => go("/account/audit", { before: id })} />`}<//>`;
}
