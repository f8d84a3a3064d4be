// when-idle.js: what can wait until the page has nothing better to do. Not every browser says when that is.

const SOON_MS = 50;
/** However busy the page, it is done by then. */
const LATEST_MS = 1000;

/** @param {() => void} run */
export function whenIdle(run) {
  if ("requestIdleCallback" in globalThis) requestIdleCallback(run, { timeout: LATEST_MS });
  else setTimeout(run, SOON_MS);
}
