// An order on its way from this browser: create, upload four files at a time, confirm. It continues while the user
// opens other pages, waits while the service restarts, and renews upload URLs that have expired.
import { signal, computed, batch } from "./view.js";
import { ApiError, backoff, get, isTemporary, pause, post, remove } from "./api.js";

const PARALLEL = 4;
const PATHS = {
  antiAi: "/v2/orders/anti-ai", watermarkEmbed: "/v2/orders/wtr-embed", watermarkExtract: "/v2/orders/wtr-extract",
};

// The upload of this tab; null if there is none.
export const current = signal(null);
// Originals by order and file: the comparison with a result needs them. The newest orders only, to bound memory.
const originals = new Map();
const ORDERS_KEPT = 20;
export const originalOf = (orderId, fileId) => originals.get(orderId)?.get(String(fileId));

function originalsKeep(orderId, parts) {
  originals.set(orderId, new Map(parts.map((part) => [part.fileId, part.file])));
  if (originals.size > ORDERS_KEPT) originals.delete(originals.keys().next().value);
}

// States of a part: "waiting", "sending", "pausing" (before another attempt), "done", "refused", "stopped".
const partNew = (file, url, fileId) => ({
  file, fileId: String(fileId ?? ""), url, error: signal(null), retryAt: signal(0),
  state: signal(url === null ? "done" : "waiting"), sent: signal(url === null ? file.size : 0),
});

export class Upload {
  // "body" is the creation without files; "files" have {file, more}, where "more" has the other fields of the entry.
  constructor(type, body, files) {
    this.type = type;
    this.body = body;
    this.files = files;
    this.key = crypto.randomUUID();
    this.orderId = "";
    this.orderName = "";
    this.isResumed = false;
    // creating, uploading, starting, done, failed, refused, cancelled
    this.state = signal("creating");
    this.error = signal(null);
    this.parts = signal([]);
    this.control = new AbortController();
    const sum = (size) => this.parts.value.map(size).reduce((total, value) => total + value, 0);
    this.total = computed(() => sum((part) => part.file.size));
    this.sent = computed(() => sum((part) => Math.min(part.sent.value, part.file.size)));
    this.isBusy = computed(() => ["creating", "uploading", "starting"].includes(this.state.value));
  }

  async run() {
    current.value = this;
    try {
      if (!this.orderId) await this.create();
      await this.send();
    } catch (error) {
      if (error.name === "AbortError") return;
      batch(() => { this.error.value = error; this.state.value = "failed"; });
      throw error;
    }
  }

  // The idempotency key stays the same, so a repeated creation returns the same order.
  async create() {
    this.state.value = "creating";
    const data = await post(PATHS[this.type], this.creation(), { repeat: true, signal: this.control.signal });
    this.orderId = data.orderId;
    this.orderName = data.orderName;
    const given = data.files ?? [data.file, data.file.originalFile].filter(Boolean);
    this.parts.value = this.files.map(({ file }, at) => partNew(file, given[at].uploadUrl, given[at].fileId));
    originalsKeep(this.orderId, this.parts.value);
  }

  creation() {
    const body = { idempotencyKey: this.key, ...this.body };
    const files = this.files.map(({ file, more }) => ({ fileName: file.name, ...more }));
    if (this.type !== "watermarkExtract") return { ...body, files };
    const [file, originalFile] = files;
    return { ...body, file: originalFile ? { ...file, includeOriginal: true, originalFile } : file };
  }

  async send() {
    this.state.value = "uploading";
    this.error.value = null;
    const waiting = this.parts.value.filter((part) => part.state.value !== "done" && part.state.value !== "refused");
    for (const part of waiting) part.state.value = "waiting";
    const next = async () => {
      for (let part = waiting.shift(); part; part = waiting.shift()) await this.sendPart(part);
    };
    await Promise.all(Array.from({ length: PARALLEL }, next));
    if (this.control.signal.aborted) return;
    const open = this.parts.value.filter((part) => part.state.value !== "done");
    if (open.length > 0) {
      this.state.value = open.some((part) => part.state.value === "stopped") ? "failed" : "refused";
      return;
    }
    this.state.value = "starting";
    const body = { idempotencyKey: `${this.key}-start`, orderId: this.orderId };
    const data = await post("/v2/orders/anti-ai/confirm", body, { repeat: true, signal: this.control.signal });
    batch(() => { this.status = data.status; this.state.value = "done"; });
  }

  // Attempts continue for about five minutes of failures without any progress; then the user is asked.
  async sendPart(part) {
    for (let count = 0; ; count++) {
      part.state.value = "sending";
      part.error.value = null;
      const before = part.sent.value;
      part.sent.value = 0;
      try {
        await this.sendOnce(part);
        batch(() => { part.sent.value = part.file.size; part.state.value = "done"; });
        return;
      } catch (error) {
        if (error.name === "AbortError") return;
        if (part.sent.value > before + 65536) count = Math.min(count, 1);
        if (!await this.recover(part, error, count)) return;
      }
    }
  }

