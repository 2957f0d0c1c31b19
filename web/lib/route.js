// The page and its state are in the fragment of the URL: #/orders?status=complete.
import { signal } from "./view.js";

function read() {
  const [path, query = ""] = location.hash.replace(/^#/, "").split("?");
  return { path: path || "/", query: Object.fromEntries(new URLSearchParams(query)) };
}

export const route = signal(read());

// Returns "?page=2&keyword=cat" without the values that are empty, or "".
export function queryText(query = {}) {
  const words = new URLSearchParams(Object.entries(query).filter(([, value]) => (value ?? "") !== ""));
  return String(words) && `?${words}`;
}

export const href = (path, query) => `#${path}${queryText(query)}`;

// "replace" adds no entry to the history: for changes of a filter while it is typed.
export function go(path, query = {}, replace = false) {
  const target = href(path, query);
  if (target === location.hash) return;
  if (replace) history.replaceState(null, "", target);
  else history.pushState(null, "", target);
  route.value = read();
}

addEventListener("hashchange", () => { route.value = read(); });
addEventListener("popstate", () => { route.value = read(); });
