import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { addProject, current, expect, newSession, projectRow, send, sessionRow, tab, test, finished } from "./app.js";

test.beforeEach(async ({ app, shell }) => {
  await addProject(shell, app.directory("ferry"));
});

const titles = (/** @type {import("@playwright/test").Page} */ page) =>
  page.locator(".session-row .row-title").allTextContents();

test("TC-2.1a: each session is listed with its title, its age and its agent", async ({ app, shell, quiet }) => {
  quiet.serverMayGo = true;
  await app.stop();
  const { projects: [project] } = JSON.parse(readFileSync(join(app.data, "projects.json"), "utf8"));
  const ago = (/** @type {number} */ days) => new Date(Date.now() - days * 86_400_000 - 60_000).toISOString();
  const session = (/** @type {string} */ cliType, /** @type {string} */ title, /** @type {number} */ days) => ({
    id: `${cliType}:${crypto.randomUUID()}`,
    projectId: project.id,
    cliType,
    archived: false,
    title,
    lastActiveAt: ago(days),
    createdAt: ago(days),
  });
  const sessions = [session("codex", "Rotate the keys", 8), session("claude-code", "Fix auth bug", 2)];
  writeFileSync(join(app.data, "sessions.json"), JSON.stringify({ version: 1, sessions }), { mode: 0o600 });
  await app.start();
  await shell.reload();
  await send(await newSession(shell, "ferry"), "hello  with\n  space");
  await expect.poll(() => titles(shell)).toEqual(["hello with space", "Fix auth bug", "Rotate the keys"]);
  await projectRow(shell, "ferry").click();
  await expect(shell.locator(".session-row").first()).toBeHidden();
  await projectRow(shell, "ferry").click();
  for (const [title, age, mark, agent] of /** @type {const} */ ([
    ["hello with space", "now", "other-\\d", "Scripted"],
    ["Fix auth bug", "2d", "claude-code", "Claude Code"],
    ["Rotate the keys", "1w", "codex", "Codex"],
  ])) {
    const row = sessionRow(shell, title);
    await expect(row).toBeVisible();
    await expect(row.locator(".row-time")).toHaveText(age);
    await expect(row.locator(".mark use")).toHaveAttribute("href", new RegExp(`#i-agent-${mark}$`));
    await expect(row).toHaveAttribute("aria-label", new RegExp(`${title} ${age}.*${agent}`));
  }
});

test("TC-2.1b: the most recently used session is first", async ({ shell }) => {
  await send(await newSession(shell, "ferry"), "hello one");
  await finished(current(shell));
  await send(await newSession(shell, "ferry"), "hello two");
  await finished(current(shell));
  await expect.poll(() => titles(shell)).toEqual(["hello two", "hello one"]);
  await sessionRow(shell, "hello one").click();
  await expect.poll(() => titles(shell), "opening moves nothing").toEqual(["hello two", "hello one"]);
  await send(current(shell), "hello again");
  await expect.poll(() => titles(shell)).toEqual(["hello one", "hello two"]);
});

test("TC-2.1c: a project without sessions offers a new one", async ({ shell }) => {
  await expect(shell.getByText("No sessions yet")).toBeVisible();
  await shell.locator(".no-sessions").getByRole("button", { name: "New Session" }).click();
  await expect(shell.getByRole("dialog", { name: "New session" })).toBeVisible();
});

test("TC-2.2a: a new session opens in a tab and is in the sidebar", async ({ shell }) => {
  const frame = await newSession(shell, "ferry");
  await expect(tab(shell, "New Session")).toHaveAttribute("data-current", "");
  await expect(sessionRow(shell, "New Session")).toHaveAttribute("aria-current", "true");
  await expect(frame.getByRole("heading", { name: "Scripted in ferry" })).toBeVisible();
  await expect(frame.locator("textarea")).toBeFocused();
});

test("TC-2.2b: the picker offers Claude Code and Codex, and every other agent", async ({ startApp, page }) => {
  const app = await startApp({ env: { CLAUDE_CMD: process.execPath, CODEX_ACP_CMD: process.execPath } });
  await page.goto(app.link);
  await addProject(page, app.directory("ferry"));
  await projectRow(page, "ferry").getByRole("button", { name: "New Session" }).click();
  const dialog = page.getByRole("dialog", { name: "New session" });
  for (const name of ["Claude Code", "Codex", "Scripted"]) {
    const option = dialog.locator(
      ".picker-option",
      { has: page.locator(".agent-name", { hasText: new RegExp(`^${name}$`) }) },
    );
    await expect(option).toBeVisible();
    await expect(option).not.toHaveAttribute("aria-disabled");
  }
});

test("TC-2.2b: the picker shows what is not installed and how to install it", async ({ startApp, page }) => {
  const app = await startApp({ env: { CLAUDE_CMD: "no-such-claude", CODEX_ACP_CMD: "no-such-codex" } });
  await page.goto(app.link);
  await addProject(page, app.directory("ferry"));
  await projectRow(page, "ferry").getByRole("button", { name: "New Session" }).click();
  const dialog = page.getByRole("dialog", { name: "New session" });
  for (const [name, program] of /** @type {const} */ ([["Claude Code", "claude-code"], ["Codex", "codex"]])) {
    const row = dialog.locator(
      ".picker-row",
      { has: page.locator(".agent-name", { hasText: new RegExp(`^${name}$`) }) },
    );
    await expect(row).toContainText("Not installed");
    await expect(row.locator(".picker-option")).toHaveAttribute("aria-disabled", "true");
    await expect(row.locator(".agent-note")).toHaveText(new RegExp(`^npm install -g .*${program}`));
    await expect(row.getByRole("button", { name: `Copy the command that installs ${name}` })).toBeVisible();
  }
});

