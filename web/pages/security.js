// Password, second factor, sessions.
import { html, useMemo, useState } from "../lib/view.js";
import { get, post, remove, session, sessionSet, user } from "../lib/api.js";
import { t } from "../lib/text.js";
import { Badge, Button, Copy, Dialog, Failure, Field, Head, Loaded, Notice, Secret, Table, Time, confirm, toast, useForm, useLoad } from "../lib/ui.js";
import { AccountTabs } from "./account.js";
import { encode } from "../vendor/uqr.js";

export function Security() {
  return html`<${Head} title=${t("account.title")} /><${AccountTabs} /><${Password} /><${Factor} /><${Sessions} />`;
}

function Password() {
  const form = useForm({ currentPassword: "", newPassword: "" }, async (values) => {
    await post("/user/password", values);
    form.setValues({ currentPassword: "", newPassword: "" });
    toast(t("password.changed"));
  });
  return html`<section class="card" aria-labelledby="password"><h2 id="password">${t("password")}</h2><form ...${form.form}>
    ${form.failure && html`<${Failure} error=${form.failure} />`}
    <input class="vh" type="email" autocomplete="username" value=${user.value.email} tabindex="-1" readonly aria-label=${t("email")} />
    <${Field} label=${t("password.current")} type="password" autocomplete="current-password" ...${form.bind("currentPassword")} />
    <${Field} label=${t("password.new")} hint=${t("password.hint")} type="password" autocomplete="new-password" ...${form.bind("newPassword")} />
    <${Button} type="submit" kind="primary" busy=${form.busy}>${t("password.change")}<//></form></section>`;
}

const factorSet = (totpEnabled) => sessionSet({ ...session.value, user: { ...user.value, totpEnabled } });

function Factor() {
  const [step, setStep] = useState(null);
  const isOn = user.value.totpEnabled;
  return html`<section class="card" aria-labelledby="factor"><div class="row"><h2 id="factor">${t("factor.title")}</h2><${Badge} kind=${isOn ? "good" : ""}>${t(isOn ? "on" : "off")}<//></div>
    <p class="muted">${t("factor.text")}</p><div class="actions">
      ${isOn ? html`<${Button} onClick=${() => setStep("codes")}>${t("factor.codes")}<//><${Button} kind="plain danger" onClick=${() => setStep("disable")}>${t("factor.disable")}<//>`
        : html`<${Button} kind="primary" onClick=${() => setStep("enable")}>${t("factor.enable")}<//>`}</div>
    ${step && html`<${FactorDialog} step=${step} onClose=${() => setStep(null)} />`}</section>`;
}

// Each change begins with the password. "enable" goes on with the QR code, then the first code, then the recovery codes.
function FactorDialog({ step, onClose }) {
  const [made, setMade] = useState(null);
  const [codes, setCodes] = useState(null);
  const close = () => { if (codes && step === "enable") factorSet(true); onClose(); };
  const password = useForm({ password: "" }, async (values) => {
    if (step === "enable") setMade(await post("/user/totp", values));
    else if (step === "codes") setCodes((await post("/user/totp/recovery-codes", values)).recoveryCodes);
    else { await post("/user/totp/disable", values); factorSet(false); toast(t("factor.disabled")); onClose(); }
  });
  const code = useForm({ code: "" }, async (values) => setCodes((await post("/user/totp/enable", { code: values.code.trim() })).recoveryCodes));
  if (codes) {
    return html`<${Dialog} title=${t("factor.codes")} onClose=${close}><${Notice} kind="warning" title=${t("factor.codesText")} />
      <ul class="codes">${codes.map((word) => html`<li key=${word}><code>${word}</code></li>`)}</ul>
      <footer class="actions"><${Copy} value=${codes.join("\n")} label=${`${t("copy")}: ${t("factor.codes")}`} /><${Button} kind="primary" onClick=${close}>${t("keys.stored")}<//></footer><//>`;
  }
  if (made) {
    return html`<${Dialog} title=${t("factor.enableTitle")} onClose=${onClose}><p>${t("factor.scan")}</p><${Code} text=${made.otpauthUrl} />
      <${Secret} label=${t("factor.secret")} value=${made.secret} />
      <form ...${code.form}>${code.failure && html`<${Failure} error=${code.failure} />`}
        <${Field} label=${t("factor.first")} inputmode="numeric" autocomplete="one-time-code" ...${code.bind("code")} />
        <footer class="actions"><${Button} onClick=${onClose}>${t("cancel")}<//><${Button} type="submit" kind="primary" busy=${code.busy}>${t("factor.confirm")}<//></footer></form><//>`;
  }
  return html`<${Dialog} title=${t(`factor.${step}Title`)} onClose=${onClose}><form ...${password.form}>
    ${password.failure && html`<${Failure} error=${password.failure} />`}
    <input class="vh" type="email" autocomplete="username" value=${user.value.email} tabindex="-1" readonly aria-label=${t("email")} />
    <${Field} label=${t("password")} hint=${t("factor.passwordHint")} type="password" autocomplete="current-password" autofocus ...${password.bind("password")} />
    <footer class="actions"><${Button} onClick=${onClose}>${t("cancel")}<//><${Button} type="submit" kind="primary" busy=${password.busy}>${t("continue")}<//></footer></form><//>`;
}

