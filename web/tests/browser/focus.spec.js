// focus.spec.js: focus is never lost. If the focused element is removed, hidden or redrawn, keys go to what took its
// place.
import { addProject, current, expect, finished, newSession, projectRow, send, sessionRow, tab, test } from "./app.js";

/** @typedef {import("@playwright/test").Page} Page */

/** Which part of the window has focus. @param {Page} page */
const place = (page) => page.evaluate(() => {
  const node = document.activeElement;
  if (node?.matches("iframe")) {
    return /** @type {HTMLIFrameElement} */ (node).contentDocument?.activeElement?.id === "log" ? "log" : "input";
  }
  return node?.closest("#sidebar, #rail, #top-bar, #tab-bar, #sheet, #toasts, dialog")?.id ?? node?.localName;
});

/** @param {Page} page @param {...string} messages */
async function openAll(page, ...messages) {
  for (const message of messages) {
    const frame = await newSession(page, "ferry");
    await send(frame, `hello ${message}`);
    await expect(tab(page, `hello ${message}`)).toBeVisible();
    await finished(frame);
  }
}

/**
 * Presses the key once for each of these places, and is there.
 * @param {Page} page
 * @param {string[]} places
 * @param {string} [key]
 */
async function visit(page, places, key = "F6") {
  for (const next of places) {
    await page.keyboard.press(key);
    await expect.poll(() => place(page)).toBe(next);
  }
}

test.beforeEach(async ({ app, shell }) => {
  await addProject(shell, app.directory("ferry"));
});

test("F6 visits every region that is there, and none that is not", async ({ shell }) => {
  await openAll(shell, "a");
  await current(shell).locator("textarea").focus();
  await visit(shell, ["sidebar", "tab-bar", "log", "input"]);
  await visit(shell, ["log", "tab-bar", "sidebar", "input"], "Shift+F6");
  await shell.keyboard.press("Control+b");
  await expect(shell.locator("#sidebar")).toBeHidden();
  await visit(shell, ["tab-bar", "log", "input"]);
  await shell.keyboard.press("Control+b");
  await shell.setViewportSize({ width: 820, height: 900 });
  await current(shell).locator("textarea").focus();
  await visit(shell, ["rail", "tab-bar", "log", "input"]);
  await shell.setViewportSize({ width: 390, height: 844 });
  await current(shell).locator("textarea").focus();
  await visit(shell, ["top-bar", "log", "input"]);
});

test("a sidebar that is hidden gives focus to what stays", async ({ shell }) => {
  await openAll(shell, "a");
  await sessionRow(shell, "hello a").focus();
  await shell.keyboard.press("Control+b");
  await expect(shell.locator("#sidebar")).toBeHidden();
  expect(await place(shell)).toBe("input");
  await shell.getByRole("button", { name: "Show sidebar" }).focus();
  await shell.keyboard.press("Enter");
  await expect(shell.locator("#sidebar")).toBeVisible();
  expect(await place(shell)).toBe("tab-bar");
});

test("a tab closed by its key leaves focus on the tab that comes in front", async ({ shell }) => {
  await openAll(shell, "a", "b");
  await tab(shell, "hello b").getByRole("tab").focus();
  await shell.keyboard.press("Delete");
  await expect(tab(shell, "hello b")).toHaveCount(0);
  await expect(tab(shell, "hello a").getByRole("tab")).toBeFocused();
  await shell.keyboard.press("Delete");
  await expect(shell.locator(".tab")).toHaveCount(0);
  await expect(shell.locator(".new-tab")).toBeFocused();
});

test("a tab closed by its × leaves focus in the session that comes in front", async ({ shell }) => {
  await openAll(shell, "a", "b");
  await current(shell).locator("textarea").focus();
  await tab(shell, "hello b").locator(".tab-close").click();
  await expect(tab(shell, "hello a")).toHaveAttribute("data-current", "");
  await expect(current(shell).locator("textarea")).toBeFocused();
  await shell.keyboard.type("typed on");
  await expect(current(shell).locator("textarea")).toHaveValue("typed on");
  await tab(shell, "hello a").locator(".tab-close").click();
  await expect(shell.getByRole("heading", { name: "No session open" })).toBeVisible();
  expect(await place(shell)).toBe("sheet");
});

