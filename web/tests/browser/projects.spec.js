import { symlinkSync } from "node:fs";
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

const names = (/** @type {import("@playwright/test").Page} */ page) => page.locator(".project-name").allTextContents();

test("TC-1.1a: projects are shown in the order they were added", async ({ app, shell }) => {
  for (const name of ["zebra", "apple", "mango"]) await addProject(shell, app.directory(name));
  await expect.poll(() => names(shell)).toEqual(["zebra", "apple", "mango"]);
  await shell.reload();
  await expect.poll(() => names(shell)).toEqual(["zebra", "apple", "mango"]);
});

test("TC-1.1b: the first run invites to add a project", async ({ shell }) => {
  await expect(
    shell.getByText("No projects yet. Add a directory you are working in and its sessions will appear here."),
  ).toBeVisible();
  await expect(shell.getByRole("heading", { name: "Add your first project" })).toBeVisible();
  await expect(shell.getByRole("combobox", { name: "Directory" })).toBeFocused();
  await expect(shell.getByText("Agents on this machine")).toBeVisible();
});

test("TC-1.2a: a directory that is there is added, with completion while typing", async ({ app, shell }) => {
  app.directory("atlas-api");
  app.directory("atlas-web");
  app.directory("ferry");
  await shell.locator("#no-projects [data-command=add-project]").click();
  const dialog = shell.getByRole("dialog", { name: "Add project" });
  const field = dialog.getByRole("combobox");
  await field.fill("~/code/at");
  await expect(dialog.getByRole("option")).toHaveText(["atlas-api/", "atlas-web/"]);
  await field.press("ArrowDown");
  await field.press("ArrowDown");
  await field.press("Tab");
  await expect(field).toHaveValue("~/code/atlas-web/");
  await field.press("Enter");
  await expect(dialog).toBeHidden();
  await expect(projectRow(shell, "atlas-web")).toBeVisible();
  await expect(shell.getByText("No sessions yet")).toBeVisible();
  await expect(shell.getByRole("heading", { name: "No session open" })).toBeVisible();
});

test("a directory added before the page is connected is added as soon as it is", async ({ app, page }) => {
  /** @type {(() => void)[]} */
  const held = [];
  let release = false;
  await routeSocket(page, (socket) => {
    const server = socket.connectToServer();
    server.onMessage((message) => void (release ? socket.send(message) : held.push(() => socket.send(message))));
  });
  await page.goto(app.link);
  await page.locator(".projects .section-title [data-command=add-project]").click();
  const dialog = page.getByRole("dialog", { name: "Add project" });
  await dialog.getByRole("combobox").fill(app.directory("ferry"));
  await dialog.getByRole("button", { name: "Add project" }).click();
  await expect.poll(() => held.length).toBeGreaterThan(0);
  await expect(dialog.getByRole("alert")).toBeHidden();
  release = true;
  held.forEach((send) => send());
  await expect(dialog).toBeHidden();
  await expect(projectRow(page, "ferry")).toBeVisible();
});

test("a button that is pressed while directories are suggested does not move away from under the pointer", async (
  { app, page },
) => {
  /** @type {(() => void)[]} */
  const held = [];
  await routeSocket(page, (socket) => {
    const server = socket.connectToServer();
    server.onMessage((message) => void (JSON.parse(String(message)).type === "path:completions"
      ? held.push(() => socket.send(message))
      : socket.send(message)));
  });
  for (const name of ["ferry-api", "ferry-web"]) app.directory(name);
  const path = app.directory("ferry");
  await page.goto(app.link);
  await page.locator(".projects .section-title [data-command=add-project]").click();
  const dialog = page.getByRole("dialog", { name: "Add project" });
  await dialog.getByRole("combobox").fill(path);
  const button = dialog.getByRole("button", { name: "Add project" });
  await button.hover();
  await expect.poll(() => held.length).toBeGreaterThan(1);
  const before = await button.boundingBox();
  await page.mouse.down();
  held.forEach((send) => send());
  await page.evaluate(() => new Promise((resolve) => setTimeout(resolve, 200)));
  expect(await button.boundingBox()).toEqual(before);
  await page.mouse.up();
  await expect(dialog).toBeHidden();
  await expect(projectRow(page, "ferry")).toBeVisible();
});

