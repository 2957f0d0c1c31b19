// Sign-in, second factor, forgotten password, reset, invitation, sign-up, verification of an address.
import { html, useState } from "../lib/view.js";
import { call, post, service, session, sessionSet, user } from "../lib/api.js";
import { t, duration } from "../lib/text.js";
import { route, go, href } from "../lib/route.js";
import { Button, Contact, Failure, Field, Link, Loaded, NewPassword, Notice, useForm, useLoad } from "../lib/ui.js";

const Card = ({ title, lead, children }) => html`<article class="card narrow">
  <h1 tabindex="-1">${title}</h1>${lead && html`<p class="muted">${lead}</p>`}${children}</article>`;
const Submit = ({ form, children }) => html`
  <${Button} type="submit" kind="primary block" busy=${form.busy}>${children}<//>`;
const Fault = ({ form }) => form.failure && html`<${Failure} error=${form.failure} />`;

const PATHS = ["/sign-in", "/sign-up", "/reset", "/invitation", "/forgot", "/verify"];

// After sign-in the page that the URL names opens, or the overview if the URL names a page of this file.
function enter(data) {
  sessionSet(data);
  if (PATHS.includes(route.value.path)) go("/", {}, true);
}

export function SignInForm({ email = "" }) {
  const [challenge, setChallenge] = useState(null);
  const form = useForm({ email, password: "" }, async (values) => {
    const data = await post("/session", values);
    if (data.state === "secondFactor") setChallenge(data.challenge);
    else enter(data);
  });
  if (challenge) return html`<${SecondFactor} challenge=${challenge} onBack=${() => setChallenge(null)} />`;
  return html`<form ...${form.form}><${Fault} form=${form} />
    <${Field} label=${t("email")} type="email" autocomplete="username" required autofocus ...${form.bind("email")} />
    <${Field} label=${t("password")} type="password" autocomplete="current-password" required
      ...${form.bind("password")} />
    <${Submit} form=${form}>${t("signIn.action")}<//></form>`;
}

function SecondFactor({ challenge, onBack }) {
  const form = useForm({ code: "" }, async ({ code }) =>
    enter(await post("/session/second-factor", { challenge, code: code.trim() })));
  return html`<form ...${form.form}><${Fault} form=${form} />
    <${Field} label=${t("code")} hint=${t("code.hint")} inputmode="numeric" autocomplete="one-time-code" required
      autofocus ...${form.bind("code")} />
    <${Submit} form=${form}>${t("signIn.action")}<//>
    <p class="center"><button type="button" class="link" onClick=${onBack}>${t("back")}</button></p></form>`;
}

export function SignIn() {
  const isOpen = session.value?.signUp === "open";
  return html`<${Card} title=${t("signIn.title")} lead=${t("signIn.lead")}><${SignInForm} />
    <p class="center"><${Link} to="/forgot">${t("forgot.link")}<//>
      ${isOpen && html` · <${Link} to="/sign-up">${t("signUp.link")}<//>`}</p><//>`;
}

export function Forgot() {
  const [isSent, setSent] = useState(false);
  const form = useForm({ email: "" }, async (values) => { await post("/password/forgot", values); setSent(true); });
  const hasMail = session.value?.mail !== false;
  return html`<${Card} title=${t("forgot.title")} lead=${hasMail && !isSent ? t("forgot.lead") : null}>
    ${!hasMail ? html`<${Notice} title=${t("forgot.noMail")}><${Contact} /><//>`
      : isSent ? html`<${LinkSent} email=${form.values.email} />` : html`<form ...${form.form}><${Fault} form=${form} />
        <${Field} label=${t("email")} type="email" autocomplete="username" required autofocus
          ...${form.bind("email")} />
        <${Submit} form=${form}>${t("forgot.action")}<//></form>`}
    <p class="center"><${Link} to="/sign-in">${t("signIn.link")}<//></p><//>`;
}

function LinkSent({ email }) {
  const time = duration(service.value.passwordResetSeconds);
  return html`<${Notice} kind="good" title=${t("forgot.sent")}>${t("forgot.sentText", { email, time })}<//>`;
}

