// The real binary with its own home and data, and a page that must not log errors.
import { expect, test as base } from "@playwright/test";
import { spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const here = fileURLToPath(new URL(".", import.meta.url));
export const BINARY = process.env.LIMINAL_BIN
  ?? fileURLToPath(new URL("../../../target/debug/liminal-builder", import.meta.url));
const START_MS = 30_000;
/** A test may delay an agent while it starts; on a busy machine that takes longer than a user would wait. */
const AGENT_START_MS = "60000";

/** @typedef {import("@playwright/test").Page} Page */
/** @typedef {import("@playwright/test").BrowserContext} BrowserContext */

/** One server with a home of its own; it can be stopped and started again on the same port. */
export class App {
  /**
   * @param {{
   *   script?: string,
   *   env?: Record<string, string>,
   *   names?: string[],
   *   args?: string[],
   *   port?: number,
   * }} [options]
   */
  constructor({ script = "", env = {}, names = ["Scripted"], args = ["--no-open"], port = 0 } = {}) {
    this.home = mkdtempSync(join(tmpdir(), "liminal-"));
    this.data = join(this.home, ".liminal-builder");
    mkdirSync(this.data, { recursive: true, mode: 0o700 });
    this.env = env;
    this.args = args;
    this.port = port;
    this.link = "";
    /** @type {import("node:child_process").ChildProcess | null} */
    this.process = null;
    const agent = { command: process.execPath, args: [join(here, "scripted-agent.js")], env: { SCRIPT: script } };
    writeFileSync(join(
      this.data,
      "agents.json",
    ), JSON.stringify({ agent_servers: Object.fromEntries(names.map((name) => [name, agent])) }), { mode: 0o600 });
  }

  async start() {
    const child = spawn(BINARY, ["--port", String(this.port), ...this.args], {
      env: {
        PATH: process.env.PATH ?? "",
        HOME: this.home,
        LIMINAL_DATA_DIR: this.data,
        ACP_START_TIMEOUT_MS: AGENT_START_MS,
        ...this.env,
      },
      stdio: ["ignore", "pipe", "pipe"],
    });
    this.process = child;
    this.log = "";
    child.stderr.on("data", (data) => (this.log += data));
    const address = await new Promise((resolve, reject) => {
      let printed = "";
      const timer = setTimeout(() => reject(new Error(`no address printed: ${printed}\n${this.log}`)), START_MS);
      child.stdout.on("data", (data) => {
        printed += data;
        const address = /Listening on (http:\/\/\S+)/.exec(printed);
        if (!address) return;
        clearTimeout(timer);
        resolve(address[1]);
      });
      child.on("exit", (code) => {
        clearTimeout(timer);
        reject(new Error(`exited with ${code}: ${printed}\n${this.log}`));
      });
      child.on("error", reject);
    });
    // The secret is printed at a terminal only.
    this.link = `${address}?token=${readFileSync(join(this.data, "token"), "utf8").trim()}`;
    this.port = Number(new URL(this.link).port);
    return this;
  }

  /** @param {NodeJS.Signals} [signal] */
  async stop(signal = "SIGTERM") {
    const child = this.process;
    this.process = null;
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    const gone = new Promise((resolve) => child.once("exit", resolve));
    child.kill(signal);
    await gone;
  }

  async restart() {
    await this.stop();
    await this.start();
  }

  async remove() {
    await this.stop();
    rmSync(this.home, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 });
  }

  /** A directory under home. @param {string} name */
  directory(name) {
    const path = join(this.home, "code", name);
    mkdirSync(path, { recursive: true });
    return path;
  }

  /** Lets a waiting agent of a project continue. @param {string} name @param {string} [file] What it waits for. */
  release(name, file = "release") {
    writeFileSync(join(this.home, "code", name, file), "");
  }

  /** Lets a scripted agent that crashed start again. */
  mend() {
    rmSync(join(this.home, ".scripted-agent", "down"), { force: true });
  }
}

/** Errors a page may log while its server is down on purpose. */
const AWAY = [/WebSocket connection to/, /ERR_CONNECTION_REFUSED/, /Failed to load resource/];

/**
 * @typedef {{
 *   app: App,
 *   startApp: (options?: ConstructorParameters<typeof App>[0]) => Promise<App>,
 *   quiet: { serverMayGo: boolean },
 *   shell: Page,
 * }} Own
 */