test("a press whose end is never seen does not keep suggestions back", async ({ app, shell }) => {
  for (const name of ["ferry-api", "ferry-web"]) app.directory(name);
  await shell.locator(".projects .section-title [data-command=add-project]").click();
  const dialog = shell.getByRole("dialog", { name: "Add project" });
  const field = dialog.getByRole("combobox");
  await dialog.getByRole("heading").hover();
  // A system menu swallows the end of the press.
  await shell.mouse.down({ button: "right" });
  await field.fill("~/code/ferry-");
  await expect(dialog.getByRole("option")).toHaveText(["ferry-api/", "ferry-web/"]);
  await shell.mouse.up({ button: "right" });
  await shell.mouse.down();
  await field.focus();
  await shell.keyboard.type("w");
  await expect(dialog.getByRole("option")).toHaveText(["ferry-web/"]);
});

test("TC-1.2a: the first-run page adds a directory by keyboard alone", async ({ app, shell }) => {
  app.directory("ferry");
  await expect(shell.getByRole("combobox", { name: "Directory" })).toBeFocused();
  await shell.keyboard.type("code/fer");
  await expect(shell.getByRole("option")).toHaveText(["ferry/"]);
  await shell.keyboard.press("Tab");
  await shell.keyboard.press("Enter");
  await expect(projectRow(shell, "ferry")).toBeVisible();
});

test("TC-1.2b: Enter means what was typed, not the completion that is offered", async ({ app, shell }) => {
  app.directory("atlas-api");
  await addProject(shell, app.directory("ferry"));
  await shell.locator(".section-title [data-command=add-project]").click();
  const dialog = shell.getByRole("dialog", { name: "Add project" });
  const field = dialog.getByRole("combobox");
  await field.fill("~/code/at");
  await expect(dialog.getByRole("option")).toHaveText(["atlas-api/"]);
  await field.press("Enter");
  await expect(dialog.getByRole("alert")).toHaveText("Directory does not exist");
  expect(await names(shell)).toEqual(["ferry"]);
  await field.fill("~/code/atl");
  await expect(dialog.getByRole("option")).toHaveText(["atlas-api/"]);
  await field.press("ArrowDown");
  await expect(dialog.getByRole("option")).toHaveAttribute("aria-selected", "true");
  await field.press("Enter");
  await expect(projectRow(shell, "atlas-api")).toBeVisible();
});

test("a directory is completed whatever the case it is typed in", async ({ app, shell }) => {
  app.directory("Atlas");
  await expect(shell.getByRole("combobox", { name: "Directory" })).toBeFocused();
  await shell.keyboard.type("code/atl");
  await expect(shell.getByRole("option")).toHaveText(["Atlas/"]);
  await shell.keyboard.press("Tab");
  await expect(shell.getByRole("combobox")).toHaveValue("~/code/Atlas/");
});

test("Enter on a field nobody touched adds nothing and asks for a directory", async ({ shell }) => {
  await expect(shell.getByRole("combobox", { name: "Directory" })).toBeFocused();
  await shell.keyboard.press("Enter");
  await expect(shell.getByRole("alert").filter({ hasText: "Type or choose a directory" })).toBeVisible();
  await shell.locator("#no-projects [data-command=add-project]").click();
  const dialog = shell.getByRole("dialog", { name: "Add project" });
  await expect(dialog.getByRole("combobox")).toHaveValue("");
  await shell.keyboard.press("Enter");
  await expect(dialog.getByRole("alert")).toHaveText("Type or choose a directory");
  await shell.keyboard.press("Escape");
  await shell.reload();
  await expect(shell.getByText("No projects yet.")).toBeVisible();
});

