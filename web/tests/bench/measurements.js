// measurements.js: what is measured in the page. A part returns rows; the floor of a row is the same action on an empty
// page, in the same run. To add a row, write a function that measures it and list it in `parts`.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { addProject, current, finished, newSession, send } from "../browser/app.js";
import { writeHistory } from "../browser/saved-history.js";
import { quantile } from "./rows.js";
import { longestTaskMs, meter, visit } from "./browser.js";

/** @typedef {import("./rows.js").Row} Row */
/** @typedef {{ quick: boolean }} Effort */
/** @typedef {import("../browser/app.js").App} App */

const FRAME_MS = 1000 / 60;

/** @type {Record<string, (effort: Effort) => Promise<Row[]>>} */
export const parts = { tabs, streaming, history, sidebar, memory, reconnect };

/** From a click to the painted frame: two divs that change places on an empty page, and tabs. @param {Effort} effort */
async function tabs({ quick }) {
  const rounds = quick ? 10 : 60;
  const [empty, switchTimes, script] = await visit(async (page, app) => {
    await addProject(page, app.directory("ferry"));
    for (let at = 0; at < 20; at += 1) await newSession(page, "ferry");
    const cdp = await meter(page, "timeTicks");
    const before = await cdp.scriptMs();
    const times = await page.evaluate(clicks, { selector: ".tab [role=tab]", count: rounds });
    const scriptMs = (await cdp.scriptMs() - before) / rounds;
    await page.goto("about:blank");
    await page.setContent(
      "<style>div { position: absolute; inset: 40px; background: grey; visibility: hidden } "
        + ".on { visibility: visible }</style>"
        + "<button>a</button><button>b</button><div class=on>a</div><div>b</div>",
    );
    await page.evaluate(() =>
      addEventListener("click", () => document.querySelectorAll("div").forEach((div) => div.classList.toggle("on"))));
    return /** @type {const} */ ([await page.evaluate(clicks, { selector: "button", count: rounds }), times, scriptMs]);
  });
  return [
    {
      name: "tab switch to the painted frame, 20 tabs, median",
      value: quantile(switchTimes, 0.5),
      unit: "ms",
      most: 2 * FRAME_MS,
      floor: quantile(empty, 0.5),
    },
    {
      name: `tab switch to the painted frame, 20 tabs, worst of ${rounds}`,
      value: Math.max(...switchTimes),
      unit: "ms",
      most: 100,
      floor: Math.max(...empty),
    },
    { name: "script of one tab switch", value: script, unit: "ms", most: FRAME_MS },
  ];
}

/** In the page. @param {{ selector: string, count: number }} what */
async function clicks({ selector, count }) {
  const found = [];
  const buttons = /** @type {HTMLElement[]} */ ([...document.querySelectorAll(selector)]);
  for (let round = 0; round < count; round += 1) {
    await new Promise((resolve) => requestAnimationFrame(resolve));
    const start = performance.now();
    buttons[round % buttons.length]?.click();
    await new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)));
    found.push(performance.now() - start);
  }
  return found;
}

/** 48 KB in 2,000 chunks at 500 a second. @param {Effort} effort */
async function streaming({ quick }) {
  /** @type {Row[]} */
  const rows = [];
  for (const scene of quick ? ["prose"] : ["prose", "code", "mixed"]) {
    await visit(async (page, app) => {
      await addProject(page, app.directory("ferry"));
      const frame = await newSession(page, "ferry");
      const cdp = await meter(page);
      await send(frame, "warm up, markdown please");
      await finished(frame);
      const turn = async (/** @type {string} */ words) => {
        const before = await cdp.busyMs();
        await send(frame, words);
        await frame.locator("#session").evaluate(untilDone);
        return await cdp.busyMs() - before;
      };
      // The cost of four seconds of waiting: the spinner and the elapsed time.
      const waiting = await turn("wait four seconds");
      rows.push({
        name: `48 KB of ${scene}, 2,000 chunks at 500/s: main thread`,
        value: await turn(`flood-${scene}`),
        unit: "ms",
        most: 1000,
        floor: waiting,
      });
      const watch = page.frames().find((other) => other.url().endsWith("/portlet"))?.evaluate(watchBehind);
      await turn(`flood-${scene} again`);
      rows.push({
        name: `48 KB of ${scene}: furthest behind what has arrived`,
        value: (await watch) ?? Number.NaN,
        unit: "ms",
        most: 100,
      });
    });
  }
  return rows;
}

/**
 * In the portlet: while a turn runs. One question, since each one that is asked from outside takes the page's time.
 * @param {Element} root
 */
async function untilDone(root) {
  const isBusy = () => root.querySelector(".turn:last-child")?.getAttribute("aria-busy") === "true";
  for (const busy of [true, false]) while (isBusy() !== busy) await new Promise((resolve) => setTimeout(resolve, 50));
}

/**
 * In the portlet: for each frame, how long the oldest word that arrived and is not shown has waited; the most of it.
 */
