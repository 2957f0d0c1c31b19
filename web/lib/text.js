// Texts in the user's language. A text is named by its key; web/text has one file for each language.
import { signal } from "./view.js";

export const languages = { en: "English", ko: "한국어" };
export const language = signal("en");
let texts = {};

// The language of this browser until the user has chosen one.
export function languagePreferred() {
  const known = (word) => Object.keys(languages).find((name) => (word ?? "").toLowerCase().startsWith(name));
  let kept = null;
  try { kept = localStorage.getItem("imgward.language"); } catch { /* storage is off */ }
  return known(kept) ?? navigator.languages.map(known).find(Boolean) ?? "en";
}

export async function languageSet(name) {
  texts = (await import(`../text/${name}.js`)).default;
  try { localStorage.setItem("imgward.language", name); } catch { /* storage is off */ }
  document.documentElement.lang = name;
  language.value = name;
}

// "{name}" is replaced by a value, "{count:file|files}" by the first word when count is 1.
export function t(key, values = {}) {
  language.value;
  const text = texts[key];
  if (text === undefined) return key;
  return text.replace(/\{(\w+)(?::([^|}]*)\|([^}]*))?\}/g, (_, name, one, other) =>
    one === undefined ? format(values[name]) : values[name] === 1 ? one : other);
}

// Returns the text of a key that may not exist, for example of a code of a later version.
export const has = (key) => key in texts;
export const known = (key, otherwise, values) => (has(key) ? t(key, values) : otherwise);

const format = (value) => (typeof value === "number" ? number(value) : String(value ?? ""));
const UNITS = [["day", 86400], ["hour", 3600], ["minute", 60], ["second", 1]];
export const number = (value) => new Intl.NumberFormat(language.value).format(value);

export function bytes(value) {
  const units = ["byte", "kilobyte", "megabyte", "gigabyte", "terabyte"];
  const step = value < 1000 ? 0 : Math.min(4, Math.floor(Math.log10(value) / 3));
  const style = {
    style: "unit", unit: units[step], unitDisplay: step === 0 ? "long" : "short", maximumSignificantDigits: 3,
  };
  return new Intl.NumberFormat(language.value, style).format(value / 1000 ** step);
}

// "7 days", "24 hours": the largest unit of which there are at least two.
export function duration(seconds) {
  const [unit, size] = UNITS.find(([, size]) => seconds >= 2 * size) ?? UNITS.at(-1);
  const style = { style: "unit", unit, unitDisplay: "long", maximumFractionDigits: 1 };
  return new Intl.NumberFormat(language.value, style).format(seconds / size);
}

// "JPEG, PNG or WebP", as the sentences of the service.
export const either = (words) => (words.length < 2 ? words.join()
  : t("either", { list: words.slice(0, -1).join(", "), last: words.at(-1) }));

// "jpg, jpeg or png" of the service.
const listed = (words) => either(words.split(/, | or /));
const sized = (value, { limit = "" }) => (limit.endsWith("Bytes") ? bytes(value) : number(value));
const thing = (words) => known(`thing.${words.replace(/\W+/g, "_")}`, words);

const dateText = (at, style) => new Intl.DateTimeFormat(language.value, style).format(new Date(at));
export const day = (at) => dateText(at, { dateStyle: "medium", timeZone: "UTC" });
export const moment = (at) => dateText(at, { dateStyle: "medium", timeStyle: "short" });

// "today, 18:52:03": for logs, in which seconds count.
export function stamp(at, now = new Date()) {
  const midnight = (date) => new Date(date).setHours(0, 0, 0, 0);
  const days = Math.round((midnight(at) - midnight(now)) / 86400000);
  const time = dateText(at, { timeStyle: "medium" });
  const day = days < -6 ? dateText(at, { dateStyle: "medium" })
    : new Intl.RelativeTimeFormat(language.value, { numeric: "auto" }).format(days, "day");
  return t("stamp", { day, time });
}
export const instant = (at) => dateText(at, { dateStyle: "long", timeStyle: "long" });

// How values of the service's messages are written, by their names.
const VALUES = {
  amount: sized, used: sized, most: sized, bytes, mostBytes: bytes, usualBytes: bytes, inputBytes: bytes, at: moment,
  seconds: duration, formats: listed, limit: (word) => known(`limit.${word}`, word), status: String,
  strength: (word) => known(`strength.${word}`, word), things: (list) => list.split("; ").map(thing).join(", "),
};

// Returns the sentence of a message of the service, by its reason and values; "" if it has no known reason.
export function say({ reason, params = {} }) {
  const values = Object.entries(params).map(([name, value]) => [name, VALUES[name]?.(value, params) ?? value]);
  return known(`message.${reason}`, "", Object.fromEntries(values));
}

// The sentence about a field, and those about a picture.
export const sayField = (detail) => say(detail) || t("message.wrong_value");
export const sayParts = ({ parts = [] }) => parts.map(say).filter(Boolean).join(" ");

// "3 minutes ago", "in 7 days". A time in the future is rounded up, so that a week begins with 7 days.
export function relative(at, now = Date.now()) {
  const seconds = (new Date(at).getTime() - now) / 1000;
  const [unit, size] = UNITS.find(([, size]) => Math.abs(seconds) >= size) ?? UNITS.at(-1);
  return new Intl.RelativeTimeFormat(language.value, { numeric: "auto" })
    .format(seconds > 0 ? Math.ceil(seconds / size) : Math.trunc(seconds / size), unit);
}