test("TC-1.2b: a directory that is not there is refused in place", async ({ app, shell }) => {
  await shell.locator("#no-projects [data-command=add-project]").click();
  const dialog = shell.getByRole("dialog", { name: "Add project" });
  for (const path of [join(app.home, "nowhere"), join(app.data, "agents.json")]) {
    await dialog.getByRole("combobox").fill(path);
    await dialog.getByRole("button", { name: "Add project" }).click();
    await expect(dialog.getByRole("alert")).toHaveText("Directory does not exist");
    await expect(dialog.getByRole("combobox")).toHaveAttribute("aria-invalid", "true");
  }
  await dialog.getByRole("combobox").press("Escape");
  expect(await names(shell)).toEqual([]);
});

test("TC-1.2c: cancelling changes nothing", async ({ app, shell }) => {
  await shell.locator("#no-projects [data-command=add-project]").click();
  const dialog = shell.getByRole("dialog", { name: "Add project" });
  await dialog.getByRole("combobox").fill(app.directory("ferry"));
  await dialog.getByRole("button", { name: "Cancel" }).click();
  await expect(dialog).toBeHidden();
  await shell.locator("#no-projects [data-command=add-project]").click();
  await dialog.getByRole("combobox").press("Escape");
  await expect(dialog).toBeHidden();
  await shell.reload();
  await expect(shell.getByText("No projects yet.")).toBeVisible();
});

test("TC-1.2d: the same directory is refused under every name it has", async ({ app, shell }) => {
  const path = app.directory("ferry");
  symlinkSync(path, join(app.home, "code", "link"));
  await addProject(shell, path);
  for (const other of [
    path,
    `${path}/`,
    join(app.home, "code", "x", "..", "ferry").replace("/code/", "/code/../code/"),
    "~/code/ferry",
    join(app.home, "code", "link"),
  ]) {
    await shell.locator(".projects .section-title [data-command=add-project]").click();
    const dialog = shell.getByRole("dialog", { name: "Add project" });
    await dialog.getByRole("combobox").fill(other);
    await dialog.getByRole("button", { name: "Add project" }).click();
    await expect(dialog.getByRole("alert"), other).toHaveText("Project already added");
    await dialog.getByRole("combobox").press("Escape");
  }
  expect(await names(shell)).toEqual(["ferry"]);
});

test("TC-1.2a, TC-1.3a: a removed project that is added again has its sessions back", async ({ app, shell }) => {
  const path = app.directory("ferry");
  await addProject(shell, path);
  const frame = await newSession(shell, "ferry");
  await send(frame, "hello there");
  await finished(frame);
  await expect(sessionRow(shell, "hello there")).toBeVisible();
  await projectRow(shell, "ferry").click({ button: "right" });
  await shell.getByRole("menuitem", { name: "Remove from sidebar" }).click();
  await expect(projectRow(shell, "ferry")).toBeHidden();
  await shell.reload();
  await expect(shell.getByText("No projects yet.")).toBeVisible();
  await addProject(shell, app.directory("atlas"));
  await addProject(shell, path);
  await expect(sessionRow(shell, "hello there")).toBeVisible();
  await expect(shell.locator("#tree [role=treeitem]")).toHaveText([
    /^ferry/,
    /^hello there/,
    /^atlas/,
    /^No sessions yet/,
  ]);
});

test("a project removed by mistake is back with Undo", async ({ app, shell }) => {
  await addProject(shell, app.directory("ferry"));
  await projectRow(shell, "ferry").focus();
  await shell.keyboard.press("Shift+F10");
  await shell.getByRole("menuitem", { name: "Remove from sidebar" }).click();
  await shell.getByRole("button", { name: "Undo" }).click();
  await expect(projectRow(shell, "ferry")).toBeVisible();
});

