// Profile and language, members, audit log.
import { html, useState } from "../lib/view.js";
import { account, get, isOwner, patch, post, remove, session, sessionSet, user } from "../lib/api.js";
import { t, known, language, languages, languageSet } from "../lib/text.js";
import { go, route } from "../lib/route.js";
import {
  Badge, Button, Dialog, Failure, Field, Head, Loaded, Pager, Secret, Section, Stamp, Table, Tabs, Time,
  confirm, errorText, toast, useForm, useLoad,
} from "../lib/ui.js";

const TABS = [
  ["/account", "profile.title"], ["/account/security", "security.title"], ["/account/members", "members.title"],
  ["/account/audit", "audit.title"],
];
export const AccountTabs = () => html`<${Tabs} label=${t("account.title")} current=${route.value.path}
  tabs=${TABS.map(([to, key]) => [to, t(key)])} />`;

const sessionChange = (changes) => sessionSet({ ...session.value, ...changes });

export const Profile = () => html`<${Head} title=${t("account.title")} /><${AccountTabs} />
  <${Person} />${isOwner.value && html`<${AccountName} />`}`;

function Person() {
  const form = useForm({ name: user.value.name }, async ({ name }) => {
    sessionChange({ user: { ...user.value, ...await patch("/user", { name }) } });
    toast(t("saved"));
  });
  return html`<${Section} name="profile" title=${t("profile.title")}><form ...${form.form}>
    ${form.failure && html`<${Failure} error=${form.failure} />`}
    <${Field} label=${t("name")} autocomplete="name" required ...${form.bind("name")} />
    <p><span class="muted small">${t("email")}</span><br />${user.value.email}
      ${" "}${user.value.emailVerified && html`<${Badge} kind="good">${t("verified")}<//>`}</p>
    <${Button} type="submit" kind="primary" busy=${form.busy}>${t("save")}<//></form><${Language} /><//>`;
}

// The language changes at once, without "Save".
function Language() {
  const speak = async (word) => {
    await languageSet(word);
    sessionChange({ user: { ...user.value, ...await patch("/user", { language: word }) } });
  };
  return html`<${Field} label=${t("language.title")} value=${language.value} onValue=${speak}>
    ${Object.entries(languages).map(([word, title]) => html`
      <option key=${word} value=${word} lang=${word}>${title}</option>`)}<//>`;
}

function AccountName() {
  const form = useForm({ name: account.value.name }, async ({ name }) => {
    sessionChange({ account: { ...account.value, name: (await patch("/account", { name })).name } });
    toast(t("saved"));
  });
  return html`<${Section} name="account" title=${t("admin.account")}><form ...${form.form}>
    ${form.failure && html`<${Failure} error=${form.failure} />`}
    <${Field} label=${t("accountName")} required ...${form.bind("name")} />
    <${Button} type="submit" kind="primary" busy=${form.busy}>${t("save")}<//></form><//>`;
}

// ---- members ----

const roles = () => ["member", "owner"].map((word) => html`
  <option key=${word} value=${word}>${t(`role.${word}`)}</option>`);

const MemberName = ({ member }) => html`<span><strong>${member.name}</strong><br />
  <span class="muted small">${member.email}</span></span>`;

const MemberRole = ({ member, onRole }) => (isOwner.value ? html`
  <select aria-label=${`${t("members.role")}: ${member.name}`} value=${member.role}
    onChange=${(event) => onRole(member, event.target.value)}>${roles()}</select>` : t(`role.${member.role}`));

const MemberRemove = ({ member, onRemove }) => isOwner.value && member.userId !== user.value.id && html`
  <${Button} kind="plain small danger" aria-label=${`${t("members.remove")}: ${member.name}`}
    onClick=${() => onRemove(member)}>${t("members.remove")}<//>`;

const Withdraw = ({ entry, onWithdraw }) => isOwner.value && html`
  <${Button} kind="plain small" aria-label=${`${t("members.withdraw")}: ${entry.email}`}
    onClick=${() => onWithdraw(entry)}>${t("members.withdraw")}<//>`;

const memberColumns = (changeRole, drop) => [
  ["name", t("name"), (member) => html`<${MemberName} member=${member} />`, "main"],
  ["role", t("members.role"), (member) => html`<${MemberRole} member=${member} onRole=${changeRole} />`],
  ["factor", t("factor.title"), ({ totpEnabled }) => html`
    <${Badge} kind=${totpEnabled ? "good" : ""}>${t(totpEnabled ? "on" : "off")}<//>`],
  ["seen", t("members.seen"), (member) => html`<${Time} at=${member.lastSignInAt} none=${t("never")} />`],
  ["do", "", (member) => html`<${MemberRemove} member=${member} onRemove=${drop} />`, "do"],
];

const invitationColumns = (withdraw) => [
  ["email", t("email"), (entry) => entry.email, "main"],
  ["role", t("members.role"), (entry) => t(`role.${entry.role}`)],
  ["expires", t("keys.expires"), (entry) => html`<${Time} at=${entry.expiresAt} />`],
  ["do", "", (entry) => html`<${Withdraw} entry=${entry} onWithdraw=${withdraw} />`, "do"],
];

