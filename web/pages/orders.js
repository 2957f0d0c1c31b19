// The list of orders. The URL holds search, filters and page.
import { html, useEffect, useState } from "../lib/view.js";
import { get } from "../lib/api.js";
import { t } from "../lib/text.js";
import { route, go } from "../lib/route.js";
import {
  Badge, Button, Empty, Field, Head, Icon, Link, Loaded, Pager, Search, Table, Time, useLoad, usePoll,
} from "../lib/ui.js";
import { isEnded } from "../lib/upload.js";

export const STATUSES = ["pending", "inProgress", "complete", "failed", "detected", "undetected", "expired"];
export const TYPES = ["antiAi", "watermarkEmbed", "watermarkExtract"];
const CHANNELS = ["web", "api"];
const KINDS = { complete: "good", detected: "good", failed: "bad", inProgress: "busy", pending: "busy" };

// An order is complete with some of its files, too. An order that was deleted is expired, like one whose time is over.
export function Status({ order: { status, completedFileCount: done, fileCount: count, deletedAt } }) {
  if (deletedAt) return html`<${Badge}>${t("status.deleted")}<//>`;
  if (status === "complete" && done < count) {
    return html`<${Badge} kind="warning">${t("status.partly", { done, count })}<//>`;
  }
  return html`<${Badge} kind=${KINDS[status] ?? ""}>${t(`status.${status}`)}<//>`;
}

// The thumbnail of a signed URL. Each answer has new URLs, so the first one stays, until it has expired.
export function Thumbnail({ url, type = "antiAi" }) {
  const [shown, setShown] = useState(url);
  const [isBroken, setBroken] = useState(false);
  useEffect(() => { if (url && !shown) setShown(url); }, [url]);
  const fail = () => (shown === url ? setBroken(true) : setShown(url));
  if (!shown || !url || isBroken) {
    return html`<span class="thumb none"><${Icon} name=${type === "watermarkExtract" ? "read" : "orders"} /></span>`;
  }
  return html`<img class="thumb" src=${shown} alt="" width="48" height="48" loading="lazy" onError=${fail} />`;
}

const Name = ({ order }) => html`<${Link} to=${`/orders/${order.orderId}`} class="with-thumb">
  <${Thumbnail} url=${order.thumbnailImageUrl} type=${order.type} /><span>${order.orderName}</span><//>`;

export const columns = () => [
  ["name", t("orders.name"), (order) => html`<${Name} order=${order} />`, "main"],
  ["type", t("orders.type"), (order) => t(`type.${order.type}`)],
  ["files", t("orders.files"), (order) => t("orders.fileCount", { count: order.fileCount })],
  ["status", t("orders.status"), (order) => html`<${Status} order=${order} />`, "state"],
  ["created", t("orders.created"), (order) => html`<${Time} at=${order.createdAt} />`],
];

const NewLink = ({ children }) => html`<${Link} to="/new" class="button primary">${children}${t("new.title")}<//>`;

const Nothing = ({ isFiltered }) => (isFiltered ? html`
  <${Empty} icon="read" title=${t("orders.nothing")}>
    <${Button} onClick=${() => go("/orders")}>${t("orders.clear")}<//><//>` : html`
  <${Empty} icon="orders" title=${t("orders.empty")}><p>${t("orders.emptyText")}</p><${NewLink} /><//>`);

// The filters of the URL by the client's own data.
const pairsOf = (query) => Object.entries(query).filter(([name]) => name.startsWith("metadata["));
export const pairName = (key) => `metadata[${key}]`;

const Pairs = ({ pairs, onRemove }) => pairs.length > 0 && html`<p class="facts small">${t("orders.metadata")}
  ${pairs.map(([name, value]) => html`<${Button} key=${name} kind="plain small" onClick=${() => onRemove(name)}
    aria-label=${t("orders.metadataRemove", { name: name.slice(9, -1), value })}>
    ${name.slice(9, -1)}: ${value} <${Icon} name="close" /><//>`)}</p>`;

export function Orders() {
  const { query } = route.value;
  const { page = "1", keyword = "", status = "", type = "", channel = "" } = query;
  const pairs = pairsOf(query);
  const asked = { page, limit: 20, keyword, status, type, channel, ...Object.fromEntries(pairs) };
  const state = useLoad((signal) => get("/v2/orders", asked, { signal }), [String(new URLSearchParams(asked))]);
  const orders = state.data?.orders ?? [];
  usePoll(state.reload, orders.some((order) => !isEnded(order.status)), 4000, 15000);
  const filter = (changes, isTyped) => go("/orders", { ...query, page: "", ...changes }, isTyped);
  const turn = (number) => { go("/orders", { ...query, page: number }); scrollTo(0, 0); };
  const isFiltered = keyword || status || type || channel || pairs.length > 0;
  return html`<${Head} title=${t("orders.title")}><${NewLink}><${Icon} name="add" /><//><//>
    <form class="filters" aria-label=${t("orders.search")} onSubmit=${(event) => event.preventDefault()}>
      <${Search} label=${t("orders.search")} hint=${t("orders.searchHint")} value=${keyword}
        onValue=${(value) => filter({ keyword: value }, true)} />
      <${Select} name="status" value=${status} words=${STATUSES} onValue=${(value) => filter({ status: value })} />
      <${Select} name="type" value=${type} words=${TYPES} onValue=${(value) => filter({ type: value })} />
      <${Select} name="channel" value=${channel} words=${CHANNELS} onValue=${(value) => filter({ channel: value })} />
    </form>
    <${Pairs} pairs=${pairs} onRemove=${(name) => filter({ [name]: "" })} />
    <${Loaded} state=${state}>${(data) => html`
      <${Table} caption=${t("orders.title")} columns=${columns()} rows=${data.orders}
        keyOf=${(order) => order.orderId} lines="two" empty=${html`<${Nothing} isFiltered=${isFiltered} />`} />
      <${Pager} info=${data.pageInfo} onPage=${turn} />`}<//>`;
}

// A filter by a property of orders, which has a text for each of its words.
const Select = ({ name, value, words, onValue }) => html`
  <${Field} label=${t(`orders.${name}`)} value=${value} onValue=${onValue}>
    <option value="">${t("all")}</option>
    ${words.map((word) => html`<option key=${word} value=${word}>${t(`${name}.${word}`)}</option>`)}<//>`;