async function watchBehind() {
  /** @type {{ word: number, at: number }[]} Words that arrived, by their number. */
  const arrived = [];
  let over = false;
  addEventListener("message", ({ data }) => {
    if (data.kind !== "server") return;
    const json = JSON.stringify(data.messages);
    const words = [...json.matchAll(/(?:number|x) ?(\d+)/g)].map((match) => Number(match[1]));
    if (words.length) arrived.push({ word: Math.max(...words), at: performance.now() });
    over ||= data.messages.some((/** @type {any} */ message) => message.payload?.type === "turn_complete");
  }, { capture: true });
  let worst = 0;
  while (!over) {
    await new Promise((resolve) => requestAnimationFrame(resolve));
    // After the frame's own writes.
    await new Promise((resolve) => setTimeout(resolve));
    const walker = document.createTreeWalker(
      /** @type {Node} */ ([...document.querySelectorAll(".message")].at(-1) ?? document.body),
      NodeFilter.SHOW_TEXT,
    );
    let tail = "";
    for (let node = walker.lastChild(); node && tail.length < 200; node = walker.previousNode()) {
      tail = (node.nodeValue ?? "").slice(-400) + tail;
    }
    const shown = Math.max(0, ...[...tail.matchAll(/(?:number|x) ?(\d+)/g)].map((match) => Number(match[1])));
    while (arrived[0] && arrived[0].word <= shown) arrived.shift();
    if (shown > 0 && arrived[0]) worst = Math.max(worst, performance.now() - arrived[0].at);
  }
  return worst;
}

/** From a click on a session to its newest text; the floor is an empty session. @param {Effort} effort */
async function history({ quick }) {
  /** @type {Row[]} */
  const rows = [];
  for (const items of quick ? [2000] : [2000, 20_000]) {
    const most = items === 2000 ? 300 : 1500;
    await visit(async (page) => {
      // The agent is running, as in normal use.
      await newSession(page, "ferry");
      await page.keyboard.press("Alt+KeyW");
      // A user takes longer to open the next session than the page needs to prepare it; a script does not.
      const open = async (/** @type {string} */ title, /** @type {string} */ words, atRest = true) => {
        await page.waitForFunction(() => !document.querySelector(".tab"));
        if (atRest) await page.waitForFunction(isAtRest);
        const took = await page.evaluate(clickUntil, { title, words });
        await page.keyboard.press("Alt+KeyW");
        return took;
      };
      const last = `Answer ${items / 4} of many`;
      const cold = await open("A long history", last);
      const floors = [];
      const warm = [];
      const hurried = [];
      for (let round = 0; round < (quick ? 2 : 5); round += 1) {
        floors.push(await open("New Session", "Describe the task"));
        warm.push(await open("A long history", last));
        hurried.push(await open("A long history", last, false));
      }
      const count = items.toLocaleString("en");
      rows.push({
        name: `history of ${count} items, click until visible`,
        value: quantile(warm, 0.5),
        unit: "ms",
        most,
        floor: quantile(floors, 0.5),
      });
      rows.push({
        name: `history of ${count} items, the same right after another`,
        value: quantile(hurried, 0.5),
        unit: "ms",
        most,
      });
      rows.push({ name: `history of ${count} items, first time, with the agent's replay`, value: cold, unit: "ms" });
      await page.locator(".session-row", { hasText: "A long history" }).click();
      await current(page).getByText(last).waitFor();
      const longest = await longestTaskMs(page, () => current(page).locator("#log").evaluate(scrollUp));
      rows.push({
        name: `history of ${count} items: longest task while scrolling`,
        value: longest,
        unit: "ms",
        most: 50,
      });
    }, (app) => writeHistory(app, items));
  }
  return rows;
}

/** In the shell: the page for the next session is preloaded. */
function isAtRest() {
  const spare =
    /** @type {HTMLIFrameElement | null} */ (document.querySelector("iframe.spare-portlet"))?.contentDocument;
  return Boolean(spare?.querySelector("#session[data-ready]"));
}

/**
 * In the shell: clicks a session's row and waits for the frame that shows the words.
 * @param {{ title: string, words: string }} what
 */
async function clickUntil({ title, words }) {
  const row = /** @type {HTMLElement[]} */ ([...document.querySelectorAll(".session-row")]).find((node) =>
    node.textContent?.includes(title));
  await new Promise((resolve) => requestAnimationFrame(resolve));
  const start = performance.now();
  row?.click();
  const shows = () => {
    const inside =
      /** @type {HTMLIFrameElement | null} */ (document.querySelector("iframe.portlet[data-current]"))?.contentDocument;
    return [
      inside?.querySelector("#turns > :last-child"),
      inside?.querySelector("#empty"),
    ].some((node) => node?.textContent?.includes(words));
  };
  while (!shows()) await new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)));
  return performance.now() - start;
}

/** In the portlet. @param {Element} log */
async function scrollUp(log) {
  for (let at = 0; at < 400; at += 1) {
    log.scrollTop -= 200;
    await new Promise((resolve) => requestAnimationFrame(resolve));
  }
}

/**
 * From the reload until every project's sessions are drawn; the floor is a page without projects.
 * @param {Effort} effort
 */
