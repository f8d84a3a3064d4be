// The real Claude Code and the real Codex, as a user has them, with a scripted model on loopback instead of a service.
import { execFile, spawn } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import {
  addProject,
  App,
  BINARY,
  current,
  expect,
  finished,
  newSession,
  send,
  sessionRow,
  tab,
  test as base,
} from "./app.js";

const target = fileURLToPath(new URL("../../../target/", import.meta.url));
const agents = join(target, "agents/node_modules");
/** @type {Record<string, string>} */
const PROGRAMS = {
  claude: join(agents, "@anthropic-ai/claude-code-linux-x64/claude"),
  "codex-acp": join(agents, ".bin/codex-acp"),
};
const CODEX_SETTINGS = fileURLToPath(new URL("../../../crates/testkit/src/scripted_model/codex.toml", import.meta.url));
/** Real programs need longer to start than scripted ones. */
const SLOW = { timeout: 60_000 };
/** The text of a streamed answer. */
const WORDS = 600;
/** The time for all restart attempts of an agent. */
const GIVEN_UP = { timeout: 120_000 };

/** @typedef {{ url: string, release: (gate: string) => Promise<unknown> }} Model */

/** @typedef {import("@playwright/test").PlaywrightTestArgs & { quiet: { serverMayGo: boolean } }} Args */
/** @type {import("@playwright/test").Fixtures<{ model: Model, real: App }, {}, Args>} */
const fixtures = {
  model: async ({}, use) => {
    const beside = join(dirname(BINARY), "scripted-model");
    const child = spawn(existsSync(beside)
      ? beside
      : join(target, "debug/scripted-model"), { stdio: ["ignore", "pipe", "inherit"] });
    const url = await new Promise((resolve, reject) => {
      child.stdout.once("data", (data) => resolve(String(data).trim()));
      child.once("error", reject);
    });
    await use({ url, release: (gate) => fetch(`${url}/gates/${gate}/release`, { method: "POST" }) });
    child.kill();
  },
  real: async ({ model, context, quiet }, use) => {
    void quiet;
    const app = new App({ env: {
      ACP_START_TIMEOUT_MS: "60000",
      ANTHROPIC_BASE_URL: model.url,
      ANTHROPIC_API_KEY: "dummy",
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
      DISABLE_AUTOUPDATER: "1",
      DISABLE_TELEMETRY: "1",
      DISABLE_ERROR_REPORTING: "1",
      CLAUDE_CODE_MAX_RETRIES: "1",
      SCRIPTED_KEY: "dummy",
      NO_BROWSER: "1",
    } });
    Object.assign(app.env, { CLAUDE_CMD: install(app, "claude"), CODEX_ACP_CMD: install(app, "codex-acp") });
    mkdirSync(join(app.home, ".codex"));
    writeFileSync(
      join(app.home, ".codex/config.toml"),
      readFileSync(CODEX_SETTINGS, "utf8").replace("{url}", model.url),
    );
    await app.start();
    await use(app);
    await Promise.all(context.pages().map((page) => page.close()));
    await app.remove();
  },
};
const test = base.extend(fixtures);

/**
 * Puts a program where this home has its programs, from where it can be taken away again.
 * @param {App} app
 * @param {string} program
 */
function install(app, program) {
  const place = join(app.home, program);
  symlinkSync(PROGRAMS[program] ?? "", place);
  return place;
}

/** @param {import("@playwright/test").FrameLocator} frame @param {string} text */
const messageWith = (frame, text) => frame.locator(".message").filter({ hasText: text }).last();

/** Ends the agent's programs at once, as a crash would. @param {App} app @param {RegExp} name */
function crash(app, name) {
  let ended = 0;
  for (const pid of readdirSync("/proc").filter((entry) => /^\d+$/.test(entry))) {
    try {
      const [command, environment] = ["cmdline", "environ"].map((file) => readFileSync(`/proc/${pid}/${file}`, "utf8"));
      if (
        !environment?.split("\0").includes(`HOME=${app.home}`)
        || !name.test(command ?? "")
        || /liminal-builder/.test(command ?? "")
      ) continue;
      process.kill(Number(pid), "SIGKILL");
      ended += 1;
    } catch {
      // It exited by itself, or is not readable for us.
    }
  }
  expect(ended, "the agent ran").toBeGreaterThan(0);
}

/** @typedef {Args & { model: Model, real: App }} Own */

