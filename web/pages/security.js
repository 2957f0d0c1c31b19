// Password, second factor, sessions.
import { html, useMemo, useState } from "../lib/view.js";
import { get, post, remove, session, sessionSet, user } from "../lib/api.js";
import { t } from "../lib/text.js";
import {
  Badge, Button, Copy, Dialog, Failure, Field, Head, Loaded, NewPassword, Notice, Secret, Section, Table, Time,
  confirm, toast, useForm, useLoad,
} from "../lib/ui.js";
import { AccountTabs } from "./account.js";
import { encode } from "../vendor/uqr.js";

export function Security() {
  return html`<${Head} title=${t("account.title")} /><${AccountTabs} /><${Password} /><${Factor} /><${Sessions} />`;
}

// The user's address in a form of passwords, for the browser's list of passwords.
const Username = () => html`<input class="vh" type="email" autocomplete="username" value=${user.value.email}
  tabindex="-1" readonly aria-label=${t("email")} />`;

function Password() {
  const form = useForm({ currentPassword: "", newPassword: "" }, async (values) => {
    await post("/user/password", values);
    form.setValues({ currentPassword: "", newPassword: "" });
    toast(t("password.changed"));
  });
  return html`<${Section} name="password" title=${t("password")}><form ...${form.form}>
    ${form.failure && html`<${Failure} error=${form.failure} />`}<${Username} />
    <${Field} label=${t("password.current")} type="password" autocomplete="current-password" required
      ...${form.bind("currentPassword")} />
    <${NewPassword} ...${form.bind("newPassword")} />
    <${Button} type="submit" kind="primary" busy=${form.busy}>${t("password.change")}<//></form><//>`;
}

const factorSet = (totpEnabled) => sessionSet({ ...session.value, user: { ...user.value, totpEnabled } });

function Factor() {
  const [step, setStep] = useState(null);
  const isOn = user.value.totpEnabled;
  const badge = html`<${Badge} kind=${isOn ? "good" : ""}>${t(isOn ? "on" : "off")}<//>`;
  return html`<${Section} name="factor" title=${t("factor.title")} action=${badge}>
    <p class="muted">${t("factor.text")}</p><div class="actions">
      ${isOn ? html`<${Button} onClick=${() => setStep("codes")}>${t("factor.codes")}<//>
          <${Button} kind="plain danger" onClick=${() => setStep("disable")}>${t("factor.disable")}<//>`
        : html`<${Button} kind="primary" onClick=${() => setStep("enable")}>${t("factor.enable")}<//>`}</div>
    ${step && html`<${FactorDialog} step=${step} onClose=${() => setStep(null)} />`}<//>`;
}

// Each change begins with the password. "enable" continues with the QR code, the first code and the recovery codes.
function FactorDialog({ step, onClose }) {
  const [made, setMade] = useState(null);
  const [codes, setCodes] = useState(null);
  const close = () => { if (codes && step === "enable") factorSet(true); onClose(); };
  const password = useForm({ password: "" }, async (values) => {
    if (step === "enable") setMade(await post("/user/totp", values));
    else if (step === "codes") setCodes((await post("/user/totp/recovery-codes", values)).recoveryCodes);
    else { await post("/user/totp/disable", values); factorSet(false); toast(t("factor.disabled")); onClose(); }
  });
  if (codes) return html`<${Codes} codes=${codes} onClose=${close} />`;
  if (made) return html`<${FirstCode} made=${made} onCodes=${setCodes} onClose=${onClose} />`;
  return html`<${Dialog} title=${t(`factor.${step}Title`)} onClose=${onClose}><form ...${password.form}>
    ${password.failure && html`<${Failure} error=${password.failure} />`}<${Username} />
    <${Field} label=${t("password")} hint=${t("factor.passwordHint")} type="password" autocomplete="current-password"
      required autofocus ...${password.bind("password")} />
    <footer class="actions"><${Button} onClick=${onClose}>${t("cancel")}<//>
      <${Button} type="submit" kind="primary" busy=${password.busy}>${t("continue")}<//></footer></form><//>`;
}

