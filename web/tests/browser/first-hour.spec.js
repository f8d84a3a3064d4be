// first-hour.spec.js: what a new user does in the first hour, with fast fingers.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import {
  addProject,
  current,
  expect,
  finished,
  newSession,
  projectRow,
  routeSocket,
  send,
  sessionRow,
  tab,
  test,
} from "./app.js";

/** Pastes into what has focus. @param {import("@playwright/test").Page} page @param {string} text */
async function paste(page, text) {
  await page.evaluate((value) => navigator.clipboard.writeText(value), text);
  await page.keyboard.press("Control+v");
}

test("a path pasted or typed into an untouched field is the path that is added", async ({ app, shell, context }) => {
  await context.grantPermissions(["clipboard-read", "clipboard-write"]);
  const first = shell.getByRole("combobox", { name: "Directory" });
  await expect(first).toBeFocused();
  await expect(first).toHaveAttribute("placeholder", "~/");
  const path = app.directory("first one");
  await paste(shell, path);
  await expect(first).toHaveValue(path);
  await shell.keyboard.press("Enter");
  await expect(projectRow(shell, "first one")).toBeVisible();
  for (const [name, type] of /** @type {const} */ ([["pasted", true], ["typed", false], ["quoted", true]])) {
    await shell.locator(".projects .section-title [data-command=add-project]").click();
    const dialog = shell.getByRole("dialog", { name: "Add project" });
    await expect(dialog.getByRole("combobox")).toBeFocused();
    await expect(dialog.getByRole("option")).toHaveText(["code/"]);
    const own = name === "quoted" ? `'${app.directory(name)}' ` : app.directory(name);
    if (type) await paste(shell, own);
    else await shell.keyboard.type(own);
    await shell.keyboard.press("Enter");
    await expect(dialog).toBeHidden();
    await expect(projectRow(shell, name)).toHaveAttribute("title", join(app.home, "code", name));
  }
});

test("after a reload and after a restart of the server, what is typed goes to the session in front", async (
  { app, shell, quiet },
) => {
  await addProject(shell, app.directory("ferry"));
  const frame = await newSession(shell, "ferry");
  await send(frame, "hello");
  await finished(frame);
  await shell.reload();
  await expect(current(shell).locator("textarea")).toBeFocused();
  await shell.keyboard.type("after a reload");
  await expect(current(shell).locator("textarea")).toHaveValue("after a reload");
  quiet.serverMayGo = true;
  await app.restart();
  await expect(shell.locator("#offline")).toBeHidden();
  await expect(current(shell).locator("textarea")).toBeFocused();
  await shell.keyboard.type(", and a restart");
  await expect(current(shell).locator("textarea")).toHaveValue("after a reload, and a restart");
  // The focused element keeps focus.
  await sessionRow(shell, "hello").focus();
  await app.restart();
  await expect(shell.locator("#offline")).toBeHidden();
  await expect(sessionRow(shell, "hello").getByRole("img")).toHaveCount(0);
  await expect(sessionRow(shell, "hello")).toBeFocused();
});

test("text typed right after a reload, or after a key for another tab, appears in the active session's input", async (
  { app, shell },
) => {
  await addProject(shell, app.directory("ferry"));
  for (const word of ["a", "b"]) {
    const frame = await newSession(shell, "ferry");
    await send(frame, `hello ${word}`);
    await finished(frame);
  }
  for (const [title, key] of /** @type {const} */ ([["hello b", null], ["hello a", "Alt+1"]])) {
    // The shell has loaded, the pages of the sessions load late.
    let release = () => {};
    const released = new Promise((resolve) => (release = () => resolve(undefined)));
    await shell.route("**/portlet", async (route) => {
      await released;
      await route.continue();
    });
    await shell.reload({ waitUntil: "commit" });
    await expect(tab(shell, title)).toBeVisible();
    if (key) await shell.keyboard.press(key);
    await shell.keyboard.type("Why? Look");
    release();
    await expect(tab(shell, title)).toHaveAttribute("data-current", "");
    await expect(current(shell).locator("textarea")).toBeFocused();
    await expect(current(shell).locator("textarea")).toHaveValue("Why? Look");
    await shell.keyboard.type(" at it");
    await expect(current(shell).locator("textarea")).toHaveValue("Why? Look at it");
    await shell.unroute("**/portlet");
  }
});

test("an input that was switched off while its agent was lost has focus again when it is back", async (
  { app, shell, quiet },
) => {
  await addProject(shell, app.directory("ferry"));
  const frame = await newSession(shell, "ferry");
  await send(frame, "then crash");
  await expect(frame.getByText("Connection to Scripted lost.")).toBeVisible();
  quiet.serverMayGo = true;
  await app.stop();
  app.mend();
  await app.start();
  await expect(shell.locator("#offline")).toBeHidden();
  await expect(current(shell).locator("textarea")).toBeFocused();
});

