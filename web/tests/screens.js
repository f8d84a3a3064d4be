// Takes a picture of every screen, from the real binary, into docs/screenshots/. `npm run screens -- DIRECTORY` takes
// each of them in both themes and at three widths instead, to look at.
import { chromium } from "@playwright/test";
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";
import { App, current, newSession, projectRow, send, sessionRow, tab } from "./browser/app.js";
import config from "./playwright.config.js";

const wanted = process.argv[2];
const folder = wanted ?? fileURLToPath(new URL("../../docs/screenshots", import.meta.url));
mkdirSync(folder, { recursive: true });

const WIDE = { width: 1440, height: 900 };
const SIZES = [WIDE, { width: 820, height: 1100 }, { width: 390, height: 844 }];
const AGENT = fileURLToPath(new URL("./browser/scripted-agent.js", import.meta.url));
const only = process.argv[3];
const browser = await chromium.launch({ ...config.use?.launchOptions });

/** @typedef {import("@playwright/test").Page} Page */
/** @typedef {(name: string, options?: { height?: number }) => Promise<void>} Shot */

/** A machine with Claude Code, Codex and Gemini CLI on it, and without OpenCode. @param {string} script */
function machine(script) {
  const app = new App({ names: [] });
  const bin = join(app.home, "bin");
  mkdirSync(bin);
  writeFileSync(join(bin, "claude"), "#!/bin/sh\necho '2.1.197 (Claude Code)'\n");
  chmodSync(join(bin, "claude"), 0o755);
  app.env = {
    PATH: [bin, process.env.PATH].join(delimiter),
    CODEX_ACP_CMD: `${process.execPath} ${AGENT}`,
    SCRIPT: script,
  };
  const servers = {
    "Gemini CLI": { command: process.execPath, args: [AGENT] },
    OpenCode: { command: "opencode", args: ["acp"], install_hint: "npm install -g opencode-ai" },
  };
  writeFileSync(join(app.data, "agents.json"), JSON.stringify({ agent_servers: servers }), { mode: 0o600 });
  return app;
}

/** Sessions of some weeks of use. @param {App} app */
function writeSavedSessions(app) {
  const ago = (/** @type {number} */ hours) => new Date(Date.now() - hours * 3_600_000).toISOString();
  const projects = ["atlas-api", "atlas-web", "ferry", "field-notes"].map((name, at) => ({
    id: `00000000-0000-5000-8000-00000000000${at}`,
    path: app.directory(name),
    name,
    addedAt: ago(900 - at),
  }));
  const session = (
    /** @type {number} */ project,
    /** @type {string} */ cliType,
    /** @type {string} */ title,
    /** @type {number} */ hours,
    at = 0,
  ) => ({
    id: `${cliType}:past-${project}-${hours}-${at}`,
    projectId: projects[project]?.id,
    cliType,
    archived: false,
    title,
    lastActiveAt: ago(hours),
    createdAt: ago(hours),
  });
  const sessions = [
    session(0, "claude-code", "Explain the retry budget", 50),
    session(1, "codex", "Upgrade the router to v7", 75),
    session(2, "Gemini-CLI", "Windows path handling", 2.2),
    session(2, "codex", "Release checklist", 170),
    ...[1, 2, 3, 4, 5, 6].map((at) => session(3, "claude-code", `Note ${at}`, 400, at)),
  ];
  writeFileSync(join(app.data, "projects.json"), JSON.stringify({ version: 1, projects }), { mode: 0o600 });
  writeFileSync(join(app.data, "sessions.json"), JSON.stringify({ version: 1, sessions }), { mode: 0o600 });
}

/**
 * @param {{ script?: string, theme?: "dark" | "light", used?: boolean, prepare?: (app: App) => void }} view
 * @param {(page: Page, app: App, shot: Shot) => Promise<void>} visit
 */
async function visit({ script = "story", theme = "dark", used = true, prepare = () => {} }, visit) {
  if (wanted && (theme === "light" || only === "09")) return;
  const app = machine(script);
  if (used) writeSavedSessions(app);
  prepare(app);
  await app.start();
  const context = await browser.newContext({ viewport: WIDE, colorScheme: theme, locale: "en-GB" });
  const page = await context.newPage();
  page.setDefaultTimeout(30_000);
  const take = async (/** @type {string} */ name) => {
    await page.mouse.move((page.viewportSize()?.width ?? 0) - 3, (page.viewportSize()?.height ?? 0) - 3);
    await page.evaluate(() => new Promise((resolve) => setTimeout(resolve, 250)));
    await page.screenshot({ path: join(folder, `${name}.png`) });
    console.log(name);
  };
  try {
    await page.goto(app.link);
    if (used) await projectRow(page, "field-notes").click();
    await visit(page, app, async (name, { height } = {}) => {
      if (wanted && only && !name.startsWith(only)) return;
      if (!wanted) {
        await page.setViewportSize({ ...WIDE, height: height ?? WIDE.height });
        await take(name);
        return page.setViewportSize(WIDE);
      }
      for (const colorScheme of /** @type {const} */ (["dark", "light"])) {
        await page.emulateMedia({ colorScheme });
        for (const size of SIZES) {
          await page.setViewportSize({ ...size, height: height ?? size.height });
          await take(`${name}-${size.width}-${colorScheme}`);
        }
      }
      await page.emulateMedia({ colorScheme: theme });
      await page.setViewportSize(WIDE);
    });
  } finally {
    await context.close();
    await app.remove();
  }
}

