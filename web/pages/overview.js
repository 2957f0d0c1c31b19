// The start: first steps, the results of the last days, orders in progress, the plan.
import { html, useEffect, useRef } from "../lib/view.js";
import { account, get, isOwner, post, service, session, user } from "../lib/api.js";
import { t, bytes, known, number, language } from "../lib/text.js";
import {
  Button, Empty, Head, Icon, Link, Loaded, Notice, Section, Table, toast, useLoad, usePoll,
} from "../lib/ui.js";
import { isEnded } from "../lib/upload.js";
import { Waiting } from "../lib/waiting.js";
import { columns } from "./orders.js";

const RECENT_MOST = 5;
const BYTES = ["promisedBytes", "storedBytes"];
const daysTitle = () => t("overview.days", { days: service.value.statisticsDays });

export function Overview() {
  const days = useLoad((signal) => get("/v2/orders/stats/recent", {}, { signal }), []);
  const usage = useLoad((signal) => get("/v2/orders/stats/usage", {}, { signal }), []);
  const orders = useLoad((signal) => get("/v2/orders", { limit: 10 }, { signal }), []);
  const some = orders.data?.orders ?? [], running = some.filter((order) => !isEnded(order.status));
  const isBusy = running.length > 0;
  usePoll(orders.reload, isBusy, 2500, 10000);
  const wasBusy = useRef(false);
  useEffect(() => {
    if (wasBusy.current && !isBusy) { days.reload(); usage.reload(); }
    wasBusy.current = isBusy;
  }, [isBusy]);
  const plan = known(`plan.${account.value?.plan}`, account.value?.plan);
  return html`<${Head} title=${t("overview.hello", { name: user.value.name })}>
      <${Link} to="/new" class="button primary"><${Icon} name="add" />${t("new.title")}<//><//>
    ${session.value.mail && user.value.emailVerified === false && html`<${Unverified} />`}
    <${Waiting} />
    <${Steps} orders=${orders.data} />
    ${isBusy && html`<${Section} name="running" title=${t("overview.running")}>
      <${List} caption=${t("overview.running")} orders=${running} /><//>`}
    <${Section} name="recent" title=${t("overview.recent")}
        action=${html`<${Link} to="/orders">${t("overview.all")}<//>`}>
      <${Loaded} state=${orders}>${(data) => html`<${Recent} orders=${data.orders} />`}<//><//>
    <${Section} name="days" title=${daysTitle()}>
      <${Loaded} state=${days}>${(data) => html`<${Results} data=${data} />`}<//><//>
    <${Section} name="plan" title=${t("overview.plan", { plan })}>
      <${Loaded} state=${usage}>${(data) => html`<${Limits} limits=${data.limits} />`}<//><//>`;
}

function Unverified() {
  const resend = async () => { await post("/email/verify/resend"); toast(t("verify.resent")); };
  return html`<${Notice} kind="warning" title=${t("verify.missing")}
    action=${html`<${Button} onClick=${resend}>${t("verify.resend")}<//>`} />`;
}

const List = ({ caption, orders }) => html`<${Table} caption=${caption} columns=${columns()} rows=${orders}
  keyOf=${(order) => order.orderId} lines="two" />`;

function Recent({ orders }) {
  const ended = orders.filter((order) => isEnded(order.status)).slice(0, RECENT_MOST);
  if (ended.length > 0) return html`<${List} caption=${t("overview.recent")} orders=${ended} />`;
  if (orders.length > 0) return html`<p class="muted">${t("overview.noneEnded")}</p>`;
  return html`<${Empty} icon="orders" title=${t("orders.empty")}><p>${t("orders.emptyText")}</p><//>`;
}

// The first steps of a new account, hidden when each step is done.
function Steps({ orders }) {
  const keys = useLoad((signal) => get("/keys", { limit: 1 }, { signal }), []);
  const isDone = {
    order: (orders?.pageInfo.totalItems ?? 0) > 0,
    factor: user.value.totpEnabled,
    key: (keys.data?.keys.length ?? 0) > 0,
  };
  if (!orders || !keys.data || (isDone.order && isDone.factor)) return null;
  const steps = [["order", "/new"], ["factor", "/account/security"], ["key", "/developers"]];
  if (isOwner.value) steps.push(["people", "/account/members"]);
  return html`<section class="card steps" aria-labelledby="steps"><h2 id="steps">${t("steps.title")}</h2>
    <ol>${steps.map(([name, to]) => html`
      <${Step} key=${name} name=${name} to=${to} isDone=${isDone[name]} />`)}</ol></section>`;
}

const Step = ({ name, to, isDone }) => html`<li class=${isDone ? "done" : ""}>
  <span class="tick">${isDone && html`<${Icon} name="check" />`}</span>
  <span><${Link} to=${to}>${t(`steps.${name}`)}<//>${isDone && html`<span class="vh">${t("steps.done")}</span>`}
    <span class="muted small">${t(`steps.${name}.text`)}</span></span></li>`;

const dayName = (date, style) =>
  new Intl.DateTimeFormat(language.value, { timeZone: "UTC", ...style }).format(new Date(date));