  // Returns whether another attempt follows.
  async recover(part, error, count) {
    if (error.code === "ORDER_ALREADY_STARTED") {
      batch(() => { part.sent.value = part.file.size; part.state.value = "done"; });
      return false;
    }
    part.error.value = error;
    if (error.code === "URL_EXPIRED" && count < 3) return this.renew();
    if (!isTemporary(error)) { part.state.value = "refused"; return false; }
    if (count >= 24) { part.state.value = "stopped"; return false; }
    const wait = backoff(count, error.retryAfter);
    batch(() => { part.sent.value = 0; part.retryAt.value = Date.now() + wait; part.state.value = "pausing"; });
    try {
      await Promise.race([pause(wait, this.control.signal), online()]);
    } catch { return false; }
    return true;
  }

  // Requests new URLs for all files that are not uploaded.
  async renew() {
    try {
      const path = `/v2/orders/${this.orderId}/refresh-urls`;
      const { files } = await post(path, {}, { repeat: true, signal: this.control.signal });
      for (const { fileId, uploadUrl } of files) {
        const part = this.parts.value.find((other) => other.fileId === String(fileId));
        if (part && uploadUrl) part.url = uploadUrl;
      }
      return true;
    } catch (error) {
      batch(() => {
        this.error.value = error;
        for (const part of this.parts.value) if (part.state.value !== "done") part.state.value = "stopped";
      });
      return false;
    }
  }

  // Uses XMLHttpRequest, because fetch() reports no progress of an upload.
  sendOnce(part) {
    const abort = this.control.signal;
    return new Promise((resolve, reject) => {
      const request = new XMLHttpRequest();
      const stop = () => request.abort();
      abort.addEventListener("abort", stop, { once: true });
      request.open("PUT", part.url);
      request.upload.onprogress = (event) => { part.sent.value = event.loaded; };
      request.onloadend = () => {
        abort.removeEventListener("abort", stop);
        const { status, responseText } = request, retryAfter = Number(request.getResponseHeader("Retry-After")) || 0;
        if (abort.aborted) reject(new DOMException("", "AbortError"));
        else if (status >= 200 && status < 300) resolve();
        else reject(new ApiError(status, parse(responseText), retryAfter));
      };
      if (abort.aborted) reject(new DOMException("", "AbortError"));
      else request.send(part.file);
    });
  }

  // After "failed", sends the parts that are not uploaded again, with the same order.
  retry() { return this.run().catch(() => {}); }

  // If the service refuses some files, it has not started the order. So a new order has only the other files.
  async withoutRefused() {
    const refused = new Set(this.parts.value.filter((part) => part.state.value === "refused").map((part) => part.file));
    const upload = new Upload(this.type, this.body, this.files.filter(({ file }) => !refused.has(file)));
    const before = this.orderId;
    await upload.run().catch(() => {});
    if (upload.orderId) remove(`/v2/orders/${before}`).catch(() => {});
    return upload;
  }

  async cancel() {
    this.control.abort();
    this.state.value = "cancelled";
    if (current.value === this) current.value = null;
    if (this.orderId) await remove(`/v2/orders/${this.orderId}`, { repeat: true }).catch(() => {});
  }
}

// Continues an order of an earlier visit whose files are not all uploaded; the user chooses the same files again.
// Returns the upload and the names that are still missing.
export async function resume(order, files) {
  const { files: given } = await post(`/v2/orders/${order.orderId}/refresh-urls`, {}, { repeat: true });
  const left = [...files], upload = new Upload(order.type, {}, []);
  const parts = [], missing = [];
  for (const { fileId, fileName, uploadUrl, uploaded } of given) {
    const at = left.findIndex((file) => file.name === fileName);
    const [file] = at >= 0 ? left.splice(at, 1) : [null];
    if (file) parts.push(partNew(file, uploaded ? null : uploadUrl, fileId));
    else if (!uploaded) missing.push(fileName);
  }
  if (missing.length > 0) return { missing };
  upload.isResumed = true;
  upload.orderId = order.orderId;
  upload.orderName = order.orderName;
  upload.files = parts.map(({ file }) => ({ file }));
  upload.parts.value = parts;
  originalsKeep(order.orderId, parts);
  return { upload, missing };
}

// Ends the wait when the network is back.
const online = () => new Promise((resolve) => addEventListener("online", resolve, { once: true }));

function parse(text) {
  try { return JSON.parse(text); } catch { return null; }
}

addEventListener("beforeunload", (event) => { if (current.value?.isBusy.value) event.preventDefault(); });

export const orderGet = (orderId, signal) => get(`/v2/orders/${orderId}`, {}, { signal });
export const isEnded = (status) => !["pending", "inProgress"].includes(status);
