// Measures the page in Chromium against the real binary and prints a table. No figure here fails a build.
import { chromium } from "@playwright/test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { App, addProject, current, finished, newSession, send, sessionRow } from "./browser/app.js";
import { writePast } from "./browser/past.js";
import config from "./playwright.config.js";

const browser = await chromium.launch({ ...config.use?.launchOptions });
/** @type {[string, string][]} */
const rows = [];

/** Which parts to measure, by number from 1; all unless some are named. */
const parts = process.argv.slice(2).map(Number);
let part = 0;

/** @param {(page: import("@playwright/test").Page, app: App) => Promise<void>} visit @param {(app: App) => void} [prepare] */
async function visit(visit, prepare = () => {}) {
  part += 1;
  if (parts.length && !parts.includes(part)) return;
  const app = new App();
  prepare(app);
  await app.start();
  const page = await browser.newPage({ viewport: { width: 1440, height: 900 } });
  page.setDefaultTimeout(60_000);
  try {
    await page.goto(app.link);
    await visit(page, app);
  } finally {
    await page.close();
    await app.remove();
  }
}

/** Processor time of the main thread, so that a busy machine does not blur it. @param {import("@playwright/test").CDPSession} cdp */
async function busy(cdp) {
  const { metrics } = await cdp.send("Performance.getMetrics");
  const of = (/** @type {string} */ name) => metrics.find((metric) => metric.name === name)?.value ?? 0;
  return 1000 * of("TaskDuration");
}

await visit(async (page, app) => {
  await addProject(page, app.directory("ferry"));
  for (let at = 0; at < 20; at += 1) await newSession(page, "ferry");
  const ids = await page.locator(".tab").evaluateAll((tabs) => tabs.map((tab) => /** @type {HTMLElement} */ (tab).dataset.id ?? ""));
  const times = await page.evaluate(async (all) => {
    const found = [];
    for (let round = 0; round < 40; round += 1) {
      const button = document.querySelector(`.tab[data-id="${CSS.escape(all[round % all.length] ?? "")}"] [role=tab]`);
      await new Promise((resolve) => requestAnimationFrame(resolve));
      const start = performance.now();
      /** @type {HTMLElement} */ (button).click();
      await new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)));
      found.push(performance.now() - start);
    }
    return found.sort((a, b) => a - b);
  }, ids);
  rows.push(["tab switch to the next painted frame, 20 tabs: median / worst", `${times[20]?.toFixed(1)} / ${times.at(-1)?.toFixed(1)} ms`]);
});

await visit(async (page, app) => {
  await addProject(page, app.directory("ferry"));
  const frame = await newSession(page, "ferry");
  const cdp = await page.context().newCDPSession(page);
  await cdp.send("Performance.enable", { timeDomain: "threadTicks" });
  await send(frame, "warm up, markdown please");
  await finished(frame);
  for (const scene of ["flood-prose", "flood-code"]) {
    const before = await busy(cdp);
    const start = Date.now();
    await send(frame, scene);
    await frame.locator("#status-line", { hasText: "Working" }).waitFor();
    await finished(frame);
    rows.push([`48 KB in 2,000 chunks at 500/s, ${scene.slice(6)}: main thread / until shown`, `${(await busy(cdp) - before).toFixed(0)} / ${Date.now() - start} ms`]);
  }
});

for (const [projects, sessions] of /** @type {const} */ ([[20, 50], [100, 500]])) {
  await visit(async (page) => {
    await page.addInitScript(() => {
      /** @type {any} */ (window).long = [];
      new PerformanceObserver((list) => list.getEntries().forEach((entry) => /** @type {any} */ (window).long.push(entry.duration))).observe({ type: "longtask", buffered: true });
    });
    const start = Date.now();
    await page.reload();
    await page.waitForFunction((count) => document.querySelectorAll(".project").length === count && !document.querySelector(".project:not(:has(.session-row))"), projects);
    const long = await page.evaluate(() => /** @type {number[]} */ (/** @type {any} */ (window).long));
    rows.push([`sidebar of ${projects} × ${sessions}: reload until drawn / longest task`, `${Date.now() - start} / ${Math.max(0, ...long).toFixed(0)} ms`]);
  }, (app) => fill(app, projects, sessions));
}