test("a session archived in another window leaves focus in the one that comes in front", async (
  { app, shell, context },
) => {
  await openAll(shell, "a", "b");
  const other = await context.newPage();
  await other.goto(app.link);
  await sessionRow(other, "hello b").focus();
  await shell.bringToFront();
  await current(shell).locator("textarea").focus();
  await other.bringToFront();
  await other.keyboard.press("Delete");
  await expect(tab(shell, "hello b")).toHaveCount(0);
  await shell.bringToFront();
  await expect.poll(() => place(shell)).toBe("input");
  await shell.keyboard.type("typed on");
  await expect(current(shell).locator("textarea")).toHaveValue("typed on");
});

test("Undo of an archive, by keyboard, brings its tab back to its place and loses no focus", async ({ shell }) => {
  await openAll(shell, "a", "b", "c");
  await tab(shell, "hello b").click();
  await sessionRow(shell, "hello b").focus();
  await shell.keyboard.press("Delete");
  await expect(tab(shell, "hello b")).toHaveCount(0);
  const undo = shell.getByRole("button", { name: "Undo" });
  await undo.focus();
  await shell.keyboard.press("Enter");
  await expect(tab(shell, "hello b")).toHaveAttribute("data-current", "");
  expect(await shell.locator(".tab-title").allTextContents()).toEqual(["hello a", "hello b", "hello c"]);
  await expect(current(shell).locator(".user-text")).toHaveText("hello b");
  expect(await place(shell)).toBe("sidebar");
  await expect(undo).toHaveCount(0);
});

test("Esc in the sidebar or on a tab stops the turn in view", async ({ shell }) => {
  const frame = await newSession(shell, "ferry");
  for (const from of [sessionRow(shell, "slow words").first(), shell.locator(".tab[data-current] [role=tab]")]) {
    await send(frame, "slow words");
    await expect(frame.locator(".message").last()).toContainText("word5");
    await expect(sessionRow(shell, "slow words").getByRole("img", { name: "Working" })).toBeVisible();
    await from.focus();
    await shell.keyboard.press("Escape");
    await expect(frame.locator("#status-line")).toContainText("Stopped");
  }
});

test("Esc on a note sends the note away and stops nothing", async ({ app, shell }) => {
  await openAll(shell, "a");
  const frame = await newSession(shell, "ferry");
  await send(frame, "hold on");
  await expect(frame.locator(".message")).toHaveText("The first part.");
  await sessionRow(shell, "hello a").focus();
  await shell.keyboard.press("Delete");
  await shell.getByRole("button", { name: "Undo" }).focus();
  await shell.keyboard.press("Escape");
  await expect(shell.locator(".toast")).toHaveCount(0);
  expect(await place(shell)).toBe("sidebar");
  app.release("ferry");
  await expect(frame.locator(".message")).toHaveText("The first part. The second part.");
});

test("the rail of a narrow window keeps focus, and a press that began on it, while states change", async (
  { app, shell },
) => {
  const frame = await newSession(shell, "ferry");
  await shell.setViewportSize({ width: 820, height: 900 });
  const settings = shell.locator("#rail [data-command=settings]");
  const working = shell.locator('#rail .rail-project .glyph[data-attention="working"]');
  await settings.focus();
  await frame.locator("textarea").evaluate((node) => {
    /** @type {HTMLTextAreaElement} */ (node).value = "hold on";
    node.dispatchEvent(new Event("input", { bubbles: true }));
    node.closest("form")?.requestSubmit();
  });
  await expect(working).toBeVisible();
  await expect(settings).toBeFocused();
  await settings.hover();
  await shell.mouse.down();
  app.release("ferry");
  await expect(working).toHaveCount(0);
  await shell.mouse.up();
  await expect(shell.getByRole("dialog", { name: "Settings" })).toBeVisible();
});

test("the top bar of a phone keeps focus while states change", async ({ app, shell }) => {
  const frame = await newSession(shell, "ferry");
  await send(frame, "hold on");
  await expect(frame.locator(".message")).toHaveText("The first part.");
  await shell.setViewportSize({ width: 390, height: 844 });
  const sessions = shell.locator("#top-bar [data-command=open-sessions]");
  await sessions.focus();
  app.release("ferry");
  await finished(frame);
  await sessionRow(shell, "hold on").and(shell.locator('[data-attention="idle"]')).waitFor({ state: "attached" });
  await expect(sessions).toBeFocused();
});