/** @param {string} agent @returns {(own: Own) => Promise<void>} */
const talks = (agent) => async ({ real, page, model, quiet }) => {
  test.setTimeout(240_000);
  await page.goto(real.link);
  await addProject(page, real.directory("ferry"));
  const frame = await newSession(page, "ferry", agent);
  await expect(frame.locator(".chip")).toHaveText(`${agent} · Connected`, SLOW);
  await send(
    frame,
    `think:Let me see what there is.\nsay:Good **morning** from the model.\nstream:${WORDS}x20\n`
      + "bash:echo one-two-three\nsay:The tool has run.",
  );
  await expect(frame.locator(".message strong")).toHaveText("morning", SLOW);
  // The model's output of twelve seconds is read as it arrives.
  const read = async () => (await frame.locator(".message").allTextContents()).join(" ").match(/w\d+/g)?.length ?? 0;
  await expect.poll(read, SLOW).toBeGreaterThan(20);
  expect(await read()).toBeLessThan(WORDS);
  await expect(frame.locator("#status-line")).toContainText("Working");
  await expect.poll(read, SLOW).toBe(WORDS);
  const thinking = frame.locator(".thinking").first();
  await expect(thinking).toContainText("Thought");
  await thinking.getByRole("button").click();
  await expect(thinking.locator(".thinking-text")).toContainText("Let me see what there is.");
  await expect(frame.locator(".user-turn .user-text")).toContainText("think:Let me see");
  await expect(frame.locator('.tool[data-kind="execute"]')).toHaveAttribute("data-state", "done", SLOW);
  await expect(messageWith(frame, "The tool has run.")).toBeVisible(SLOW);
  await finished(frame);
  const tool = frame.locator('.tool[data-kind="execute"]');
  await expect(tool).toContainText("echo one-two-three");
  await tool.locator(".tool-head").click();
  await expect(tool.locator(".tool-body")).toContainText("one-two-three");
  quiet.serverMayGo = true;
  await real.restart();
  await expect(page.locator("#offline")).toBeHidden();
  await page.reload();
  await expect(current(page).locator(".user-text")).toContainText("say:Good", SLOW);
  await expect(messageWith(current(page), "Good morning from the model.")).toBeVisible(SLOW);
  await expect(messageWith(current(page), "The tool has run.")).toBeVisible(SLOW);
  await send(current(page), "say:And it goes on.");
  await expect(messageWith(current(page), "And it goes on.")).toBeVisible(SLOW);
};

/** @param {string} agent @returns {(own: Own) => Promise<void>} */
const stops = (agent) => async ({ real, page, model }) => {
  test.setTimeout(240_000);
  await page.goto(real.link);
  await addProject(page, real.directory("ferry"));
  await send(await newSession(page, "ferry", agent), "say:The first part.\nhold:gate\nsay:The second part.");
  await expect(current(page).locator(".message").first()).toContainText("The first part.", SLOW);
  await page.reload();
  await expect(current(page).locator("#status-line")).toContainText("Working", SLOW);
  await expect(current(page).locator(".message").first()).toContainText("The first part.");
  await model.release("gate");
  await expect(messageWith(current(page), "The second part.")).toBeVisible(SLOW);
  await finished(current(page));
  await send(current(page), "say:Not to the end.\nhold:never");
  await expect(messageWith(current(page), "Not to the end.")).toBeVisible(SLOW);
  await current(page).getByRole("button", { name: "Stop" }).click();
  await expect(current(page).locator(".turn-end")).toHaveText("Stopped", SLOW);
  await expect(messageWith(current(page), "Not to the end.")).toBeVisible();
  await send(current(page), "say:Ready for the next.");
  await expect(messageWith(current(page), "Ready for the next.")).toBeVisible(SLOW);
  await finished(current(page));
  await expect(tab(page, "say:The first part.")).toBeVisible();
};

/** @param {string} agent @param {string} program @returns {(own: Own) => Promise<void>} */
const crashes = (agent, program) => async ({ real, page }) => {
  test.setTimeout(300_000);
  await page.goto(real.link);
  await addProject(page, real.directory("ferry"));
  const frame = await newSession(page, "ferry", agent);
  await send(frame, "say:Before the crash.\nhold:never");
  await expect(messageWith(frame, "Before the crash.")).toBeVisible(SLOW);
  // It cannot be started again until it is put back.
  rmSync(join(real.home, program));
  crash(real, new RegExp(program.split("-")[0] ?? ""));
  await expect(frame.locator(".turn-end")).toBeVisible(SLOW);
  await expect(messageWith(frame, "Before the crash.")).toBeVisible();
  await expect(frame.locator(".chip")).toHaveText(`${agent} · Disconnected`, GIVEN_UP);
  await expect(frame.locator("textarea")).toBeDisabled();
  const reconnect = frame.getByRole("button", { name: "Reconnect", exact: true });
  await expect(reconnect).toBeVisible();
  install(real, program);
  await recordChip(frame);
  await reconnect.click();
  await expect(frame.locator(".chip")).toHaveText(`${agent} · Connected`, SLOW);
  expect(await frame.locator("body").evaluate(() => /** @type {any} */ (window).chips)).toContain(
    `${agent} · Reconnecting`,
  );
  await expect(frame.locator("textarea")).toBeEnabled(SLOW);
  await send(frame, "say:After the crash.");
  await expect(messageWith(frame, "After the crash.")).toBeVisible(SLOW);
  await expect(sessionRow(page, "say:Before the crash.")).toBeVisible();
};