export function Reset() {
  const { token = "" } = route.value.query;
  const [isDone, setDone] = useState(false);
  const form = useForm({ password: "" }, async ({ password }) => {
    await post("/password/reset", { token, password });
    setDone(true);
  });
  return html`<${Card} title=${t("reset.title")}>
    ${isDone ? html`<${Notice} kind="good" title=${t("reset.done")} />
        <p class="center"><${Link} to="/sign-in">${t("signIn.link")}<//></p>`
      : html`<form ...${form.form}><${Fault} form=${form} />
        ${form.failure?.code === "TOKEN_INVALID" && html`<p><${Link} to="/forgot">${t("reset.again")}<//></p>`}
        <${NewPassword} ...${form.bind("password")} /><${Submit} form=${form}>${t("reset.action")}<//></form>`}<//>`;
}

export function Invitation() {
  const { token = "" } = route.value.query;
  const state = useLoad((signal) => call("POST", "/invitations/inspect", { token }, { repeat: true, signal }), [token]);
  const form = useForm({ name: "", password: "" }, async (values) =>
    enter(await post("/invitations/accept", { token, ...values })));
  return html`<${Card} title=${t("invitation.title")}>
    <${Loaded} state=${{ ...state, reload: null }}>${(data) => html`
      <p>${t("invitation.text", { account: data.accountName, email: data.email })}</p>
      <form ...${form.form}><${Fault} form=${form} />
        <${Field} label=${t("name")} autocomplete="name" required autofocus ...${form.bind("name")} />
        <input class="vh" type="email" autocomplete="username" value=${data.email} tabindex="-1" readonly
          aria-label=${t("email")} />
        <${NewPassword} ...${form.bind("password")} />
        <${Submit} form=${form}>${t("invitation.action")}<//></form>`}<//><//>`;
}

export function SignUp() {
  const [state, setState] = useState(null);
  const form = useForm({ accountName: "", name: "", email: "", password: "" }, async (values) => {
    const data = await post("/sign-up", values);
    if (data.state === "verify") setState("verify");
    else enter(data);
  });
  const { signUp } = session.value, isOpen = signUp === "open";
  const values = { email: form.values.email };
  return html`<${Card} title=${t("signUp.title")} lead=${isOpen && !state ? t("signUp.lead") : null}>
    ${!isOpen ? html`<${Notice} title=${t(signUp === "invite" ? "signUp.invite" : "signUp.closed")} />`
      : state ? html`<${Notice} kind="good" title=${t("signUp.sent")}>${t("signUp.sentText", values)}<//>`
        : html`<form ...${form.form}><${Fault} form=${form} />
          <${Field} label=${t("name")} autocomplete="name" required autofocus ...${form.bind("name")} />
          <${Field} label=${t("accountName")} hint=${t("accountName.hint")} autocomplete="organization" required
            ...${form.bind("accountName")} />
          <${Field} label=${t("email")} type="email" autocomplete="username" required ...${form.bind("email")} />
          <${NewPassword} ...${form.bind("password")} /><${Submit} form=${form}>${t("signUp.action")}<//></form>`}
    <p class="center"><${Link} to="/sign-in">${t("signIn.link")}<//></p><//>`;
}

// A link in a mail may be opened twice, also by a scanner, so the user presses a button.
export function Verify() {
  const { token = "" } = route.value.query;
  const [isDone, setDone] = useState(false);
  const form = useForm({}, async () => {
    await post("/email/verify", { token });
    if (user.value) sessionSet({ ...session.value, user: { ...user.value, emailVerified: true } });
    setDone(true);
  });
  return html`<${Card} title=${t("verify.title")}>
    ${isDone ? html`<${Notice} kind="good" title=${t("verify.done")} />
        <p class="center"><a href=${href("/")}>${t("continue")}</a></p>`
      : html`<form ...${form.form}><${Fault} form=${form} /><p>${t("verify.text")}</p>
        <${Submit} form=${form}>${t("verify.action")}<//></form>`}<//>`;
}
