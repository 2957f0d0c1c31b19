// The view library: Preact, its hooks, signals, and htm bound to Preact.
import { h } from "../vendor/preact.js";
import htm from "../vendor/htm.js";

export { render, Fragment } from "../vendor/preact.js";
export { useState, useEffect, useLayoutEffect, useRef, useMemo, useCallback, useId } from "../vendor/hooks.js";
export { signal, computed, effect, batch } from "../vendor/signals.js";
export const html = htm.bind(h);