for (const [width, bar] of /** @type {const} */ ([[820, "#rail"], [390, "#top-bar"]])) {
  test(`the drawer at ${width} px takes focus, keeps it, and gives it back`, async ({ shell }) => {
    await openAll(shell, "a");
    await shell.setViewportSize({ width, height: 900 });
    const menu = shell.locator(`${bar} [data-command=sidebar]`).first();
    await menu.focus();
    await shell.keyboard.press("Enter");
    await expect(shell.locator("#sidebar")).toBeVisible();
    expect(await place(shell)).toBe("sidebar");
    for (let at = 0; at < 30; at += 1) {
      await shell.keyboard.press("Tab");
      // After the last one, focus goes to the browser's own controls first.
      expect(["sidebar", "body"]).toContain(await place(shell));
    }
    await sessionRow(shell, "hello a").focus();
    await shell.keyboard.press("Escape");
    await expect(shell.locator("#sidebar")).toBeHidden();
    await expect(menu).toBeFocused();
    await current(shell).locator("textarea").focus();
    await shell.keyboard.press("Control+b");
    await expect(shell.locator("#sidebar")).toBeVisible();
    await shell.keyboard.press("Escape");
    await expect(current(shell).locator("textarea")).toBeFocused();
    await shell.keyboard.press("Control+b");
    await sessionRow(shell, "hello a").click();
    await expect(shell.locator("#sidebar")).toBeHidden();
    await expect(current(shell).locator("textarea")).toBeFocused();
  });
}

test("a click beside the drawer closes it", async ({ shell }) => {
  await openAll(shell, "a");
  await shell.setViewportSize({ width: 820, height: 900 });
  await shell.locator("#rail [data-command=sidebar]").first().click();
  await expect(shell.locator("#sidebar")).toBeVisible();
  await shell.mouse.click(600, 450);
  await expect(shell.locator("#sidebar")).toBeHidden();
  // What it covered is reachable again.
  await current(shell).locator("textarea").click();
  await expect(current(shell).locator("textarea")).toBeFocused();
});

test("the list of agents keeps focus while their states change, and promises no key that does nothing", async (
  { startApp, page, context },
) => {
  const names = Array.from({ length: 10 }, (_, at) => `Agent ${String.fromCharCode(97 + at)}`);
  const app = await startApp({ names, env: { CODEX_ACP_CMD: "no-such-program-here" } });
  await page.goto(app.link);
  await addProject(page, app.directory("atlas"));
  const other = await context.newPage();
  await other.goto(app.link);
  await expect(projectRow(other, "atlas")).toBeVisible();
  await page.bringToFront();
  await projectRow(page, "atlas").getByRole("button", { name: "New Session" }).click();
  const dialog = page.getByRole("dialog", { name: "New session" });
  const keys = await dialog.locator(".picker-option")
    .evaluateAll((options) => options.map((option) => option.querySelector(".kbd")?.textContent ?? ""));
  expect(keys.length).toBeGreaterThan(10);
  expect(keys.map((key, at) => key === "" || key === String(at + 1))).toEqual(keys.map(() => true));
  expect(keys.slice(9)).toEqual(keys.slice(9).map(() => ""));
  const copy = dialog.locator(".picker-row", { hasText: "Codex" }).getByRole("button", { name: /Copy/ });
  await copy.focus();
  await newSession(other, "atlas", "Agent b");
  await expect(dialog.locator(".picker-option", { hasText: "Agent b" })).toContainText("Connected");
  await expect(copy).toBeFocused();
});

test("a drawer in a window that grows is a sidebar again", async ({ shell }) => {
  await openAll(shell, "a");
  await shell.setViewportSize({ width: 820, height: 900 });
  await shell.locator("#rail [data-command=sidebar]").first().click();
  await shell.setViewportSize({ width: 1440, height: 900 });
  await current(shell).locator("textarea").click();
  await expect(current(shell).locator("textarea")).toBeFocused();
});