/** A day's work: some finished sessions, one failed, three working. @param {Page} page @param {App} app */
async function workday(page, app) {
  const begin = async (/** @type {string} */ project, /** @type {string} */ text) => {
    const frame = await newSession(page, project, "Codex");
    await send(frame, text);
    await sessionRow(page, text.slice(0, 20)).waitFor();
    return frame;
  };
  await begin("atlas-web", "Bundle size regression");
  await begin("ferry", "Add --json to every command");
  await begin("atlas-web", "Dark mode for settings");
  for (let open = 3; open > 0; open -= 1) {
    await page.keyboard.press("Alt+KeyW");
    await page.waitForFunction((left) => document.querySelectorAll(".tab").length === left, open - 1);
  }
  const frame = await begin(
    "atlas-api",
    "The relay drops frames when a portlet is slow. Move it to a bounded queue per session with backpressure, "
      + "keep the wire format, and add a test that proves nothing is lost.",
  );
  await frame.locator("#header").getByRole("button", { name: "More" }).click();
  await frame.getByRole("menuitem", { name: "Rename" }).click();
  await page.getByRole("textbox", { name: "Title" }).fill("Move the relay to a bounded queue");
  await page.keyboard.press("Enter");
  await tab(page, "Move the relay").waitFor();
  await begin("atlas-web", "Virtualize the activity feed");
  await begin("atlas-api", "Fix flaky auth refresh test");
  await tab(page, "Move the relay").click();
  for (const project of ["atlas-web", "atlas-api"]) app.release(project, "go");
  await page.locator(".inbox-row").nth(2).waitFor();
  return current(page);
}

/** @param {Page} page */
async function closeTabs(page) {
  for (let open = await page.locator(".tab").count(); open > 0; open -= 1) {
    await page.keyboard.press("Alt+KeyW");
    await page.waitForFunction((left) => document.querySelectorAll(".tab").length === left, open - 1);
  }
}

await visit({ used: false }, async (page, _, shot) => {
  await page.getByText("Agents on this machine").waitFor();
  await page.getByText("2.1.197").waitFor();
  await shot("01-first-run");
});

for (const theme of /** @type {const} */ (["dark", "light"])) {
  await visit({ theme }, async (page, app, shot) => {
    const frame = await workday(page, app);
    await frame.getByText("64%").waitFor();
    await frame.locator("#log").evaluate((log) => log.scrollTo(0, 0));
    await shot(theme === "dark" ? "02-main" : "07-light");
    if (theme === "dark") {
      await page.locator(".new-tab").click();
      await shot("05a-new-session");
      await page.keyboard.press("Escape");
      for (const name of ["atlas-infra", "attic"]) app.directory(name);
      await page.locator(".section-title [data-command=add-project]").click();
      await page.getByRole("combobox", { name: "Directory" }).pressSequentially("code/at");
      await page.getByRole("option").nth(3).waitFor();
      await shot("05b-add-project");
      await page.getByRole("combobox", { name: "Directory" }).fill("~/code/atlas-infar");
      await page.keyboard.press("Enter");
      await page.getByText("Directory does not exist").waitFor();
      await shot("05c-add-project-error");
      await page.keyboard.press("Escape");
      await page.keyboard.press("Control+k");
      await page.getByRole("combobox", { name: "Search or jump to" }).fill("re");
      await shot("06-palette");
      await page.keyboard.press("Escape");
      await page.locator("#footer").getByRole("button", { name: "Settings" }).click();
      await shot("06b-settings");
      await page.keyboard.press("Escape");
    }
    app.release("atlas-api", "tests");
    await frame.getByText("protocol no").waitFor();
    await frame.locator("#log").evaluate((log) => log.scrollTo(0, log.scrollHeight));
    await shot(theme === "dark" ? "02b-main-streaming" : "07b-light-streaming");
    if (theme === "light") return;
    await shot("02c-main-full", { height: 1500 });
    if (!wanted) {
      await page.setViewportSize({ width: 820, height: 1100 });
      await frame.locator("#log").evaluate((log) => log.scrollTo(0, 0));
      await page.screenshot({ path: join(folder, "08-narrow-820.png") });
      await page.setViewportSize({ width: 390, height: 844 });
      await page.screenshot({ path: join(folder, "08b-phone.png") });
      await page.locator(".top-bar [data-command=sidebar]").click();
      await page.screenshot({ path: join(folder, "08c-phone-sidebar.png") });
      await page.keyboard.press("Escape");
      await page.setViewportSize(WIDE);
    }
    await newSession(page, "atlas-api", "Codex");
    await current(page).getByText("Describe the task").waitFor();
    await shot("05d-session-ready");
    await closeTabs(page);
    await page.getByRole("heading", { name: "No session open" }).waitFor();
    await shot("01b-no-session");
  });
}

