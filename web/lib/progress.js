// The progress of an upload: a bar for all files and one for each, with what the user can do.
import { html } from "./view.js";
import { t, bytes } from "./text.js";
import { Button, Failure, Icon, Notice, confirm, errorText, useNow } from "./ui.js";
import { go } from "./route.js";

export function Progress({ upload, onCancelled }) {
  useNow(1000);
  const state = upload.state.value, parts = upload.parts.value;
  const done = parts.filter((part) => part.state.value === "done").length;
  const paused = parts.find((part) => part.state.value === "pausing");
  const cancel = async () => {
    if (!await confirm({ title: t("upload.cancelTitle", { count: parts.length, name: upload.orderName }), text: t("upload.cancelText"), action: t("upload.cancel") })) return;
    await upload.cancel();
    onCancelled?.();
  };
  const without = async () => {
    const next = await upload.withoutRefused();
    if (next.orderId) go(`/orders/${next.orderId}`, {}, true);
  };
  const refused = parts.filter((part) => part.state.value === "refused").length;
  return html`<section class="progress" aria-label=${t("upload.title")}>
    <div class="row"><strong role="status">${t(`upload.${state}`, { done, count: parts.length })}</strong>
      <span class="muted">${bytes(upload.sent.value)} / ${bytes(upload.total.value)}</span></div>
    <progress max=${upload.total.value || 1} value=${upload.sent.value} aria-label=${t("upload.all")}></progress>
    ${paused && html`<${Notice} kind="warning" title=${t("upload.paused", { seconds: Math.max(1, Math.ceil((paused.retryAt.value - Date.now()) / 1000)) })}>
      ${errorText(paused.error.value)} ${t("upload.pausedText")}<//>`}
    ${state === "failed" && html`${upload.error.value ? html`<${Failure} error=${upload.error.value} />`
      : html`<${Notice} kind="error" title=${t("upload.stopped")}>${t("upload.stoppedText")}<//>`}`}
    ${state === "refused" && html`<${Notice} kind="error" title=${t("upload.refusedTitle", { count: refused })}>${t("upload.refusedText")}<//>`}
    <div class="actions">
      ${state === "failed" && html`<${Button} kind="primary" onClick=${() => upload.retry()}>${t("retry")}<//>`}
      ${state === "refused" && refused < parts.length && html`<${Button} kind="primary" onClick=${without}>${t("upload.without", { count: parts.length - refused })}<//>`}
      ${state !== "done" && state !== "cancelled" && html`<${Button} onClick=${cancel}>${t("upload.cancel")}<//>`}
    </div>
    <ul class="bars">${parts.map((part) => html`<${Bar} key=${part.fileId} part=${part} />`)}</ul>
    ${upload.isBusy.value && html`<p class="muted small">${t("upload.keepOpen")}</p>`}
  </section>`;
}

function Bar({ part }) {
  const state = part.state.value;
  return html`<li><span class="name">${part.file.name}</span>
    <progress max=${part.file.size || 1} value=${part.sent.value} aria-label=${part.file.name}></progress>
    <span class=${`small ${state === "refused" || state === "stopped" ? "bad" : "muted"}`}>
      ${state === "done" ? html`<${Icon} name="check" /><span class="vh">${t("upload.part.done")}</span>` : t(`upload.part.${state}`)}</span>
    ${part.error.value && ["refused", "stopped"].includes(state) && html`<p class="bad small">${part.error.value.message || errorText(part.error.value)}</p>`}</li>`;
}
