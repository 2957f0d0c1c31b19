// Requests to the console's API. A request waits for a new sign-in if the session is lost, and is repeated while the
// service restarts.
import { signal, computed } from "./view.js";
import { queryText } from "./route.js";

const BASE = "/console/api";

// The answer of GET /session; null before the first answer.
export const session = signal(null);
export const user = computed(() => session.value?.user ?? null);
export const account = computed(() => session.value?.account ?? null);
// Limits and terms of the service, which each answer of GET /session includes.
export const service = computed(() => session.value?.service ?? null);
export const isOwner = computed(() => account.value?.role === "owner");
// The session ended while a page was open: sign-in opens over the page.
export const isLost = signal(false);
// Requests that wait for the service to answer again.
export const waiting = signal(0);

const tabs = new BroadcastChannel("imgward");
let signedIn = null;

export class ApiError extends Error {
  constructor(status, body, retryAfter) {
    super(body?.message ?? "");
    this.status = status;
    this.code = body?.code ?? (status === 0 ? "NETWORK" : "SERVICE_UNAVAILABLE");
    this.details = body?.details ?? [];
    this.reason = body?.reason;
    this.params = body?.params;
    this.requestId = body?.requestId ?? "";
    this.retryAfter = retryAfter;
  }
}

export const pause = (ms, signal) => new Promise((resolve, reject) => {
  const timer = setTimeout(resolve, ms);
  const stop = () => { clearTimeout(timer); reject(new DOMException("", "AbortError")); };
  signal?.addEventListener("abort", stop, { once: true });
});

// Waits of repeated attempts: 1, 2, 4, 8, then 15 s, each up to a fifth longer. Retry-After extends a wait.
export const backoff = (attempt, retryAfter = 0) =>
  Math.max(Math.min(15, 2 ** attempt) * (1 + Math.random() / 5), Math.min(retryAfter || 0, 120)) * 1000;

// A limit of the account is not temporary: it may last until tomorrow, and the user can do something about it.
export const isTemporary = (error) =>
  [0, 429, 502, 503, 504].includes(error.status) && error.code !== "USAGE_LIMIT_EXCEEDED";

async function send(method, path, body, signal) {
  const headers = { Accept: "application/json" };
  if (method !== "GET") {
    headers["Content-Type"] = "application/json";
    if (session.value?.csrfToken) headers["X-CSRF-Token"] = session.value.csrfToken;
  }
  const text = method === "GET" ? undefined : JSON.stringify(body ?? {});
  let answer;
  try {
    answer = await fetch(BASE + path, { method, headers, signal, body: text });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError(0, null, 0);
  }
  const json = await answer.json().catch(() => null);
  const data = json?.data ?? {};
  // A change of the password or the second factor renews the session.
  if (answer.ok && path !== "/session" && data.csrfToken && user.value) {
    session.value = { ...session.value, csrfToken: data.csrfToken };
  }
  if (answer.ok) return data;
  throw new ApiError(answer.status, json, Number(answer.headers.get("Retry-After")) || 0);
}

// Repeats a GET, and a change that "repeat" declares safe to repeat. Failures of other changes are shown to the user.
async function persist(attempt, isRepeated, signal) {
  let isWaiting = false;
  try {
    for (let count = 0; ; count++) {
      try {
        return await attempt();
      } catch (error) {
        if (!(error instanceof ApiError) || !isRepeated || !isTemporary(error) || count >= 8) throw error;
        if (!isWaiting && error.status !== 429) { isWaiting = true; waiting.value++; }
        await pause(backoff(count, error.retryAfter), signal);
      }
    }
  } finally {
    if (isWaiting) waiting.value--;
  }
}

export async function call(method, path, body, { repeat = method === "GET", signal } = {}) {
  for (let renewals = 0; ; renewals++) {
    try {
      return await persist(() => send(method, path, body, signal), repeat, signal);
    } catch (error) {
      if (error.code === "CSRF_TOKEN_INVALID" && renewals === 0) await sessionLoad();
      else if (error.code === "SESSION_REQUIRED" && user.value && renewals < 3) await signInAgain(signal);
      else throw error;
    }
  }
}

export const get = (path, query, options) => call("GET", path + queryText(query), null, options);
export const post = (path, body, options) => call("POST", path, body, options);
export const put = (path, body, options) => call("PUT", path, body, options);
export const patch = (path, body, options) => call("PATCH", path, body, options);
export const remove = (path, options) => call("DELETE", path, null, options);

// If a page finds the session lost, all requests of the page wait for the same sign-in.
function signInAgain(signal) {
  isLost.value = true;
  signedIn ??= Promise.withResolvers?.() ?? resolvers();
  return Promise.race([signedIn.promise, new Promise((_, reject) =>
    signal?.addEventListener("abort", () => reject(new DOMException("", "AbortError")), { once: true }))]);
}

function resolvers() {
  const made = {};
  made.promise = new Promise((resolve, reject) => Object.assign(made, { resolve, reject }));
  return made;
}

// Another user in the same tab must not see the page of the previous user.
export function sessionSet(data, isShared = true) {
  const before = user.value?.id;
  if (before && data.user && data.user.id !== before) {
    location.reload();
    return;
  }
  session.value = data;
  if (data.user) {
    isLost.value = false;
    signedIn?.resolve();
    signedIn = null;
  }
  if (isShared) tabs.postMessage(data.user?.id ?? null);
}

export async function sessionLoad() {
  const data = await persist(() => send("GET", "/session"), true);
  if (data.user || !user.value) sessionSet(data, false);
  else isLost.value = true;
}

export async function signOut() {
  await remove("/session").catch((error) => { if (error.code !== "SESSION_REQUIRED") throw error; });
  tabs.postMessage(null);
  location.hash = "#/";
  location.reload();
}

// If another tab signed in or out, this tab loads the session again.
tabs.onmessage = () => { if (session.value) sessionLoad().catch(() => {}); };
