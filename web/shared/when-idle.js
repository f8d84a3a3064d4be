// when-idle.js: runs work when the page is idle. Not every browser has requestIdleCallback.

const SOON_MS = 50;
/** The latest time, however busy the page. */
const LATEST_MS = 1000;

/** @param {() => void} run */
export function whenIdle(run) {
  if ("requestIdleCallback" in globalThis) requestIdleCallback(run, { timeout: LATEST_MS });
  else setTimeout(run, SOON_MS);
}