async function sidebar({ quick }) {
  const rounds = quick ? 2 : 5;
  const load = async (/** @type {import("@playwright/test").Page} */ page, /** @type {number} */ projects) => {
    const times = [];
    for (let round = 0; round < rounds; round += 1) {
      await page.reload({ waitUntil: "commit" });
      times.push(await page.evaluate(untilDrawn, projects));
    }
    const longest = [];
    for (let round = 0; round < rounds; round += 1) {
      longest.push(await longestTaskMs(page, async () => {
        await page.reload({ waitUntil: "commit" });
        await page.evaluate(untilDrawn, projects);
      }));
    }
    return { drawn: quantile(times, 0.5), longest: quantile(longest, 0.5) };
  };
  const empty = await visit((page) => load(page, 0));
  /** @type {Row[]} */
  const rows = [];
  for (const [projects, sessions] of /** @type {const} */ ([[20, 50], [100, 500]])) {
    const { drawn, longest } = await visit((page) => load(page, projects), (app) => fill(app, projects, sessions));
    rows.push({
      name: `sidebar of ${projects} × ${sessions}, over an empty one`,
      value: Math.max(0, drawn - empty.drawn),
      unit: "ms",
      ...(projects === 20 ? { most: 200 } : {}),
      floor: empty.drawn,
    });
    rows.push({
      name: `sidebar of ${projects} × ${sessions}: longest task`,
      value: longest,
      unit: "ms",
      most: 50,
      floor: empty.longest,
    });
  }
  return rows;
}

/** In the shell: ms from the start of the navigation. @param {number} projects */
async function untilDrawn(projects) {
  const drawn = () => (projects === 0
    ? document.querySelector("#no-projects:not([hidden])") !== null
    : document.querySelectorAll(".project").length === projects
      && !document.querySelector(".project:not(:has(.session-row))"));
  while (!drawn()) await new Promise((resolve) => requestAnimationFrame(resolve));
  return performance.now();
}

/** An hour of work, replayed fast: 600 commands and 600 answers. @returns {Promise<Row[]>} */
async function memory() {
  return visit(async (page, app) => {
    await addProject(page, app.directory("ferry"));
    const cdp = await meter(page);
    const heap = async () => {
      await cdp.collect();
      return (await cdp.read("JSHeapUsedSize")) / 1024 / 1024;
    };
    const frame = await newSession(page, "ferry");
    const before = { heap: await heap(), nodes: await cdp.read("Nodes") };
    await send(frame, "an hour of work");
    await frame.getByText("The hour is over.").waitFor();
    await finished(frame);
    return [
      {
        name: "page's memory after an hour of work (600 calls, 600 answers)",
        value: await heap(),
        unit: "MiB",
        floor: before.heap,
      },
      { name: "page's nodes after it", value: await cdp.read("Nodes"), unit: "nodes", floor: before.nodes },
    ];
  });
}

/** From the restart of the server to an up-to-date page. @param {Effort} effort @returns {Promise<Row[]>} */
async function reconnect({ quick }) {
  return visit(async (page, app) => {
    await addProject(page, app.directory("ferry"));
    const frame = await newSession(page, "ferry");
    await send(frame, "hello");
    await finished(frame);
    const times = [];
    for (let round = 0; round < (quick ? 1 : 5); round += 1) {
      await app.stop();
      await page.locator("#offline").waitFor();
      const back = page.evaluate(untilOnline);
      await app.start();
      const started = Date.now();
      times.push(Math.max(0, (await back) - started));
    }
    return [{
      name: "reconnect and resync after a restart of the server, worst",
      value: Math.max(...times),
      unit: "ms",
      most: 2000,
    }];
  });
}

/** In the shell: the bar is gone, the lists have arrived, and the session accepts input again. */
async function untilOnline() {
  const ready = () =>
    /** @type {HTMLElement} */ (document.querySelector("#offline")).hidden
      && /** @type {HTMLIFrameElement} */ (document.querySelector("iframe.portlet")).contentDocument
        ?.querySelector("textarea:enabled");
  while (!ready()) await new Promise((resolve) => setTimeout(resolve, 5));
  return Date.now();
}

/**
 * Writes the lists as a long use would have left them.
 * @param {App} app
 * @param {number} projects
 * @param {number} sessions
 */
function fill(app, projects, sessions) {
  const at = new Date(Date.now() - 86_400_000).toISOString();
  const list = Array.from({ length: projects }, (_, index) => ({
    id: `00000000-0000-5000-8000-${String(index).padStart(12, "0")}`,
    path: app.directory(`project-${index}`),
    name: `project-${index}`,
    addedAt: at,
  }));
  const records = list.flatMap((project, index) =>
    Array.from({ length: sessions }, (_, number) => ({
      id: `Scripted:p${index}-${number}`,
      projectId: project.id,
      cliType: "Scripted",
      archived: false,
      title: `Session ${number} of ${project.name}`,
      lastActiveAt: at,
      createdAt: at,
    })));
  writeFileSync(join(app.data, "projects.json"), JSON.stringify({ version: 1, projects: list }), { mode: 0o600 });
  writeFileSync(join(app.data, "sessions.json"), JSON.stringify({ version: 1, sessions: records }), { mode: 0o600 });
}