// Days without results have no chart.
function Results({ data }) {
  const days = data.dailyStats.length, total = data.dailyStats.reduce((sum, entry) => sum + entry.usageCount, 0);
  if (total === 0) return html`<p class="muted">${t("overview.noResults", { days })}</p>`;
  return html`<p class="figure"><strong>${number(total)}</strong>
      ${" "}<span class="muted">${t("overview.total", { count: total, days })}</span></p>
    <${Chart} data=${data} />`;
}

const HEIGHT = 160;

// uPlot draws on a canvas, so a screen reader gets the numbers as a table.
function Chart({ data }) {
  const place = useRef(null);
  const { dailyStats } = data;
  useEffect(() => {
    let plot = null, isGone = false;
    const draw = async () => {
      const [{ default: UPlot }] = await Promise.all([import("../vendor/uplot.js"), style()]);
      if (isGone || !place.current) return;
      plot?.destroy();
      const points = [dailyStats.map((_, at) => at), dailyStats.map((entry) => entry.usageCount)];
      plot = new UPlot(options(UPlot, data, place.current), points, place.current);
    };
    const fit = () => {
      if (plot && place.current) plot.setSize({ width: place.current.clientWidth, height: HEIGHT });
    };
    const watch = new ResizeObserver(fit);
    draw();
    watch.observe(place.current);
    const scheme = new MutationObserver(draw), system = matchMedia("(prefers-color-scheme: dark)");
    scheme.observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
    system.addEventListener("change", draw);
    return () => {
      isGone = true;
      watch.disconnect();
      scheme.disconnect();
      system.removeEventListener("change", draw);
      plot?.destroy();
    };
  }, [data, language.value]);
  return html`<div class="chart" ref=${place} aria-hidden="true"></div>
    <div class="vh"><table><caption>${daysTitle()}</caption><tbody>${dailyStats.map((entry) => html`
      <tr key=${entry.usageDate}><th scope="row">${dayName(entry.usageDate, { dateStyle: "medium" })}</th>
        <td>${number(entry.usageCount)}</td></tr>`)}</tbody></table></div>`;
}

// The chart's style sheet is loaded with the first chart.
let styled = null;
const style = () => (styled ??= new Promise((resolve) => {
  const sheet = { rel: "stylesheet", href: "vendor/uplot.css", onload: resolve, onerror: resolve };
  document.head.append(Object.assign(document.createElement("link"), sheet));
}));

// The value of a custom property may be light-dark(), which a canvas does not know; the value of "color" is a colour.
function colourOf(place, name) {
  const probe = Object.assign(document.createElement("span"), { hidden: true });
  probe.style.setProperty("color", `var(${name})`);
  place.append(probe);
  const { color } = getComputedStyle(probe);
  probe.remove();
  return color;
}

function options(UPlot, data, place) {
  const { dailyStats, domain, ticks } = data;
  const rem = parseFloat(getComputedStyle(document.documentElement).fontSize);
  const colour = (name) => colourOf(place, name);
  const dayStyle = ({ width }) => (width < 480 ? { day: "numeric" } : { weekday: "short", day: "numeric" });
  const font = `${Math.round(rem * 0.75)}px system-ui, sans-serif`;
  const axis = { stroke: colour("--pico-muted-color"), font, ticks: { show: false } };
  return {
    width: place.clientWidth, height: HEIGHT, legend: { show: false }, cursor: { show: false }, padding: [8, 8, 0, 0],
    scales: { x: { time: false, range: [-0.5, dailyStats.length - 0.5] }, y: { range: domain } },
    axes: [
      {
        ...axis, size: 28, grid: { show: false }, splits: () => dailyStats.map((_, at) => at),
        values: (plot, at) => at.map((i) => dayName(dailyStats[i].usageDate, dayStyle(plot))),
      },
      {
        ...axis, size: 56, splits: () => ticks, values: (_, values) => values.map(number),
        grid: { stroke: colour("--pico-muted-border-color"), width: 1 },
      },
    ],
    series: [{}, {
      paths: UPlot.paths.bars({ size: [0.6, 56], radius: 0.15 }), points: { show: false },
      fill: colour("--pico-primary-background"),
    }],
  };
}

function Limit({ name, used, limit }) {
  const show = (value) => (BYTES.includes(name) ? bytes(value) : number(value)), title = known(`limit.${name}`, name);
  if (limit === null) {
    return html`<li><span>${title}</span>
      <span class="muted small">${t("limit.none", { used: show(used) })}</span></li>`;
  }
  const values = { used: show(used), limit: show(limit), left: show(Math.max(0, limit - used)) };
  return html`<li><span>${title}</span>
    <meter min="0" max=${limit} high=${limit * 0.8} value=${Math.min(used, limit)} aria-label=${title}></meter>
    <span class="muted small">${t("limit.left", values)}</span></li>`;
}

const LimitList = ({ limits }) => html`<ul class="limits">${limits.map((entry) => html`
  <${Limit} key=${entry.name} ...${entry} />`)}</ul>`;

// Limits of which nothing is used are folded.
export function Limits({ limits }) {
  const used = limits.filter((entry) => entry.used > 0), unused = limits.filter((entry) => !entry.used);
  return html`${used.length > 0 && html`<${LimitList} limits=${used} />`}
    ${unused.length > 0 && html`<details class="fold"><summary>${t("limit.unused", { count: unused.length })}</summary>
      <${LimitList} limits=${unused} /></details>`}`;
}