function Code({ text }) {
  const { size, path } = useMemo(() => {
    const { size, data } = encode(text, { border: 2 });
    const dots = data.flatMap((row, y) => row.map((isDark, x) => (isDark ? `M${x} ${y}h1v1h-1z` : "")));
    return { size, path: dots.join("") };
  }, [text]);
  return html`<svg class="qr" viewBox=${`0 0 ${size} ${size}`} role="img" aria-label=${t("factor.qr")}><rect width=${size} height=${size} fill="#fff" /><path d=${path} fill="#000" /></svg>`;
}

function Sessions() {
  const state = useLoad((signal) => get("/user/sessions", {}, { signal }), []);
  const end = async (entry) => { await remove(`/user/sessions/${entry.id}`); state.reload(); };
  const endAll = async () => {
    if (!await confirm({ title: t("sessions.endAllTitle"), text: t("sessions.endAllText"), action: t("sessions.endAll") })) return;
    await remove("/user/sessions");
    state.reload();
  };
  const columns = [
    ["agent", t("sessions.agent"), (entry) => html`<span>${agentName(entry.userAgent)} ${entry.isCurrent && html`<${Badge} kind="good">${t("sessions.this")}<//>`}</span>`, "main"],
    ["address", t("audit.address"), (entry) => html`<code>${entry.address}</code>`],
    ["seen", t("sessions.seen"), (entry) => html`<${Time} at=${entry.lastSeenAt} />`], ["created", t("sessions.since"), (entry) => html`<${Time} at=${entry.createdAt} />`],
    ["do", "", (entry) => !entry.isCurrent && html`<${Button} kind="plain small" onClick=${() => end(entry)}>${t("sessions.end")}<//>`, "do"],
  ];
  return html`<section class="card" aria-labelledby="sessions"><div class="row"><h2 id="sessions">${t("sessions.title")}</h2>
    <${Button} kind="plain small" onClick=${endAll}>${t("sessions.endAll")}<//></div>
    <${Loaded} state=${state}>${(data) => html`<${Table} caption=${t("sessions.title")} columns=${columns} rows=${data.sessions} keyOf=${(entry) => entry.id} />`}<//></section>`;
}

function agentName(agent = "") {
  const find = (list) => list.find(([pattern]) => pattern.test(agent))?.[1];
  const browser = find([[/Edg\//, "Edge"], [/OPR\//, "Opera"], [/Chrom/, "Chrome"], [/Firefox\//, "Firefox"], [/Safari\//, "Safari"]]);
  const system = find([[/Windows/, "Windows"], [/Android/, "Android"], [/iPhone|iPad/, "iOS"], [/Mac OS/, "macOS"], [/Linux/, "Linux"]]);
  return [browser, system].filter(Boolean).join(", ") || agent.slice(0, 60) || "–";
}
