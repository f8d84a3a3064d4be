// browser.js: starts a server and a page, and measures times in it.
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
    await page.goto(app.link);
    return await measure(page, app);
  } finally {
    await page.close();
    await app.remove();
  }
}

export const closeBrowser = async () => (await browser)?.close();

/**
 * The longest task of the main thread meanwhile, in ms of its own processor time: what others do on the machine is not
 * the page's doing.
 * @param {Page} page
 * @param {() => Promise<unknown>} act
 */
export async function longestTaskMs(page, act) {
  const owner = /** @type {import("@playwright/test").Browser} */ (page.context().browser());
  await owner.startTracing(page, { categories: ["toplevel"] });
  await act();
  /**
   * @type {{
   *   traceEvents: { name: string, ph: string, pid: number, tid: number, tdur?: number, args?: { name?: string } }[],
   * }}
   */
  const { traceEvents } = JSON.parse(String(await owner.stopTracing()));
  const mains = new Set(traceEvents.filter(({ name, args }) =>
    name === "thread_name" && args?.name === "CrRendererMain").map(({ pid, tid }) => `${pid} ${tid}`));
  return Math.max(0, ...traceEvents.filter(({ name, pid, tid }) =>
    name.endsWith("RunTask") && mains.has(`${pid} ${tid}`)).map(({ tdur = 0 }) => tdur / 1000));
}

/**
 * What Chromium counts: seconds of the main thread's own processor time, and sizes.
 * @param {Page} page
 * @param {"threadTicks" | "timeTicks"} [clock]
 */
export async function meter(page, clock = "threadTicks") {
  const cdp = await page.context().newCDPSession(page);
  await cdp.send("Performance.enable", { timeDomain: clock });
  const read = async (/** @type {string} */ name) => {
    const { metrics } = await cdp.send("Performance.getMetrics");
    return metrics.find((metric) => metric.name === name)?.value ?? 0;
  };
  return {
    busyMs: async () => 1000 * (await read("TaskDuration")),
    scriptMs: async () => 1000 * (await read("ScriptDuration")),
    read,
    collect: () => cdp.send("HeapProfiler.collectGarbage"),
  };
}