test("what is typed while a session starts is in its input when it is there, and nothing is sent", async (
  { startApp, page },
) => {
  const app = await startApp({ script: "slow-start" });
  await page.goto(app.link);
  await addProject(page, app.directory("ferry"));
  await projectRow(page, "ferry").getByRole("button", { name: "New Session" }).click();
  const option = page.locator(".picker-option", { hasText: "Scripted" });
  await option.focus();
  await page.keyboard.press("Enter");
  // At once, without a pause.
  await page.keyboard.type("Fix the login");
  await page.keyboard.press("Enter");
  await page.keyboard.type(", then test it");
  const field = page.getByRole("textbox", { name: "Message Scripted" });
  await expect(field).toHaveValue("Fix the login, then test it");
  await expect(page.getByRole("dialog")).toHaveCount(0);
  // Typing continues while the session replaces the starting page.
  const rest =
    " and all that belongs to it, from the first key to the last one, while the page changes under the fingers";
  const typing = page.keyboard.type(rest, { delay: 15 });
  writeFileSync(join(app.home, "release"), "");
  await expect(page.locator(".tab[data-provisional]")).toHaveCount(0);
  await typing;
  await expect(current(page).locator("textarea")).toHaveValue(`Fix the login, then test it${rest}`);
  await expect(current(page).locator("textarea")).toBeFocused();
  await expect(current(page).locator(".user-turn")).toHaveCount(0);
  await page.keyboard.press("Enter");
  await expect(current(page).locator(".user-text")).toHaveText(`Fix the login, then test it${rest}`);
});

test("text typed before a page knows its session follows the draft", async ({ app, shell }) => {
  await addProject(shell, app.directory("ferry"));
  const frame = await newSession(shell, "ferry");
  await frame.locator("textarea").fill("Fix the ");
  // The draft is saved when the page closes.
  await shell.reload();
  await expect(current(shell).locator("textarea")).toHaveValue("Fix the ");
  await tab(shell, "New Session").hover();
  await tab(shell, "New Session").locator(".tab-close").click();
  await expect(shell.locator(".tab")).toHaveCount(0);
  await shell.frameLocator("iframe.spare-portlet").locator("textarea").evaluate((input) => {
    /** @type {HTMLTextAreaElement} */ (input).value = "login";
    input.dispatchEvent(new Event("input"));
  });
  await sessionRow(shell, "New Session").click();
  await expect(current(shell).locator("textarea")).toHaveValue("Fix the login");
  await shell.reload();
  await expect(current(shell).locator("textarea")).toHaveValue("Fix the login");
});

test("focus that the user moved stays when the sessions of a new project arrive", async ({ app, page }) => {
  /** @type {(() => void) | null} */
  let release = null;
  await routeSocket(page, (socket) => {
    const server = socket.connectToServer();
    server.onMessage((data) => {
      if (String(data).includes('"type":"session:list"')) release = () => socket.send(data);
      else socket.send(data);
    });
  });
  await page.goto(app.link);
  await addProject(page, app.directory("ferry"));
  await expect.poll(() => release !== null).toBe(true);
  const separator = page.getByRole("separator", { name: "Width of the sidebar" });
  await separator.focus();
  /** @type {any} */ (release)();
  await expect(page.locator(".no-sessions")).toBeVisible();
  await expect(separator).toBeFocused();
});

test("what was typed for a session that could not be made is there when it is tried again", async (
  { startApp, page },
) => {
  const app = await startApp({ script: "slow-refuse" });
  await page.goto(app.link);
  await addProject(page, app.directory("ferry"));
  await projectRow(page, "ferry").getByRole("button", { name: "New Session" }).click();
  await page.locator(".picker-option", { hasText: "Scripted" }).click();
  await expect(page.getByRole("textbox", { name: "Message Scripted" })).toBeFocused();
  await page.keyboard.type("kept");
  writeFileSync(join(app.home, "release"), "");
  await expect(page.getByRole("button", { name: "Retry" })).toBeVisible();
  writeFileSync(join(app.home, "relent"), "");
  await page.getByRole("button", { name: "Retry" }).click();
  await expect(tab(page, "New Session")).not.toHaveAttribute("data-provisional", "");
  await expect(current(page).locator("textarea")).toHaveValue("kept");
});

test("after a project is added, Enter starts a session in it", async ({ app, shell }) => {
  await expect(shell.getByRole("combobox", { name: "Directory" })).toBeFocused();
  await shell.keyboard.type(app.directory("ferry"));
  await shell.keyboard.press("Enter");
  await expect(shell.locator(".no-sessions").getByRole("button", { name: "New Session" })).toBeFocused();
  await shell.keyboard.press("Enter");
  const picker = shell.getByRole("dialog", { name: "New session" });
  await expect(picker.getByRole("button", { name: "Project: ferry" })).toBeVisible();
  await picker.locator(".picker-option", { hasText: "Scripted" }).click();
  await expect(current(shell).locator("textarea")).toBeFocused();
  await shell.locator(".projects .section-title [data-command=add-project]").click();
  await shell.keyboard.type(app.directory("atlas"));
  await shell.keyboard.press("Enter");
  await expect(shell.locator(".no-sessions").getByRole("button", { name: "New Session" })).toBeFocused();
  await shell.keyboard.press("Enter");
  await expect(picker.getByRole("button", { name: "Project: atlas" })).toBeVisible();
});

