// Directories: a session's branch, Open in, project defaults, and recent directories.
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { addProject, current, expect, newSession, projectRow, send, test } from "./app.js";

/** @param {string} directory @param {string} branch */
function checkOut(directory, branch) {
  mkdirSync(join(directory, ".git"), { recursive: true });
  writeFileSync(join(directory, ".git", "HEAD"), `ref: refs/heads/${branch}\n`);
}

test("a session's header shows the branch of its directory, and nothing where there is none", async (
  { app, shell },
) => {
  checkOut(app.directory("one"), "feature/queue");
  await addProject(shell, app.directory("one"));
  await newSession(shell, "one");
  await expect(current(shell).locator(".session-branch")).toHaveText("Branch feature/queue");
  checkOut(app.directory("one"), "main");
  await send(current(shell), "hello");
  await expect(current(shell).locator(".session-branch")).toHaveText("Branch main");
  await addProject(shell, app.directory("two"));
  await newSession(shell, "two");
  await expect(current(shell).locator(".session-branch")).toBeHidden();
});

test("a directory is opened in the editor of the settings, from every menu and the palette", async (
  { startApp, page },
) => {
  const app = await startApp({ env: { DISPLAY: ":99" } });
  const note = join(app.home, "opened");
  const editor = join(app.home, "editor");
  writeFileSync(editor, `#!/bin/sh\nprintf '%s' "$*" > "${note}"\n`);
  chmodSync(editor, 0o755);
  const opened = () => (existsSync(note) ? readFileSync(note, "utf8") : "");
  const directory = app.directory("one");
  await page.goto(app.link);
  await addProject(page, directory);

  await page.getByRole("button", { name: "Settings" }).click();
  const field = page.getByRole("textbox", { name: "Editor" });
  await field.fill("'unclosed");
  await field.press("Enter");
  await expect(page.getByText("The command for the editor has a quote that is not closed.")).toBeVisible();
  await field.fill(`${editor} --new {dir}`);
  await field.press("Enter");
  await expect(page.getByText("Saved")).toBeVisible();
  await page.keyboard.press("Escape");

  await projectRow(page, "one").click({ button: "right" });
  await page.getByRole("menuitem", { name: "Open in editor" }).click();
  await expect.poll(opened).toBe(`--new ${directory}`);
  writeFileSync(note, "");
  await newSession(page, "one");
  await current(page).getByRole("button", { name: "More" }).click();
  await current(page).getByRole("menuitem", { name: "Open in editor" }).click();
  await expect.poll(opened).toBe(`--new ${directory}`);
  writeFileSync(note, "");
  await page.keyboard.press("Control+k");
  await page.getByRole("combobox", { name: "Search or jump to" }).fill(">open in editor");
  await page.keyboard.press("Enter");
  await expect.poll(opened).toBe(`--new ${directory}`);
});

test("without a display the entries show why they are disabled", async ({ app, shell }) => {
  await addProject(shell, app.directory("one"));
  await projectRow(shell, "one").click({ button: "right" });
  const entry = shell.getByRole("menuitem", { name: "Open terminal here" });
  await expect(entry).toBeDisabled();
  await expect(entry).toContainText("Liminal Builder runs without a display");
});

test("a session's agent and mode become the project's defaults, and the dialog shows and clears them", async (
  { startApp, page },
) => {
  const app = await startApp({ names: ["First", "Second"] });
  await page.goto(app.link);
  await addProject(page, app.directory("one"));
  await newSession(page, "one", "Second");
  await current(page).getByRole("button", { name: "More" }).click();
  await current(page).getByRole("menuitem", { name: /Make these the project’s defaults/ }).click();
  await expect(page.getByText("New sessions in one will start with these options")).toBeVisible();

  await projectRow(page, "one").click({ button: "right" });
  await page.getByRole("menuitem", { name: "Defaults…" }).click();
  const dialog = page.getByRole("dialog", { name: "Defaults for one" });
  await expect(dialog.getByRole("combobox", { name: "Agent" })).toHaveValue("Second");
  await page.keyboard.press("Escape");
  // Whatever was last used elsewhere, this project starts with its own defaults.
  await page.evaluate(() => localStorage.clear());
  await projectRow(page, "one").click({ button: "right" });
  await page.getByRole("menuitem", { name: "New session" }).click();
  await expect(page.getByRole("dialog", { name: "New session" }).locator('[data-cli-type="Second"]')).toBeFocused();
  await page.keyboard.press("Escape");

  await projectRow(page, "one").click({ button: "right" });
  await page.getByRole("menuitem", { name: "Defaults…" }).click();
  await dialog.getByRole("combobox", { name: "Agent" }).selectOption("Last used agent");
  await dialog.getByRole("button", { name: "Save" }).click();
  await expect.poll(() => readFileSync(join(app.data, "projects.json"), "utf8")).not.toContain("defaults");
});

test("Enter pressed twice for the first project adds it once and shows no error afterwards", async ({ app, shell }) => {
  const path = app.directory("atlas");
  await expect(shell.getByRole("combobox", { name: "Directory" })).toBeFocused();
  await shell.keyboard.type(path);
  await shell.evaluate(() => {
    const form = /** @type {HTMLFormElement} */ (document.querySelector(".first-field"));
    form.requestSubmit();
    form.requestSubmit();
  });
  await expect(projectRow(shell, "atlas")).toBeVisible();
  await projectRow(shell, "atlas").click({ button: "right" });
  await shell.getByRole("menuitem", { name: "Remove from sidebar" }).click();
  await expect(shell.getByRole("heading", { name: "Add your first project" })).toBeVisible();
  await expect(shell.locator(".first-run .path-error")).toBeHidden();
});

test("directories worked in before are offered when a project is added, and repositories are marked", async (
  { app, page },
) => {
  const atlas = app.directory("atlas");
  checkOut(atlas, "main");
  const records = join(app.home, ".claude", "projects", "-code-atlas");
  mkdirSync(records, { recursive: true });
  writeFileSync(join(records, "1.jsonl"), `${JSON.stringify({ type: "user", cwd: atlas })}\n`);
  await page.goto(app.link);
  const recent = page.getByRole("region", { name: "Recent directories" });
  await expect(page.getByRole("option")).toHaveText(["code/"]);
  await expect(recent.getByRole("button", { name: /atlas.*git.*Used by an agent/ })).toBeVisible();
  await recent.getByRole("button", { name: /atlas/ }).click();
  await expect(projectRow(page, "atlas")).toBeVisible();

  app.directory("ferry");
  await page.locator(".projects .section-title [data-command=add-project]").click();
  const dialog = page.getByRole("dialog", { name: "Add project" });
  await dialog.getByRole("combobox").fill(join(app.home, "code", "f"));
  await expect(dialog.getByRole("option", { name: "ferry/" })).toBeVisible();
  await expect(recent).toBeHidden();
});
