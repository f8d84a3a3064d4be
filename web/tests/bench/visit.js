// visit.js: a server, a page, and the clocks that are read in it.
import { chromium } from "@playwright/test";
import { App } from "../browser/app.js";
import config from "../playwright.config.js";

/** @typedef {import("@playwright/test").Page} Page */

/** @type {Promise<import("@playwright/test").Browser> | null} */
let browser = null;

/**
 * @template T
 * @param {(page: Page, app: App) => Promise<T>} measure
 * @param {(app: App) => void} [prepare]
 * @returns {Promise<T>}
 */
export async function visit(measure, prepare = () => {}) {
  browser ??= chromium.launch({ ...config.use?.launchOptions });
  const app = new App();
  prepare(app);
  await app.start();
  const page = await (await browser).newPage({ viewport: { width: 1440, height: 900 } });
  page.setDefaultTimeout(120_000);
  try {
    await page.addInitScript(watchLongTasks);
    await page.goto(app.link);
    return await measure(page, app);
  } finally {
    await page.close();
    await app.remove();
  }
}

export const closeBrowser = async () => (await browser)?.close();

/** Every document keeps the lengths of its tasks over 50 ms, in ms. */
function watchLongTasks() {
  const long = (/** @type {any} */ (window).longTasks = /** @type {number[]} */ ([]));
  new PerformanceObserver((list) => list.getEntries().forEach((entry) => long.push(entry.duration))).observe({ type: "longtask", buffered: true });
}

/** What Chromium counts: seconds of the main thread's own processor time, and sizes. @param {Page} page @param {"threadTicks" | "timeTicks"} [clock] */
export async function meter(page, clock = "threadTicks") {
  const cdp = await page.context().newCDPSession(page);
  await cdp.send("Performance.enable", { timeDomain: clock });
  const read = async (/** @type {string} */ name) => {
    const { metrics } = await cdp.send("Performance.getMetrics");
    return metrics.find((metric) => metric.name === name)?.value ?? 0;
  };
  return { busyMs: async () => 1000 * (await read("TaskDuration")), scriptMs: async () => 1000 * (await read("ScriptDuration")), read, collect: () => cdp.send("HeapProfiler.collectGarbage") };
}
