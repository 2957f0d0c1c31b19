// The start: first steps, the last seven days, orders in progress, the plan.
import { html, useEffect, useRef } from "../lib/view.js";
import { account, get, isOwner, post, session, user } from "../lib/api.js";
import { t, bytes, known, number, language } from "../lib/text.js";
import { Button, Empty, Head, Icon, Link, Loaded, Notice, Table, toast, useLoad, usePoll } from "../lib/ui.js";
import { isEnded } from "../lib/upload.js";
import { columns } from "./orders.js";

const BYTES = ["promisedBytes", "storedBytes"];

export function Overview() {
  const days = useLoad((signal) => get("/v2/orders/stats/recent", {}, { signal }), []);
  const usage = useLoad((signal) => get("/v2/orders/stats/usage", {}, { signal }), []);
  const orders = useLoad((signal) => get("/v2/orders", { limit: 5 }, { signal }), []);
  const some = orders.data?.orders ?? [], isBusy = some.some((order) => !isEnded(order.status));
  usePoll(orders.reload, isBusy, 2500, 10000);
  const wasBusy = useRef(false);
  useEffect(() => {
    if (wasBusy.current && !isBusy) { days.reload(); usage.reload(); }
    wasBusy.current = isBusy;
  }, [isBusy]);
  return html`<${Head} title=${t("overview.hello", { name: user.value.name })}><${Link} to="/new" class="button primary"><${Icon} name="add" />${t("new.title")}<//><//>
    ${session.value.mail && user.value.emailVerified === false && html`<${Notice} kind="warning" title=${t("verify.missing")}
      action=${html`<${Button} onClick=${async () => { await post("/email/verify/resend"); toast(t("verify.resent")); }}>${t("verify.resend")}<//>`} />`}
    <${Steps} orders=${orders.data} />
    <section class="card" aria-labelledby="days"><h2 id="days">${t("overview.days")}</h2><${Loaded} state=${days}>${(data) => html`<${Chart} data=${data} />`}<//></section>
    <section class="card" aria-labelledby="recent"><div class="row"><h2 id="recent">${t(isBusy ? "overview.running" : "overview.recent")}</h2><${Link} to="/orders">${t("overview.all")}<//></div>
      <${Loaded} state=${orders}>${(data) => html`<${Table} caption=${t("overview.recent")} columns=${columns()} rows=${data.orders} keyOf=${(order) => order.orderId}
        empty=${html`<${Empty} icon="orders" title=${t("orders.empty")}><p>${t("orders.emptyText")}</p><//>`} />`}<//></section>
    <section class="card" aria-labelledby="plan"><h2 id="plan">${t("overview.plan", { plan: known(`plan.${account.value?.plan}`, account.value?.plan) })}</h2>
      <${Loaded} state=${usage}>${(data) => html`<${Limits} limits=${data.limits} />`}<//></section>`;
}

// A new account's way; gone when each step is done.
function Steps({ orders }) {
  const keys = useLoad((signal) => get("/keys", { limit: 1 }, { signal }), []);
  const isDone = { order: (orders?.pageInfo.totalItems ?? 0) > 0, factor: user.value.totpEnabled, key: (keys.data?.keys.length ?? 0) > 0 };
  if (!orders || !keys.data || (isDone.order && isDone.factor)) return null;
  const steps = [["order", "/new"], ["factor", "/account/security"], ["key", "/developers"]];
  if (isOwner.value) steps.push(["people", "/account/members"]);
  return html`<section class="card steps" aria-labelledby="steps"><h2 id="steps">${t("steps.title")}</h2><ol>${steps.map(([name, to]) => html`
    <li key=${name} class=${isDone[name] ? "done" : ""}><span class="tick">${isDone[name] && html`<${Icon} name="check" />`}</span>
      <span><${Link} to=${to}>${t(`steps.${name}`)}<//>${isDone[name] && html`<span class="vh">${t("steps.done")}</span>`}
        <span class="muted small">${t(`steps.${name}.text`)}</span></span></li>`)}</ol></section>`;
}

