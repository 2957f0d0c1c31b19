// The start of the console: theme, language, session, then the page that the URL names.
import { html, render, signal, useState, useEffect, useRef } from "./lib/view.js";
import { session, user, account, isLost, waiting, sessionLoad, signOut } from "./lib/api.js";
import { t, language, languages, languageSet, languagePreferred } from "./lib/text.js";
import { route, href } from "./lib/route.js";
import { Dialog, Failure, Icon, Notice, Question, Toasts, Button } from "./lib/ui.js";

// Path, module of web/pages, export, key of the title, whether it needs a session.
const pages = [
  ["/sign-in", "sign_in", "SignIn", "signIn.title", false],
  ["/sign-up", "sign_in", "SignUp", "signUp.title", false],
  ["/forgot", "sign_in", "Forgot", "forgot.title", false],
  ["/reset", "sign_in", "Reset", "reset.title", false],
  ["/invitation", "sign_in", "Invitation", "invitation.title", false],
  ["/verify", "sign_in", "Verify", "verify.title", false],
  ["/", "overview", "Overview", "overview.title", true],
  ["/new", "order_new", "OrderNew", "new.title", true],
  ["/orders", "orders", "Orders", "orders.title", true],
  ["/orders/:id", "order", "Order", "order.title", true],
  ["/read", "read", "Read", "read.title", true],
  ["/developers", "keys", "Keys", "keys.title", true],
  ["/developers/webhooks", "webhooks", "Webhooks", "webhooks.title", true],
  ["/developers/webhooks/:id", "webhooks", "Webhook", "webhook.title", true],
  ["/developers/requests", "requests", "Requests", "requests.title", true],
  ["/account", "account", "Profile", "account.title", true],
  ["/account/security", "security", "Security", "security.title", true],
  ["/account/members", "account", "Members", "members.title", true],
  ["/account/audit", "account", "Audit", "audit.title", true],
  ["/admin", "admin", "Accounts", "admin.accounts", true],
  ["/admin/accounts/:id", "admin", "Account", "admin.account", true],
  ["/admin/users", "admin", "Users", "admin.users", true],
  ["/admin/queue", "admin", "Queue", "admin.queue", true],
  ["/admin/health", "admin", "Health", "admin.health", true],
];

// Path, icon, key.
const menu = [
  ["/", "home", "overview.title"], ["/new", "add", "new.title"], ["/orders", "orders", "orders.title"],
  ["/read", "read", "read.title"], ["/developers", "code", "developers.title"], ["/account", "person", "account.title"],
];

function match(path) {
  for (const [pattern, module, name, title, isPrivate] of pages) {
    const found = path.match(new RegExp(`^${pattern.replace(/:(\w+)/g, "(?<$1>[^/]+)")}$`));
    if (found) return { module, name, title, isPrivate, values: found.groups ?? {} };
  }
  return null;
}

// ---- theme ----

const theme = signal(null);
function themeSet(name) {
  theme.value = name;
  if (name) document.documentElement.dataset.theme = name;
  try { if (name) localStorage.setItem("imgward.theme", name); } catch { /* storage is off */ }
}
// The colours of the system, which may change while the page is open.
const system = matchMedia("(prefers-color-scheme: dark)"), isSystemDark = signal(system.matches);
system.addEventListener("change", () => { isSystemDark.value = system.matches; });
const isDark = () => (theme.value ? theme.value === "dark" : isSystemDark.value);

function ThemeSwitch() {
  const next = isDark() ? "light" : "dark", words = t(`theme.${next}`);
  return html`<button type="button" class="ghost" aria-label=${words} title=${words} onClick=${() => themeSet(next)}>
    <${Icon} name=${next === "dark" ? "moon" : "sun"} /></button>`;
}

// ---- page ----

// Loads the module of a page when it is first opened.
function Page({ page }) {
  const [state, setState] = useState({});
  useEffect(() => {
    // The user may have opened another page before this one has arrived.
    let isCurrent = true;
    const show = (found) => { if (isCurrent) setState(found); };
    import(`./pages/${page.module}.js`)
      .then((module) => show({ View: module[page.name], page }), (error) => show({ error }));
    return () => { isCurrent = false; };
  }, [page.module, page.name]);
  // A reader of the screen starts at the new page's heading.
  const isFirst = useRef(true);
  useEffect(() => {
    if (!state.View) return;
    document.title = `${t(page.title)} · imgward`;
    if (!isFirst.current) {
      scrollTo(0, 0);
      document.querySelector("main h1")?.focus({ preventScroll: true });
    }
    isFirst.current = false;
  }, [state.View, route.value.path, language.value]);
  if (state.error) return html`<${Failure} error=${state.error} retry=${() => location.reload()} />`;
  if (!state.View || state.page.name !== page.name) return html`<div class="skeleton" aria-busy="true"></div>`;
  return html`<${state.View} key=${JSON.stringify(page.values)} ...${page.values} />`;
}

const Brand = () => html`
  <a class="brand" href=${href("/")}><img src="icon.svg" alt="" width="28" height="28" />imgward</a>`;