test("Undo of a removal brings back the tabs it closed, and focus is never lost", async ({ app, shell }) => {
  await addProject(shell, app.directory("ferry"));
  await addProject(shell, app.directory("atlas"));
  for (const [project, text] of [["ferry", "hello one"], ["atlas", "hello two"], ["ferry", "hello three"]]) {
    const frame = await newSession(shell, project ?? "");
    await send(frame, text ?? "");
    await finished(frame);
    await expect(tab(shell, text ?? "")).toBeVisible();
  }
  await projectRow(shell, "ferry").focus();
  await shell.keyboard.press("Shift+F10");
  await shell.getByRole("menuitem", { name: "Remove from sidebar" }).click();
  await expect(shell.locator(".tab .tab-title")).toHaveText(["hello two"]);
  await expect(projectRow(shell, "atlas")).toBeFocused();
  await shell.getByRole("button", { name: "Undo" }).click();
  await expect(projectRow(shell, "ferry")).toBeFocused();
  await expect(shell.locator(".tab .tab-title")).toHaveText(["hello one", "hello two", "hello three"]);
  await expect(tab(shell, "hello three")).toHaveAttribute("data-current", "");
  await expect(current(shell).getByText("Hello from the agent.")).toBeVisible();
});

test("removing a project with a running turn warns that it will be stopped, and stops it", async ({ app, shell }) => {
  const path = app.directory("ferry");
  await addProject(shell, path);
  await send(await newSession(shell, "ferry"), "hold on");
  await expect(sessionRow(shell, "hold on").getByRole("img", { name: "Working" })).toBeVisible();
  const remove = async () => {
    await projectRow(shell, "ferry").click({ button: "right" });
    await shell.getByRole("menuitem", { name: "Remove from sidebar" }).click();
  };
  const dialog = shell.getByRole("dialog", { name: "Remove project" });
  await remove();
  await expect(dialog).toContainText("A turn is still running in it and will be stopped.");
  await dialog.getByRole("button", { name: "Cancel" }).click();
  await expect(dialog).toBeHidden();
  await expect(projectRow(shell, "ferry")).toBeVisible();
  await remove();
  await dialog.getByRole("button", { name: "Remove" }).click();
  await expect(projectRow(shell, "ferry")).toBeHidden();
  await addProject(shell, path);
  await expect(sessionRow(shell, "hold on")).toBeVisible();
  await expect(sessionRow(shell, "hold on").getByRole("img", { name: "Working" })).toBeHidden();
  await sessionRow(shell, "hold on").click();
  // `send` counts messages, so the history has to be there.
  await expect(current(shell).locator(".user-turn")).toHaveCount(1);
  // It accepts messages again.
  await send(current(shell), "hello again");
  await expect(current(shell).getByText("Hello from the agent.")).toBeVisible();
});

test.describe("a phone", () => {
  test.use({ viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true });
  test("TC-1.3a: a project is removed by touch, with nothing to hover", async ({ app, shell }) => {
    app.directory("ferry");
    await shell.getByRole("combobox", { name: "Directory" }).fill("~/code/ferry");
    await shell.getByRole("button", { name: "Add project" }).tap();
    await shell.getByRole("button", { name: /Projects and sessions/ }).tap();
    await projectRow(shell, "ferry").getByRole("button", { name: "More" }).tap();
    await shell.getByRole("menuitem", { name: "Remove from sidebar" }).tap();
    await expect(projectRow(shell, "ferry")).toBeHidden();
  });
});

test("TC-1.3b: removing a project closes its tabs and no others", async ({ app, shell }) => {
  await addProject(shell, app.directory("ferry"));
  await addProject(shell, app.directory("atlas"));
  const frame = await newSession(shell, "ferry");
  await send(frame, "hello ferry");
  await finished(frame);
  await expect(tab(shell, "hello ferry")).toBeVisible();
  await send(await newSession(shell, "atlas"), "hello atlas");
  await expect(tab(shell, "hello atlas")).toBeVisible();
  await projectRow(shell, "ferry").click({ button: "right" });
  await shell.getByRole("menuitem", { name: "Remove from sidebar" }).click();
  await expect(tab(shell, "hello ferry")).toHaveCount(0);
  await expect(projectRow(shell, "ferry")).toHaveCount(0);
  await expect(sessionRow(shell, "hello ferry")).toHaveCount(0);
  await expect(sessionRow(shell, "hello atlas")).toBeVisible();
  await expect(tab(shell, "hello atlas")).toBeVisible();
  await expect(shell.locator("iframe.portlet")).toHaveCount(1);
  await expect(current(shell).getByText("Hello from the agent.")).toBeVisible();
});