// uPlot draws on a canvas, so a reader of the screen gets the numbers as a table.
function Chart({ data }) {
  const place = useRef(null);
  const total = data.dailyStats.reduce((sum, entry) => sum + entry.usageCount, 0);
  const name = (date, style) => new Intl.DateTimeFormat(language.value, { timeZone: "UTC", ...style }).format(new Date(date));
  useEffect(() => {
    let plot = null, isGone = false;
    const draw = async () => {
      const [{ default: UPlot }] = await Promise.all([import("../vendor/uplot.js"), style()]);
      if (isGone || !place.current) return;
      plot?.destroy();
      plot = new UPlot(options(UPlot, data, place.current, name), [data.dailyStats.map((_, at) => at), data.dailyStats.map((entry) => entry.usageCount)], place.current);
    };
    const watch = new ResizeObserver(() => { if (plot && place.current) plot.setSize({ width: place.current.clientWidth, height: 220 }); });
    draw();
    watch.observe(place.current);
    const scheme = new MutationObserver(draw);
    scheme.observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
    return () => { isGone = true; watch.disconnect(); scheme.disconnect(); plot?.destroy(); };
  }, [data, language.value]);
  return html`<p class="figure"><strong>${number(total)}</strong> <span class="muted">${t("overview.total", { count: total })}</span></p>
    <div class="chart" ref=${place} aria-hidden="true"></div>
    <div class="vh"><table><caption>${t("overview.days")}</caption><tbody>${data.dailyStats.map((entry) => html`<tr key=${entry.usageDate}>
      <th scope="row">${name(entry.usageDate, { dateStyle: "medium" })}</th><td>${number(entry.usageCount)}</td></tr>`)}</tbody></table></div>`;
}

// The chart's style sheet is loaded with the first chart.
let styled = null;
const style = () => (styled ??= new Promise((resolve) => {
  const link = Object.assign(document.createElement("link"), { rel: "stylesheet", href: "vendor/uplot.css", onload: resolve, onerror: resolve });
  document.head.append(link);
}));

function options(UPlot, data, place, name) {
  const root = getComputedStyle(document.documentElement), colour = (word) => root.getPropertyValue(word).trim();
  const axis = { stroke: colour("--pico-muted-color"), font: `${Math.round(parseFloat(root.fontSize) * 0.75)}px system-ui, sans-serif`, ticks: { show: false } };
  return {
    width: place.clientWidth, height: 220, legend: { show: false }, cursor: { show: false }, padding: [8, 8, 0, 0],
    scales: { x: { time: false, range: [-0.5, 6.5] }, y: { range: data.domain } },
    axes: [
      { ...axis, grid: { show: false }, splits: () => [0, 1, 2, 3, 4, 5, 6], values: (_, at) => at.map((i) => name(data.dailyStats[i].usageDate, place.clientWidth < 480 ? { day: "numeric" } : { weekday: "short", day: "numeric" })) },
      { ...axis, size: 56, splits: () => data.ticks, values: (_, ticks) => ticks.map(number), grid: { stroke: colour("--pico-muted-border-color"), width: 1 } },
    ],
    series: [{}, { paths: UPlot.paths.bars({ size: [0.6, 56], radius: 0.15 }), fill: colour("--pico-primary-background"), points: { show: false } }],
  };
}

export function Limits({ limits }) {
  return html`<ul class="limits">${limits.map(({ name, used, limit }) => {
    const show = (value) => (BYTES.includes(name) ? bytes(value) : number(value));
    return html`<li key=${name}><span>${known(`limit.${name}`, name)}</span>
      ${limit === null ? html`<span class="muted small">${t("limit.none", { used: show(used) })}</span>`
        : html`<meter min="0" max=${limit} high=${limit * 0.8} value=${Math.min(used, limit)} aria-label=${known(`limit.${name}`, name)}></meter>
          <span class="muted small">${t("limit.left", { used: show(used), limit: show(limit), left: show(Math.max(0, limit - used)) })}</span>`}</li>`;
  })}</ul>`;
}