/** Records every text of the chip from now on. @param {import("@playwright/test").FrameLocator} frame */
const recordChip = (frame) => frame.locator(".chip").evaluate((chip) => {
  const all = /** @type {any} */ (window);
  all.chips = [];
  new MutationObserver(() => all.chips.push(chip.textContent)).observe(chip, {
    subtree: true,
    childList: true,
    characterData: true,
  });
});

test("TC-2.2d, TC-8.1a, TC-8.1b: real Claude Code streams, runs a tool and survives a restart", talks("Claude Code"));
test("TC-2.2e, TC-8.2a, TC-8.2b: real Codex streams, runs a tool and survives a restart", talks("Codex"));
test("TC-8.1c, TC-5.6b: real Claude Code survives a reload mid-turn, stops and keeps its text", stops("Claude Code"));
test("TC-3.7b, TC-5.6b: real Codex survives a reload mid-turn, then stops and keeps its text", stops("Codex"));
test("TC-5.2b, TC-5.2d: real Claude Code crashes mid-turn; its text stays, Reconnect works", crashes(
  "Claude Code",
  "claude",
));
test("TC-5.2b, TC-5.2d: real Codex crashes mid-turn; its text stays, Reconnect works", crashes("Codex", "codex-acp"));

test("TC-4.5a, TC-8.3a: tabs of Claude Code and Codex keep their conversations apart", async ({ real, page }) => {
  test.setTimeout(240_000);
  await page.goto(real.link);
  await addProject(page, real.directory("ferry"));
  const talks = /** @type {const} */ ([
    ["Claude Code", "claude-code", "Fix auth bug"],
    ["Codex", "codex", "Rotate the keys"],
  ]);
  for (const [agent, , text] of talks) {
    const frame = await newSession(page, "ferry", agent);
    for (const [at, message] of [text, "and once more"].entries()) {
      await send(frame, message);
      await expect(messageWith(frame, `You said: ${message}`)).toBeVisible(SLOW);
      await finished(frame);
      await expect(frame.locator(".user-turn")).toHaveCount(at + 1);
    }
  }
  for (const [agent, mark, text] of [...talks, ...talks]) {
    await tab(page, text).click();
    await expect(tab(page, text)).toHaveAttribute("data-current", "");
    await expect(tab(page, text).locator(".mark use")).toHaveAttribute("href", `#i-agent-${mark}`);
    await expect(current(page).locator(".user-text")).toHaveText([text, "and once more"]);
    await expect(current(page).locator(".message")).toHaveText([`You said: ${text}`, "You said: and once more"]);
    await expect(current(page).locator(".chip")).toHaveText(`${agent} · Connected`);
  }
});

test("TC-2.4c: a session of Claude Code begun in a terminal is not listed, though it lies beside ours", async (
  { real, page, quiet },
) => {
  test.setTimeout(240_000);
  const path = real.directory("ferry");
  await page.goto(real.link);
  await addProject(page, path);
  const frame = await newSession(page, "ferry", "Claude Code");
  await send(frame, "say:From the app.");
  await expect(messageWith(frame, "From the app.")).toBeVisible(SLOW);
  await finished(frame);
  const elsewhere = promisify(execFile)(join(real.home, "claude"), [
    "-p",
    "say:From a terminal.",
  ], { cwd: path, env: { PATH: process.env.PATH ?? "", HOME: real.home, ...real.env } });
  elsewhere.child.stdin?.end();
  expect((await elsewhere).stdout).toContain("From a terminal.");
  const kept = join(real.home, ".claude", "projects");
  const all = readdirSync(kept, { recursive: true }).map(String).filter((name) => /^[^/]*\/[^/]*\.jsonl$/.test(name));
  expect(
    all.filter((name) => /say:From (the app|a terminal)\./.test(readFileSync(join(kept, name), "utf8"))),
  ).toHaveLength(2);
  expect(new Set(all.map(dirname)).size, "both of one project").toBe(1);
  quiet.serverMayGo = true;
  await real.restart();
  await page.reload();
  await expect(sessionRow(page, "say:From the app.")).toBeVisible();
  await expect(page.locator(".session-row")).toHaveCount(1);
});