test("the palette goes back to the session used before, and finds projects and agents by name", async (
  { app, shell },
) => {
  for (const name of ["ferry", "atlas"]) await addProject(shell, app.directory(name));
  for (const word of ["a", "b", "c"]) {
    const frame = await newSession(shell, "ferry");
    await send(frame, `hello ${word}`);
    await finished(frame);
  }
  await tab(shell, "hello a").click();
  await expect(tab(shell, "hello a")).toHaveAttribute("data-current", "");
  const palette = shell.getByRole("dialog", { name: "Search or jump to" });
  for (const title of ["hello c", "hello a", "hello c"]) {
    await shell.keyboard.press("Control+k");
    await expect(palette.getByRole("option", { selected: true })).toContainText(title);
    await shell.keyboard.press("Enter");
    await expect(tab(shell, title)).toHaveAttribute("data-current", "");
  }
  // A session archived in the meantime is not offered as the previous one.
  await sessionRow(shell, "hello a").focus();
  await shell.keyboard.press("Delete");
  await expect(tab(shell, "hello a")).toHaveCount(0);
  await shell.keyboard.press("Control+k");
  await expect(palette.getByRole("option", { selected: true })).toContainText("hello b");
  await shell.keyboard.type("scripted");
  await expect(palette.getByRole("group", { name: "Agents" }).getByRole("option")).toHaveText([/Scripted/]);
  await expect(palette.getByRole("group", { name: "By project or agent" }).getByRole("option")).toHaveCount(2);
  await palette.getByRole("group", { name: "Agents" }).getByRole("option").click();
  await expect(shell.locator(".picker-option", { hasText: "Scripted" })).toBeFocused();
  await shell.keyboard.press("Escape");
  await shell.keyboard.press("Control+k");
  await shell.keyboard.type("atl");
  await expect(palette.getByRole("option", { selected: true })).toContainText("atlas");
  await shell.keyboard.press("Enter");
  await expect(projectRow(shell, "atlas")).toBeFocused();
});

test("? lists the keys when nobody types, and so does the palette", async ({ app, shell }) => {
  await addProject(shell, app.directory("ferry"));
  const frame = await newSession(shell, "ferry");
  const list = shell.getByRole("dialog", { name: "Keyboard shortcuts" });
  await frame.locator("textarea").focus();
  await shell.keyboard.type("why?");
  await expect(frame.locator("textarea")).toHaveValue("why?");
  await expect(list).toHaveCount(0);
  for (const place of [frame.locator("#log"), projectRow(shell, "ferry"), shell.locator(".tab [role=tab]")]) {
    await place.focus();
    await shell.keyboard.press("Shift+?");
    await expect(list).toContainText("Alt 1…9");
    await expect(list).toContainText("Tab 1 to 9");
    await shell.keyboard.press("Escape");
    await expect(list).toHaveCount(0);
  }
  await shell.keyboard.press("Control+k");
  await shell.keyboard.type("keyboard");
  await shell.keyboard.press("Enter");
  await expect(list).toBeVisible();
});

test("the list of keys names every key that does something anywhere, and no other", async ({ app, shell }) => {
  await addProject(shell, app.directory("ferry"));
  await projectRow(shell, "ferry").focus();
  await shell.keyboard.press("Shift+?");
  const list = shell.getByRole("dialog", { name: "Keyboard shortcuts" });
  const listed = await list.locator("section").filter({ hasText: /^(Anywhere|Tabs)/ }).locator("kbd").allTextContents();
  const found = await shell.evaluate(async () => {
    const { mod, nav, shortcutOf } = await import(/** @type {any} */ ("/shared/keys.js"));
    const codes = [..."ABCDEFGHIJKLMNOPQRSTUVWXYZ"].map((letter) => ({
      key: letter.toLowerCase(),
      code: `Key${letter}`,
      printed: letter,
    }));
    const others = [
      [".", "Period"],
      [",", "Comma"],
      ["/", "Slash"],
      ["[", "BracketLeft"],
      ["]", "BracketRight"],
      ["1", "Digit1"],
      ["9", "Digit9"],
      ["0", "Digit0"],
    ];
    const keys = [...codes, ...others.map(([key, code]) => ({ key, code, printed: key }))];
    const does = (/** @type {KeyboardEventInit} */ init) => shortcutOf(new KeyboardEvent("keydown", init)) !== null;
    return [
      ...keys.filter(({ key, code }) => does({ key, code, ctrlKey: true })).map(({ printed }) => mod(printed)),
      ...keys.filter(({ key, code }) => does({ key, code, altKey: true })).map(({ printed }) => nav(printed)),
      ...["?", "F6"].filter((key) => does({ key })),
    ];
  });
  // Written differently in the list, or not a shortcut of the app itself.
  const own = listed
    .filter((key) => !["Esc", "Shift F6", "Ctrl Shift ← →"].includes(key))
    .map((key) => key.replace("…9", ""));
  expect(own.sort()).toEqual(found.filter((key) => key !== "Alt 9").sort());
  expect(found).toContain("Alt 9");
});