test("TC-2.2c: cancelling the picker creates nothing", async ({ shell }) => {
  await projectRow(shell, "ferry").getByRole("button", { name: "New Session" }).click();
  await shell.getByRole("dialog", { name: "New session" }).getByRole("button", { name: "Cancel" }).click();
  await expect(shell.getByText("No sessions yet")).toBeVisible();
  await expect(shell.locator(".tab")).toHaveCount(0);
  await projectRow(shell, "ferry").getByRole("button", { name: "New Session" }).click();
  await shell.keyboard.press("Escape");
  await expect(shell.getByRole("dialog")).toBeHidden();
  await expect(shell.locator(".tab")).toHaveCount(0);
});

test("TC-2.3a: opening a session shows its whole history", async ({ shell }) => {
  const frame = await newSession(shell, "ferry");
  await send(frame, "hello one");
  await finished(frame);
  await send(frame, "markdown please");
  await finished(frame);
  await shell.keyboard.press("Alt+KeyW");
  await expect(shell.locator(".tab")).toHaveCount(0);
  await sessionRow(shell, "hello one").click();
  await expect(current(shell).locator(".user-text")).toHaveText(["hello one", "markdown please"]);
  await expect(current(shell).getByText("Hello from the agent.")).toBeVisible();
  await expect(current(shell).getByRole("heading", { name: "What changed" })).toBeVisible();
});

test("TC-2.3b: opening a session that has a tab activates it", async ({ shell }) => {
  await send(await newSession(shell, "ferry"), "hello one");
  await send(await newSession(shell, "ferry"), "hello two");
  await expect(tab(shell, "hello two")).toHaveAttribute("data-current", "");
  await sessionRow(shell, "hello one").click();
  await expect(tab(shell, "hello one")).toHaveAttribute("data-current", "");
  await expect(shell.locator(".tab")).toHaveCount(2);
  await expect(shell.locator("iframe.portlet")).toHaveCount(2);
});

test("TC-2.4a: an archived session leaves the list; Undo brings it back", async ({ shell }) => {
  await send(await newSession(shell, "ferry"), "hello one");
  const row = sessionRow(shell, "hello one");
  await row.hover();
  await row.getByRole("button", { name: "Archive" }).click();
  await expect(row).toHaveCount(0);
  await shell.getByRole("button", { name: "Undo" }).click();
  await expect(sessionRow(shell, "hello one")).toBeVisible();
  await sessionRow(shell, "hello one").focus();
  await shell.keyboard.press("Delete");
  await expect(sessionRow(shell, "hello one")).toHaveCount(0);
  await shell.reload();
  await expect(shell.getByText("No sessions yet")).toBeVisible();
});

test("TC-2.4b: archiving closes the session's tab", async ({ shell }) => {
  await send(await newSession(shell, "ferry"), "hello one");
  await expect(tab(shell, "hello one")).toBeVisible();
  await current(shell).getByRole("button", { name: "More" }).click();
  await current(shell).getByRole("menuitem", { name: "Archive" }).click();
  await expect(shell.locator(".tab")).toHaveCount(0);
  await expect(sessionRow(shell, "hello one")).toHaveCount(0);
  await expect(shell.getByText("No sessions yet")).toBeVisible();
  await expect(shell.locator("iframe.portlet")).toHaveCount(0);
});

test("TC-2.5a, TC-2.5b: after a restart the sessions and their history are there, and what was archived is not", async (
  { app, shell, quiet },
) => {
  for (const text of ["hello one", "hello two", "hello three"]) {
    const frame = await newSession(shell, "ferry");
    await send(frame, text);
    await finished(frame);
  }
  await sessionRow(shell, "hello two").focus();
  await shell.keyboard.press("Delete");
  await expect.poll(() => titles(shell)).toEqual(["hello three", "hello one"]);
  quiet.serverMayGo = true;
  await app.restart();
  await expect(shell.locator("#offline")).toBeHidden();
  await shell.reload();
  await expect.poll(() => titles(shell)).toEqual(["hello three", "hello one"]);
  await sessionRow(shell, "hello one").click();
  await expect(current(shell).locator(".user-text")).toHaveText(["hello one"]);
  await expect(current(shell).getByText("Hello from the agent.")).toBeVisible();
});

test("a session can be renamed, and every window shows it", async ({ app, shell, context }) => {
  const other = await context.newPage();
  await other.goto(app.link);
  await send(await newSession(shell, "ferry"), "hello one");
  await sessionRow(shell, "hello one").click({ button: "right" });
  await shell.getByRole("menuitem", { name: "Rename" }).click();
  await shell.getByRole("textbox", { name: "Title" }).fill("A better name");
  await shell.keyboard.press("Enter");
  await expect(sessionRow(shell, "A better name")).toBeVisible();
  await expect(tab(shell, "A better name")).toBeVisible();
  await expect(sessionRow(other, "A better name")).toBeVisible();
});

test("a long first message is cut at a word for the title", async ({ shell }) => {
  await send(
    await newSession(shell, "ferry"),
    "hello this is a rather long message that goes on and on past fifty characters",
  );
  await expect(shell.locator(".session-row .row-title")).toHaveText(
    /^hello this is a rather long message that goes on…$/,
  );
});
