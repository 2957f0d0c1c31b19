// The progress of an upload: a bar for all files and a bar for each file, with the actions of the user.
import { html } from "./view.js";
import { t, bytes, say } from "./text.js";
import { Button, Failure, Icon, Notice, confirm, errorText, useNow } from "./ui.js";
import { go } from "./route.js";

export function Progress({ upload, onCancelled }) {
  const state = upload.state.value, parts = upload.parts.value, count = parts.length;
  const done = parts.filter((part) => part.state.value === "done").length;
  return html`<section class="progress" aria-label=${t("upload.title")}>
    <div class="row"><strong role="status">${t(`upload.${state}`, { done, count })}</strong>
      <span class="muted">${bytes(upload.sent.value)} / ${bytes(upload.total.value)}</span></div>
    <progress max=${upload.total.value || 1} value=${upload.sent.value} aria-label=${t("upload.all")}></progress>
    <${Pause} parts=${parts} />
    <${Problem} upload=${upload} />
    <${Actions} upload=${upload} onCancelled=${onCancelled} />
    <ul class="bars">${parts.map((part) => html`<${Bar} key=${part.fileId} part=${part} />`)}</ul>
    ${upload.isBusy.value && html`<p class="muted small">${t("upload.keepOpen")}</p>`}
  </section>`;
}

const refusedOf = (upload) => upload.parts.value.filter((part) => part.state.value === "refused").length;

// The notice of a paused upload. The live region is always there, so that a screen reader announces the notice. The
// countdown is hidden from screen readers, which would announce it each second.
function Pause({ parts }) {
  const now = useNow(1000);
  const paused = parts.find((part) => part.state.value === "pausing");
  const seconds = paused && Math.max(1, Math.ceil((paused.retryAt.value - now) / 1000));
  return html`<div role="status">${paused && html`<${Notice} kind="warning" title=${t("upload.paused")}>
    ${errorText(paused.error.value)} ${t("upload.pausedText")}
    ${" "}<span aria-hidden="true">${t("upload.next", { seconds })}</span><//>`}</div>`;
}

function Problem({ upload }) {
  const state = upload.state.value, error = upload.error.value;
  if (state === "refused") {
    return html`<${Notice} kind="error" title=${t("upload.refusedTitle", { count: refusedOf(upload) })}>
      ${t("upload.refusedText")}<//>`;
  }
  if (state !== "failed") return null;
  if (error) return html`<${Failure} error=${error} />`;
  return html`<${Notice} kind="error" title=${t("upload.stopped")}>${t("upload.stoppedText")}<//>`;
}

function Actions({ upload, onCancelled }) {
  const state = upload.state.value, count = upload.parts.value.length, left = count - refusedOf(upload);
  const cancel = async () => {
    const title = t("upload.cancelTitle", { count, name: upload.orderName });
    if (!await confirm({ title, text: t("upload.cancelText"), action: t("upload.cancel") })) return;
    await upload.cancel();
    onCancelled?.();
  };
  const without = async () => {
    const next = await upload.withoutRefused();
    if (next.orderId) go(`/orders/${next.orderId}`, {}, true);
  };
  return html`<div class="actions">
    ${state === "failed" && html`<${Button} kind="primary" onClick=${() => upload.retry()}>${t("retry")}<//>`}
    ${state === "refused" && left > 0 && html`
      <${Button} kind="primary" onClick=${without}>${t("upload.without", { count: left })}<//>`}
    ${state !== "done" && state !== "cancelled" && html`<${Button} onClick=${cancel}>${t("upload.cancel")}<//>`}
  </div>`;
}

function Bar({ part }) {
  const state = part.state.value, error = part.error.value, isBad = state === "refused" || state === "stopped";
  return html`<li><span class="name">${part.file.name}</span>
    <progress max=${part.file.size || 1} value=${part.sent.value} aria-label=${part.file.name}></progress>
    <span class=${`small ${isBad ? "bad" : "muted"}`}>
      ${state === "done" ? html`<${Icon} name="check" /><span class="vh">${t("upload.part.done")}</span>`
        : t(`upload.part.${state}`)}</span>
    ${error && isBad && html`<p class="bad small">${say(error) || errorText(error)}</p>`}</li>`;
}