// The secret for the app, then a code of the app, which proves that the app has the secret.
function FirstCode({ made, onCodes, onClose }) {
  const form = useForm({ code: "" }, async ({ code }) =>
    onCodes((await post("/user/totp/enable", { code: code.trim() })).recoveryCodes));
  return html`<${Dialog} title=${t("factor.enableTitle")} onClose=${onClose}>
    <p>${t("factor.scan")}</p><${Code} text=${made.otpauthUrl} />
    <${Secret} label=${t("factor.secret")} value=${made.secret} />
    <form ...${form.form}>${form.failure && html`<${Failure} error=${form.failure} />`}
      <${Field} label=${t("factor.first")} inputmode="numeric" autocomplete="one-time-code" required
        ...${form.bind("code")} />
      <footer class="actions"><${Button} onClick=${onClose}>${t("cancel")}<//>
        <${Button} type="submit" kind="primary" busy=${form.busy}>${t("factor.confirm")}<//></footer></form><//>`;
}

const Codes = ({ codes, onClose }) => html`<${Dialog} title=${t("factor.codes")} onClose=${onClose}>
  <${Notice} kind="warning" title=${t("factor.codesText")} />
  <ul class="codes">${codes.map((word) => html`<li key=${word}><code>${word}</code></li>`)}</ul>
  <footer class="actions"><${Copy} value=${codes.join("\n")} label=${`${t("copy")}: ${t("factor.codes")}`} />
    <${Button} kind="primary" onClick=${onClose}>${t("keys.stored")}<//></footer><//>`;

function Code({ text }) {
  const { size, path } = useMemo(() => {
    const { size, data } = encode(text, { border: 2 });
    const dots = data.flatMap((row, y) => row.map((isDark, x) => (isDark ? `M${x} ${y}h1v1h-1z` : "")));
    return { size, path: dots.join("") };
  }, [text]);
  return html`<svg class="qr" viewBox=${`0 0 ${size} ${size}`} role="img" aria-label=${t("factor.qr")}>
    <rect width=${size} height=${size} fill="#fff" /><path d=${path} fill="#000" /></svg>`;
}

const Agent = ({ entry }) => html`<span>${agentName(entry.userAgent)}
  ${" "}${entry.isCurrent && html`<${Badge} kind="good">${t("sessions.this")}<//>`}</span>`;

function Sessions() {
  const state = useLoad((signal) => get("/user/sessions", {}, { signal }), []);
  const end = async (entry) => { await remove(`/user/sessions/${entry.id}`); state.reload(); };
  const endAll = async () => {
    const words = { title: t("sessions.endAllTitle"), text: t("sessions.endAllText"), action: t("sessions.endAll") };
    if (!await confirm(words)) return;
    await remove("/user/sessions");
    state.reload();
  };
  const columns = [
    ["agent", t("sessions.agent"), (entry) => html`<${Agent} entry=${entry} />`, "main"],
    ["address", t("audit.address"), (entry) => html`<code class="short">${entry.address}</code>`],
    ["seen", t("sessions.seen"), (entry) => html`<${Time} at=${entry.lastSeenAt} />`],
    ["created", t("sessions.since"), (entry) => html`<${Time} at=${entry.createdAt} />`],
    ["do", "", (entry) => !entry.isCurrent && html`
      <${Button} kind="plain small" onClick=${() => end(entry)}>${t("sessions.end")}<//>`, "do"],
  ];
  return html`<${Section} name="sessions" title=${t("sessions.title")}
      action=${html`<${Button} kind="plain small" onClick=${endAll}>${t("sessions.endAll")}<//>`}>
    <${Loaded} state=${state}>${(data) => html`
      <${Table} caption=${t("sessions.title")} columns=${columns} rows=${data.sessions}
        keyOf=${(entry) => entry.id} />`}<//><//>`;
}

const BROWSERS = [
  [/Edg\//, "Edge"], [/OPR\//, "Opera"], [/Chrom/, "Chrome"], [/Firefox\//, "Firefox"], [/Safari\//, "Safari"],
];
const SYSTEMS = [
  [/Windows/, "Windows"], [/Android/, "Android"], [/iPhone|iPad/, "iOS"], [/Mac OS/, "macOS"], [/Linux/, "Linux"],
];

function agentName(agent = "") {
  const find = (list) => list.find(([pattern]) => pattern.test(agent))?.[1];
  return [find(BROWSERS), find(SYSTEMS)].filter(Boolean).join(", ") || agent.slice(0, 60) || "–";
}
