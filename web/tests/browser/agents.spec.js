// agents.spec.js: agents in Settings: list, probe, add, edit, remove, and a file changed by others.
import { readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { addProject, BINARY, expect, newSession, send, finished, test } from "./app.js";

/** @typedef {import("@playwright/test").Page} Page */

/** @param {Page} page */
async function openSettings(page) {
  await page.getByRole("button", { name: "Settings" }).click();
  const dialog = page.getByRole("dialog", { name: "Settings" });
  await expect(dialog.locator("[data-agent]").first()).toBeVisible();
  return dialog;
}

/** @param {import("./app.js").App} app */
const file = (app) => JSON.parse(readFileSync(join(app.data, "agents.json"), "utf8"));

test("an agent is added by keyboard, tried before it is saved, used, edited and removed", async ({ app, shell }) => {
  await addProject(shell, app.directory("one"));
  await shell.keyboard.press("ControlOrMeta+k");
  await shell.keyboard.type("add agent");
  await shell.keyboard.press("Enter");
  const form = shell.getByRole("dialog", { name: "Add agent" });
  await expect(form.getByRole("textbox", { name: "Name" })).toBeFocused();
  await shell.keyboard.type("Second demo");
  await shell.keyboard.press("Tab");
  // A whole command line, as in a manual.
  await shell.keyboard.type(`${BINARY} demo-agent`);
  await shell.keyboard.press("Tab");
  await expect(form.getByRole("button", { name: "Move the rest to the arguments" })).toBeFocused();
  await shell.keyboard.press("Enter");
  await expect(form.getByRole("textbox", { name: "Command" })).toHaveValue(BINARY);
  await expect(form.getByRole("textbox", { name: "Arguments" })).toHaveValue("demo-agent");
  await expect(form.getByRole("textbox", { name: "Arguments" })).toBeFocused();
  await shell.keyboard.press("Tab");
  await shell.keyboard.press("Enter");
  await shell.keyboard.type("LIMINAL_DATA_DIR");
  await shell.keyboard.press("Tab");
  const value = form.getByLabel("Value");
  await expect(value).toHaveAttribute("type", "text");
  await shell.keyboard.type(app.directory("second"));
  await form.getByRole("button", { name: "Try it" }).focus();
  await expect(value).toHaveAttribute("type", "password");
  await shell.keyboard.press("Enter");
  await expect(form.locator(".probe")).toContainText("It answers, version");
  expect(file(app).agent_servers).not.toHaveProperty("Second demo");
  await form.getByRole("textbox", { name: "Name" }).press("Enter");
  await expect(form).toBeHidden();

  const settings = shell.getByRole("dialog", { name: "Settings" });
  await expect(settings.getByRole("button", { name: "Edit Second demo" })).toBeFocused();
  expect(file(app).agent_servers["Second demo"]).toEqual({
    command: BINARY,
    args: ["demo-agent"],
    env: { LIMINAL_DATA_DIR: app.directory("second") },
  });
  expect(Object.keys(file(app).agent_servers)).toEqual(["Scripted", "Second demo"]);
  expect(statSync(join(app.data, "agents.json")).mode & 0o777).toBe(0o600);
  await shell.keyboard.press("Escape");
  const frame = await newSession(shell, "one", "Second demo");
  await send(frame, "hello");
  await finished(frame);

  await openSettings(shell);
  await settings.getByRole("button", { name: "Edit Second demo" }).click();
  const edit = shell.getByRole("dialog", { name: "Edit Second demo" });
  await edit.getByRole("textbox", { name: "Name" }).fill("Third demo");
  await expect(edit).toContainText("Sessions of Second demo belong to that name.");
  await edit.getByRole("textbox", { name: "Name" }).fill("codex");
  await edit.getByRole("button", { name: "Save" }).click();
  await expect(edit.getByRole("alert")).toHaveText("The built-in agent Codex has that name. Choose another one.");
  await expect(edit.getByRole("textbox", { name: "Name" })).toBeFocused();
  await edit.getByRole("textbox", { name: "Name" }).fill("Second demo");
  await edit.getByRole("textbox", { name: "Arguments" }).fill("demo-agent\n--nonsense flag");
  await edit.getByRole("button", { name: "Try it" }).click();
  const failed = edit.locator(".probe[data-state=failed]");
  await expect(failed).toContainText("in a terminal to see whether it works by itself");
  await edit.getByRole("textbox", { name: "Arguments" }).press("ControlOrMeta+Enter");
  await expect(edit).toBeHidden();
  expect(file(app).agent_servers["Second demo"].args).toEqual(["demo-agent", "--nonsense flag"]);

  // The running session keeps its agent.
  await settings.getByRole("button", { name: "Remove Second demo" }).click();
  await shell.getByRole("dialog", { name: "Remove Second demo" }).getByRole("button", { name: "Remove" }).click();
  await expect(settings.locator('[data-agent="Second demo"]')).toHaveCount(0);
  await expect(settings.getByRole("button", { name: "Add agent" })).toBeFocused();
  await shell.keyboard.press("Escape");
  await send(frame, "still there?");
  await finished(frame);
  await shell.keyboard.press("ControlOrMeta+k");
  await shell.keyboard.type("second demo");
  const palette = shell.getByRole("dialog", { name: "Search or jump to" });
  await expect(palette.getByRole("group", { name: "Agents" })).toHaveCount(0);
});

test("the built-in agents are listed with how to change them, and can be tried", async ({ shell }) => {
  const dialog = await openSettings(shell);
  await expect(dialog.locator('[data-agent="Claude Code"]')).toContainText("CLAUDE_CMD");
  await expect(dialog.locator('[data-agent="Codex"]')).toContainText("CODEX_ACP_CMD");
  await expect(dialog.getByRole("button", { name: /Edit (Claude|Codex|Demo)/ })).toHaveCount(0);
  await dialog.getByRole("button", { name: "Try it: Demo agent" }).click();
  await expect(dialog.locator('[data-agent="Demo agent"] .probe')).toContainText("It can start a session");
});

test("a file changed or damaged meanwhile is not overwritten, and the page reports it", async ({ app, shell }) => {
  const dialog = await openSettings(shell);
  const path = join(app.data, "agents.json");
  const known = readFileSync(path, "utf8");
  await dialog.getByRole("button", { name: "Add agent" }).click();
  const form = shell.getByRole("dialog", { name: "Add agent" });
  await form.getByRole("textbox", { name: "Name" }).fill("Mine");
  await form.getByRole("textbox", { name: "Command" }).fill("mine");
  writeFileSync(path, known.replace("{", '{ "theme": "dark",'));
  await form.getByRole("button", { name: "Save" }).click();
  await expect(form.getByRole("alert").last()).toContainText(
    "was changed by another program or window, so nothing was saved. Save again",
  );
  expect(file(app).agent_servers).not.toHaveProperty("Mine");
  await form.getByRole("button", { name: "Save" }).click();
  await expect(form).toBeHidden();
  expect(file(app)).toMatchObject({ theme: "dark", agent_servers: { Mine: { command: "mine" } } });
  await expect(dialog.locator('[data-agent="Mine"]')).toBeVisible();
  await shell.keyboard.press("Escape");

  writeFileSync(path, "{ // mine");
  await openSettings(shell);
  await expect(dialog.getByRole("alert")).toContainText("agents.json cannot be used and is not changed");
  await expect(dialog.getByRole("alert")).toContainText(path);
  await expect(dialog.getByRole("button", { name: "Add agent" })).toBeDisabled();
  expect(readFileSync(path, "utf8")).toBe("{ // mine");
});