// Asks before a member is removed, and again about keys of the member.
async function memberRemove({ name, userId, keys }) {
  const title = t("members.removeTitle", { name }), text = t("members.removeText"), action = t("members.remove");
  if (!await confirm({ title, text, action })) return false;
  const about = {
    title: t("members.keysTitle", { count: keys, name }), text: t("members.keysText"), action: t("members.keysRevoke"),
  };
  const isRevoking = keys > 0 && await confirm(about);
  await remove(`/account/members/${userId}${isRevoking ? "?keys=revoke" : ""}`);
  return true;
}

export function Members() {
  const state = useLoad((signal) => get("/account/members", {}, { signal }), []);
  const [isOpen, setOpen] = useState(false);
  const changeRole = async ({ userId }, role) => {
    await patch(`/account/members/${userId}`, { role }).catch((error) => toast(errorText(error)));
    state.reload();
  };
  const drop = async (member) => { if (await memberRemove(member)) state.reload(); };
  const withdraw = async ({ id }) => { await remove(`/account/invitations/${id}`); state.reload(); };
  const invite = isOwner.value && html`
    <${Button} kind="primary" onClick=${() => setOpen(true)}>${t("members.invite")}<//>`;
  return html`<${Head} title=${t("account.title")} lead=${t("members.lead")}>${invite}<//><${AccountTabs} />
    <${Loaded} state=${state}>${({ members, invitations }) => html`
      <${Table} caption=${t("members.title")} columns=${memberColumns(changeRole, drop)} rows=${members}
        keyOf=${(member) => member.userId} />
      ${invitations.length > 0 && html`<h2>${t("members.invited")}</h2>
        <${Table} caption=${t("members.invited")} columns=${invitationColumns(withdraw)} rows=${invitations}
          keyOf=${(entry) => entry.id} />`}`}<//>
    ${isOpen && html`<${Invite} onClose=${() => { setOpen(false); state.reload(); }} />`}`;
}

function Invite({ onClose }) {
  const [made, setMade] = useState(null);
  const form = useForm({ email: "", role: "member" }, async (values) =>
    setMade(await post("/account/invitations", values)));
  if (made) return html`<${Invited} link=${made.link} email=${form.values.email} onClose=${onClose} />`;
  return html`<${Dialog} title=${t("members.inviteTitle")} onClose=${onClose}><form ...${form.form}>
    ${form.failure && html`<${Failure} error=${form.failure} />`}
    <${Field} label=${t("email")} type="email" required autofocus ...${form.bind("email")} />
    <${Field} label=${t("members.role")} hint=${t("members.roleHint")} ...${form.bind("role")}>${roles()}<//>
    <footer class="actions"><${Button} onClick=${onClose}>${t("cancel")}<//>
      <${Button} type="submit" kind="primary" busy=${form.busy}>${t("members.invite")}<//></footer></form><//>`;
}

const Invited = ({ link, email, onClose }) => html`<${Dialog} title=${t("members.inviteTitle")} onClose=${onClose}>
  ${link ? html`<p>${t("members.link")}</p><${Secret} label=${t("members.linkLabel")} value=${link} />`
    : html`<p>${t("members.sent", { email })}</p>`}
  <footer class="actions"><${Button} kind="primary" onClick=${onClose}>${t("close")}<//></footer><//>`;

// ---- audit log ----

const Actor = ({ user: actor }) => (actor ? html`<span>${actor.name}<br />
  <span class="muted small">${actor.email ?? ""}</span></span>` : "–");

// The address has a column, so a detail with the same value is left out.
const details = ({ details: found, address }) => Object.entries(found ?? {})
  .filter(([, value]) => value !== address)
  .map(([name, value]) => `${known(`audit.detail.${name}`, name)}: ${value}`).join(", ");

const auditColumns = () => [
  ["at", t("requests.at"), ({ at }) => html`<${Stamp} at=${at} />`],
  ["event", t("audit.event"), ({ event }) => html`<strong>${known(`audit.${event}`, event)}</strong>`, "main"],
  ["user", t("audit.user"), (entry) => html`<${Actor} user=${entry.user} />`],
  ["address", t("audit.address"), ({ address }) => (address ? html`<code class="short">${address}</code>` : "–")],
  ["details", t("audit.details"), (entry) => html`<span class="small long">${details(entry) || "–"}</span>`],
];

export function Audit() {
  const { page = "1", before = "" } = route.value.query;
  const state = useLoad((signal) => get("/audit", { page, limit: 50, before }, { signal }), [page, before]);
  return html`<${Head} title=${t("account.title")} lead=${t("audit.lead")} /><${AccountTabs} />
    <${Loaded} state=${state}>${(data) => html`
      <${Table} caption=${t("audit.title")} columns=${auditColumns()} rows=${data.events}
        keyOf=${(entry) => entry.id} />
      <${Pager} info=${data.pageInfo} onPage=${(number) => go("/account/audit", { page: number, before })}
        onOlder=${(id) => go("/account/audit", { before: id })} />`}<//>`;
}