for (const items of [2000, 20_000]) {
  await visit(async (page) => {
    // The agent is up, as it is when one works.
    await newSession(page, "ferry");
    const open = async () => {
      const start = Date.now();
      await sessionRow(page, "A long history").click();
      await current(page).getByText(`Answer ${items / 4} of many`).waitFor();
      return Date.now() - start;
    };
    const cold = await open();
    await page.keyboard.press("Alt+KeyW");
    const warm = await open();
    rows.push([`history of ${items}: click until shown, from the agent / again`, `${cold} / ${warm} ms`]);
    const scrolled = await current(page).locator("#log").evaluate(async (log) => {
      /** @type {number[]} */
      const long = [];
      new PerformanceObserver((list) => list.getEntries().forEach((entry) => long.push(entry.duration))).observe({ type: "longtask" });
      const frame = () => new Promise((resolve) => requestAnimationFrame(resolve));
      for (let at = 0; at < 400; at += 1) {
        log.scrollTop -= 200;
        await frame();
      }
      return { long, turns: document.querySelectorAll(".turn").length };
    });
    rows.push([`scrolling up 80,000 px in it: turns shown / long tasks / longest`, `${scrolled.turns} / ${scrolled.long.length} / ${Math.max(0, ...scrolled.long).toFixed(0)} ms`]);
  }, (app) => writePast(app, items));
}

await visit(async (page, app) => {
  await addProject(page, app.directory("ferry"));
  const cdp = await page.context().newCDPSession(page);
  await cdp.send("Performance.enable");
  const heap = async () => {
    await cdp.send("HeapProfiler.collectGarbage");
    const { metrics } = await cdp.send("Performance.getMetrics");
    const of = (/** @type {string} */ name) => metrics.find((metric) => metric.name === name)?.value ?? 0;
    return { mib: of("JSHeapUsedSize") / 1024 / 1024, nodes: of("Nodes") };
  };
  const frame = await newSession(page, "ferry");
  const before = await heap();
  await send(frame, "an hour of work");
  await frame.getByText("The hour is over.").waitFor();
  await finished(frame);
  const after = await heap();
  rows.push(["an hour of work (600 tool calls, 600 answers): heap and nodes before, after", `${before.mib.toFixed(1)} MiB, ${before.nodes} → ${after.mib.toFixed(1)} MiB, ${after.nodes}`]);
});

/** Writes the lists as a long use would have left them. @param {App} app @param {number} projects @param {number} sessions */
function fill(app, projects, sessions) {
  const at = new Date(Date.now() - 86_400_000).toISOString();
  const list = Array.from({ length: projects }, (_, index) => ({ id: `00000000-0000-5000-8000-${String(index).padStart(12, "0")}`, path: app.directory(`project-${index}`), name: `project-${index}`, addedAt: at }));
  const records = list.flatMap((project, index) => Array.from({ length: sessions }, (_, number) => ({ id: `Scripted:p${index}-${number}`, projectId: project.id, cliType: "Scripted", archived: false, title: `Session ${number} of ${project.name}`, lastActiveAt: at, createdAt: at })));
  writeFileSync(join(app.data, "projects.json"), JSON.stringify({ version: 1, projects: list }), { mode: 0o600 });
  writeFileSync(join(app.data, "sessions.json"), JSON.stringify({ version: 1, sessions: records }), { mode: 0o600 });
}

await browser.close();
const width = Math.max(...rows.map(([what]) => what.length));
for (const [what, figure] of rows) console.log(`${what.padEnd(width)}  ${figure}`);