await visit({}, async (page, app, shot) => {
  const frame = await workday(page, app);
  await frame.getByText("64%").waitFor();
  await newSession(page, "atlas-api", "Codex");
  await send(current(page), "then crash");
  await tab(page, "Move the relay").click();
  await frame.getByText("Reconnecting...").waitFor();
  await frame.locator("#log").evaluate((log) => log.scrollTo(0, 0));
  await shot("04b-reconnecting");
  await frame.getByRole("button", { name: "Reconnect", exact: true }).waitFor({ timeout: 120_000 });
  await shot("04a-disconnected");
});

await visit({ script: "slow-start" }, async (page, _, shot) => {
  await projectRow(page, "atlas-web").getByRole("button", { name: "New Session" }).click();
  await page.locator(".picker-option", { hasText: "Codex" }).click();
  await page.getByText("Starting Codex").waitFor();
  await shot("04c-launching");
});

await visit({ prepare: (app) => (app.env.CODEX_ACP_CMD = "codex-acp-that-is-not-there") }, async (page, _, shot) => {
  await sessionRow(page, "Upgrade the router").click();
  await current(page).locator(".banner").waitFor();
  await shot("04e-load-failed");
});

await visit({ script: "no-handshake" }, async (page, _, shot) => {
  await projectRow(page, "atlas-web").getByRole("button", { name: "New Session" }).click();
  await page.locator(".picker-option", { hasText: "Codex" }).click();
  await page.getByRole("button", { name: "Retry" }).waitFor();
  await shot("04d-error");
});

/** Every state and control, drawn by the product's own modules on a page that only these tests serve. */
async function states(/** @type {"dark" | "light"} */ theme, /** @type {string} */ name) {
  const app = await machine("").start();
  const page = await browser.newPage({ viewport: WIDE, colorScheme: theme });
  const own = (/** @type {string} */ file) => readFileSync(new URL(`./states/${file}`, import.meta.url), "utf8");
  const sheets = ["shell/index.html", "portlet/index.html"].flatMap((file) =>
    readFileSync(new URL(`../${file}`, import.meta.url), "utf8").match(/<link rel="stylesheet"[^>]*>/g) ?? []);
  const html =
    `<!doctype html><html lang="en"><meta charset="utf-8"><title>States</title>
    <script src="/shared/theme-first.js"></script>
    ${[...new Set(sheets)].join("")}<link rel="stylesheet" href="/states.css">
    <body><script type="module" src="/states.js"></script>`;
  for (const [path, contentType, body] of [
    ["states", "text/html", html],
    ["states.js", "text/javascript", own("states.js")],
    ["states.css", "text/css", own("states.css")],
  ]) await page.route(`**/${path}`, (route) => route.fulfill({ contentType, body }));
  try {
    await page.goto(app.link);
    await page.goto(new URL("/states", app.link).href);
    await page.locator("html[data-ready]").waitFor();
    const cdp = await page.context().newCDPSession(page);
    const { root } = await cdp.send("DOM.getDocument");
    await cdp.send("CSS.enable");
    for (const [selector, forced] of [
      ["#hovered", ["hover"]],
      ["#focused", ["focus-visible"]],
      ["#focused-button", ["focus-visible"]],
      [".menu-item", ["hover"]],
      [".three textarea", ["focus"]],
      [".three form", ["focus-within"]],
    ]) {
      const { nodeId } = await cdp.send("DOM.querySelector", { nodeId: root.nodeId, selector: String(selector) });
      await cdp.send("CSS.forcePseudoState", { nodeId, forcedPseudoClasses: /** @type {string[]} */ (forced) });
    }
    await page.screenshot({ path: join(folder, `${name}.png`) });
    console.log(name);
  } finally {
    await page.close();
    await app.remove();
  }
}
if (!wanted || !only || "09".startsWith(only)) {
  await states("dark", "09-states");
  await states("light", "09b-states-light");
}

await browser.close();
