// The orders of the account that wait for files.
import { html } from "./view.js";
import { get } from "./api.js";
import { t, relative } from "./text.js";
import { Link, Notice, useLoad } from "./ui.js";
import { current } from "./upload.js";

const ASKED = { status: "pending", channel: "web", limit: 2 };

// A banner with the newest of them, but not that of this tab. Another tab or a colleague may be uploading to it.
export function Waiting() {
  const state = useLoad((signal) => get("/v2/orders", ASKED, { signal }), [current.value]);
  const mine = current.value?.orderId, found = state.data?.orders ?? [];
  const [order] = found.filter(({ orderId }) => orderId !== mine);
  if (!order) return null;
  const others = state.data.pageInfo.totalItems - 1 - found.some(({ orderId }) => orderId === mine);
  const values = { when: relative(order.expiresAt), count: order.fileCount };
  return html`<${Notice} kind="warning" title=${t("unfinished.title", { name: order.orderName })}
      action=${html`<${Link} to=${`/orders/${order.orderId}`} class="button">${t("unfinished.action")}<//>`}>
    ${t("unfinished.text", values)}${others > 0 && html`${" "}
      <${Link} to="/orders" query=${{ status: "pending" }}>${t("unfinished.others", { count: others })}<//>`}<//>`;
}