function Menu({ onClose }) {
  const { path } = route.value, isAdmin = user.value.isAdmin;
  const entries = isAdmin ? [...menu, ["/admin", "gauge", "admin.title"]] : menu;
  const isCurrent = (start) => (start === "/" ? path === "/" : path === start || path.startsWith(`${start}/`));
  return html`<nav aria-label=${t("menu")}><ul>${entries.map(([to, icon, key]) => html`<li key=${to}>
    <a href=${href(to)} aria-current=${isCurrent(to) ? "page" : undefined} onClick=${onClose}>
      <${Icon} name=${icon} />${t(key)}</a></li>`)}</ul></nav>`;
}

function Skip() {
  const skip = (event) => { event.preventDefault(); document.querySelector("main").focus(); };
  return html`<a class="skip" href="#main" onClick=${skip}>${t("skip")}</a>`;
}

const Who = () => html`<div class="who">
  <div><strong>${user.value.name}</strong><span class="muted small">${account.value?.name}</span></div>
  <div><${ThemeSwitch} /><${Button} kind="plain small" onClick=${signOut}>${t("signOut")}<//></div></div>`;

function Side() {
  const [isOpen, setOpen] = useState(false);
  useEffect(() => {
    const close = (event) => { if (event.key === "Escape") setOpen(false); };
    addEventListener("keydown", close);
    return () => removeEventListener("keydown", close);
  }, []);
  return html`<header class=${`side ${isOpen ? "open" : ""}`}>
    <div class="bar"><${Brand} />
      <button type="button" class="ghost menu-button" aria-expanded=${isOpen} aria-label=${t("menu")}
        onClick=${() => setOpen(!isOpen)}><${Icon} name=${isOpen ? "close" : "menu"} /></button></div>
    <div class="drawer"><${Menu} onClose=${() => setOpen(false)} /><${Who} /></div></header>`;
}

const Shell = ({ children }) => html`<div class="shell"><${Skip} /><${Side} />
  <main id="main" tabindex="-1">
    <div role="status">${waiting.value > 0 && html`
      <${Notice} kind="warning" title=${t("waiting.title")}>${t("waiting.text")}<//>`}</div>
    ${account.value?.status === "suspended" && html`
      <${Notice} kind="error" title=${t("suspended.title")}>${t("suspended.text")}<//>`}
    ${children}
  </main></div>`;

const Front = ({ children }) => html`<div class="front">
  <header class="bar"><${Brand} /><div><${LanguageSwitch} /><${ThemeSwitch} /></div></header>
  <main>${children}</main></div>`;

function LanguageSwitch() {
  const others = Object.entries(languages).filter(([name]) => name !== language.value);
  return others.map(([name, title]) => html`
    <button type="button" class="ghost" key=${name} lang=${name} onClick=${() => languageSet(name)}>${title}</button>`);
}

// The session ended: the page stays, and sign-in opens over it.
function Again() {
  const [view, setView] = useState(null);
  useEffect(() => { import("./pages/sign_in.js").then((module) => setView(() => module.SignInForm)); }, []);
  return html`<${Dialog} title=${t("again.title")}><p>${t("again.text")}</p>
    ${view && html`<${view} email=${user.value?.email} />`}<//>`;
}

function Missing() {
  useEffect(() => { document.title = `${t("missing.title")} · imgward`; }, [language.value]);
  return html`<header class="head"><h1 tabindex="-1">${t("missing.title")}</h1></header>
    <p><a href=${href("/")}>${t("missing.back")}</a></p>`;
}

function Console() {
  language.value;
  const page = match(route.value.path);
  if (!user.value && (!page || page.isPrivate)) {
    return html`<${Front}><${Page} page=${{ ...match("/sign-in") }} /><//>`;
  }
  if (!page) return html`<${Shell}><${Missing} /><//>`;
  if (page.module === "admin" && !user.value.isAdmin) return html`<${Shell}><${Missing} /><//>`;
  if (!page.isPrivate) return html`<${Front}><${Page} page=${page} /><//>`;
  return html`<${Shell}><${Page} page=${page} /><//>`;
}

const App = () => html`<${Console} />${isLost.value && html`<${Again} />`}<${Question} /><${Toasts} />`;

async function start() {
  let kept = null;
  try { kept = localStorage.getItem("imgward.theme"); } catch { /* storage is off */ }
  themeSet(kept);
  const root = document.getElementById("console");
  const begin = async () => {
    render(html`<div class="skeleton" aria-busy="true"></div>`, root);
    try {
      await sessionLoad();
      if (user.value?.language && user.value.language !== language.value) await languageSet(user.value.language);
      render(html`<${App} />`, root);
    } catch (error) {
      render(html`<div class="front"><main><${Failure} error=${error} retry=${begin} /></main></div>`, root);
    }
  };
  await languageSet(languagePreferred());
  await begin();
}

// A signed-in session that begins later has the user's language.
let languageOf = null;
session.subscribe((value) => {
  if (value?.user && value.user.id !== languageOf) {
    languageOf = value.user.id;
    if (value.user.language && value.user.language !== language.value) languageSet(value.user.language);
  }
});

start();