/** @typedef {import("@playwright/test").PlaywrightTestArgs} Args */
/** @typedef {import("@playwright/test").PlaywrightTestOptions} Options */
/** @type {import("@playwright/test").Fixtures<Own, {}, Args & Options>} */
const fixtures = {
  quiet: [async ({ context }, use) => {
    const state = { serverMayGo: false };
    /** @type {string[]} */
    const complaints = [];
    const note = (/** @type {string} */ text) => {
      if (!(state.serverMayGo && AWAY.some((pattern) => pattern.test(text)))) complaints.push(text);
    };
    context.on("console", (message) =>
      ["error", "warning"].includes(message.type()) && note(`console ${message.type()}: ${message.text()}`));
    context.on("weberror", (error) => note(`page error: ${error.error().stack ?? error.error().message}`));
    await use(state);
    expect(complaints, "the page complained").toEqual([]);
  }, { auto: true }],
  startApp: async ({ context, quiet }, use) => {
    void quiet;
    /** @type {App[]} */
    const apps = [];
    await use(async (options) => {
      const app = new App(options);
      apps.push(app);
      return app.start();
    });
    // The pages close first: they would log errors about a lost server.
    await Promise.all(context.pages().map((page) => page.close()));
    await Promise.all(apps.map((app) => app.remove()));
  },
  app: async ({ startApp }, use) => use(await startApp()),
  shell: async ({ app, page, quiet }, use) => {
    void quiet;
    await page.goto(app.link);
    await use(page);
  },
};
export const test = base.extend(fixtures);
export { expect };

/** Adds a directory through the dialog. @param {Page} page @param {string} path */
export async function addProject(page, path) {
  await page.locator(".projects .section-title [data-command=add-project]").click();
  const dialog = page.getByRole("dialog", { name: "Add project" });
  await dialog.getByRole("combobox").fill(path);
  await dialog.getByRole("button", { name: "Add project" }).click();
  await expect(dialog).toBeHidden();
  return projectRow(page, path.split("/").pop() ?? "");
}

/** @param {Page} page @param {string} name */
export const projectRow = (page, name) =>
  page.locator(".project-row").filter({ has: page.locator(".project-name", { hasText: new RegExp(`^${name}$`) }) });
/** @param {Page} page @param {string | RegExp} title */
export const sessionRow = (page, title) => page.locator(".session-row").filter({ hasText: title });
/** @param {Page} page @param {string | RegExp} title */
export const tab = (page, title) => page.locator(".tab").filter({ hasText: title });

/** Starts a session with an agent. @param {Page} page @param {string} project @param {string} [agent] */
export async function newSession(page, project, agent = "Scripted") {
  const tabs = page.locator(".tab:not([data-provisional])");
  const before = await tabs.count();
  await projectRow(page, project).getByRole("button", { name: "New Session" }).click();
  await page.getByRole("dialog", { name: "New session" }).locator(".picker-option", { hasText: agent }).click();
  // The previously active tab stays active for a moment: the new one is last.
  await expect(tabs.nth(before)).toHaveAttribute("data-current", "");
  const frame = current(page);
  await expect(frame.locator("textarea")).toBeEnabled();
  return frame;
}

/**
 * Intercepts the WebSocket of a page that is yet to load. Playwright reaches only sockets of the page itself, so the
 * page gets no workers.
 * @param {Page} page @param {(socket: import("@playwright/test").WebSocketRoute) => void} handler
 */
export async function routeSocket(page, handler) {
  await page.addInitScript(() => Reflect.deleteProperty(window, "Worker"));
  await page.routeWebSocket(/\/ws/, handler);
}

/** The session in view. @param {Page} page */
export const current = (page) => page.frameLocator("iframe.portlet[data-current]");

/** The page itself and its sessions, without the preloaded frame. @param {Page} page */
export async function framesOf(page) {
  const spare = await (await page.$("iframe.spare-portlet"))?.contentFrame();
  return page.frames().filter((frame) => frame !== spare);
}

/** @param {import("@playwright/test").FrameLocator} frame @param {string} text */
export async function send(frame, text) {
  const before = await frame.locator(".user-turn").count();
  await frame.locator("textarea").fill(text);
  await frame.getByRole("button", { name: "Send" }).click();
  // The page has accepted it: from now on it shows this turn's state, not the previous one's.
  await expect(frame.locator(".user-turn")).toHaveCount(before + 1);
}

/** The turn is over. @param {import("@playwright/test").FrameLocator} frame */
export const finished = (frame) =>
  expect(frame.locator("#status-line")).toContainText(/Finished|Stopped|failed/, { timeout: 30_000 });