test("TC-1.4a: collapsing hides the sessions, by pointer and by keyboard", async ({ app, shell }) => {
  const row = await addProject(shell, app.directory("ferry"));
  await newSession(shell, "ferry");
  await expect(sessionRow(shell, "New Session")).toBeVisible();
  await row.click();
  await expect(sessionRow(shell, "New Session")).toBeHidden();
  await expect(row).toHaveAttribute("aria-expanded", "false");
  await shell.keyboard.press("ArrowRight");
  await expect(sessionRow(shell, "New Session")).toBeVisible();
  await shell.keyboard.press("ArrowDown");
  await expect(sessionRow(shell, "New Session")).toBeFocused();
  await shell.keyboard.press("ArrowLeft");
  await shell.keyboard.press("ArrowLeft");
  await expect(row).toHaveAttribute("aria-expanded", "false");
});

test("TC-1.4b: what is collapsed stays so over a restart", async ({ app, shell, quiet }) => {
  await addProject(shell, app.directory("ferry"));
  const row = await addProject(shell, app.directory("atlas"));
  await row.click();
  await expect(row).toHaveAttribute("aria-expanded", "false");
  quiet.serverMayGo = true;
  await app.restart();
  await shell.reload();
  await expect(projectRow(shell, "atlas")).toHaveAttribute("aria-expanded", "false");
  await expect(projectRow(shell, "ferry")).toHaveAttribute("aria-expanded", "true");
  const stored = await shell.evaluate(() => JSON.parse(localStorage.getItem("liminal:collapsed") ?? "{}"));
  expect(Object.values(stored)).toEqual([true]);
});

test("TC-1.4b: two windows keep what each of them collapsed", async ({ app, shell, context }) => {
  await addProject(shell, app.directory("ferry"));
  await addProject(shell, app.directory("atlas"));
  const other = await context.newPage();
  await other.goto(app.link);
  await expect(projectRow(other, "atlas")).toBeVisible();
  await projectRow(shell, "ferry").click();
  await expect(projectRow(other, "ferry")).toHaveAttribute("aria-expanded", "false");
  await projectRow(other, "atlas").click();
  await expect(projectRow(shell, "atlas")).toHaveAttribute("aria-expanded", "false");
  await projectRow(shell, "ferry").click();
  await expect(projectRow(other, "ferry")).toHaveAttribute("aria-expanded", "true");
  await other.reload();
  await expect(projectRow(other, "ferry")).toHaveAttribute("aria-expanded", "true");
  await expect(projectRow(other, "atlas")).toHaveAttribute("aria-expanded", "false");
});

test("two windows: a project added or removed in one shows in the other", async ({ app, shell, context }) => {
  const other = await context.newPage();
  await other.goto(app.link);
  await expect(other.getByText("No projects yet.")).toBeVisible();
  await addProject(shell, app.directory("ferry"));
  await expect(projectRow(other, "ferry")).toBeVisible();
  await projectRow(other, "ferry").click({ button: "right" });
  await other.getByRole("menuitem", { name: "Remove from sidebar" }).click();
  await expect(projectRow(shell, "ferry")).toBeHidden();
});

test("a window finds its server again without a reload, and shows what changed meanwhile", async (
  { app, shell, quiet, context },
) => {
  await addProject(shell, app.directory("ferry"));
  await shell.evaluate(() => void (/** @type {any} */ (window).kept = true));
  quiet.serverMayGo = true;
  await app.stop();
  await expect(shell.getByText("Liminal Builder is not running. Trying again…")).toBeVisible();
  await app.start();
  await expect(shell.getByText("Liminal Builder is not running. Trying again…")).toBeHidden();
  const other = await context.newPage();
  await other.goto(app.link);
  await addProject(other, app.directory("atlas"));
  await expect(projectRow(shell, "atlas")).toBeVisible();
  expect(await shell.evaluate(() => /** @type {any} */ (window).kept)).toBe(true);
});
