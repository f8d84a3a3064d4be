// windows.spec.js: two windows of one workspace, and a window without a server.
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
import { writeSessions } from "./saved-history.js";

/** @typedef {import("@playwright/test").Page} Page */

/** @param {Page} page */
const titles = (page) => page.locator(".tab .tab-title").allTextContents();
/** @param {Page} page @param {string} project @param {string} text */
async function sendIn(page, project, text) {
  const frame = await newSession(page, project);
  await send(frame, text);
  await expect(tab(page, text)).toBeVisible();
  await finished(frame);
}

test("each window keeps its own tabs over a reload, and a new one begins with those of all", async (
  { startApp, page: shell, context },
) => {
  test.slow();
  const app = await startApp();
  await app.stop();
  writeSessions(app, ["hello one", "hello two", "hello three"]);
  await app.start();
  await shell.goto(app.link);
  for (const text of ["hello one", "hello two"]) await sessionRow(shell, text).click();
  const other = await context.newPage();
  await other.goto(app.link);
  await expect.poll(() => titles(other)).toEqual(["hello one", "hello two"]);
  await sessionRow(shell, "hello three").click();
  await expect(tab(shell, "hello three")).toHaveAttribute("data-current", "");
  await tab(other, "hello one").click();
  await expect(tab(other, "hello one")).toHaveAttribute("data-current", "");
  await tab(other, "hello two").click({ button: "middle" });
  await expect.poll(() => titles(other)).toEqual(["hello one"]);
  await shell.reload();
  await expect.poll(() => titles(shell)).toEqual(["hello one", "hello two", "hello three"]);
  await expect(tab(shell, "hello three")).toHaveAttribute("data-current", "");
  await other.reload();
  await expect.poll(() => titles(other)).toEqual(["hello one"]);
  await tab(shell, "hello two").click();
  await expect(tab(shell, "hello two")).toHaveAttribute("data-current", "");
  const third = await context.newPage();
  await third.goto(app.link);
  await expect.poll(() => titles(third)).toEqual(["hello one", "hello two", "hello three"]);
  await expect(tab(third, "hello two")).toHaveAttribute("data-current", "");
});

test("TC-1.3b: a project removed while a window was disconnected is gone from it, with its tabs, on reconnect", async (
  { app, shell, context, quiet },
) => {
  await addProject(shell, app.directory("ferry"));
  await addProject(shell, app.directory("atlas"));
  await sendIn(shell, "atlas", "hello atlas");
  await sendIn(shell, "ferry", "hello ferry");
  const other = await context.newPage();
  await other.goto(app.link);
  await expect(sessionRow(other, "hello ferry")).toBeVisible();
  quiet.serverMayGo = true;
  // Only this window does not find the server again.
  await shell.route("**/api/health", (route) => route.abort());
  await app.restart();
  await expect(shell.locator("#offline")).toBeVisible();
  await expect(other.locator("#offline")).toBeHidden();
  await projectRow(other, "ferry").click({ button: "right" });
  await other.getByRole("menuitem", { name: "Remove from sidebar" }).click();
  await expect(projectRow(other, "ferry")).toHaveCount(0);
  await shell.unroute("**/api/health");
  await expect(shell.locator("#offline")).toBeHidden();
  await expect(projectRow(shell, "ferry")).toHaveCount(0);
  await expect.poll(() => titles(shell)).toEqual(["hello atlas"]);
  await expect(shell.locator("iframe.portlet")).toHaveCount(1);
  await expect(tab(shell, "hello atlas")).toHaveAttribute("data-current", "");
  await shell.keyboard.press("Control+k");
  await expect(shell.locator(".palette-option", { hasText: "hello atlas" })).toBeVisible();
  await expect(shell.locator(".palette-option", { hasText: "hello ferry" })).toHaveCount(0);
});

test("without the server nothing is shown as working, and it is shown again on reconnect", async (
  { app, shell, quiet },
) => {
  await addProject(shell, app.directory("ferry"));
  await sendIn(shell, "ferry", "hello one");
  const frame = await newSession(shell, "ferry");
  await send(frame, "hold on");
  await expect(frame.locator(".message")).toHaveText("The first part.");
  const row = sessionRow(shell, "hold on");
  const working = shell.getByRole("img", { name: "Working" });
  await expect(row.getByRole("img", { name: "Working" })).toBeVisible();
  await expect(shell.locator("#working-count")).toHaveText("1 working");
  await expect(shell.locator("#footer")).toContainText("Scripted: Connected");
  quiet.serverMayGo = true;
  await app.stop("SIGKILL");
  await expect(shell.locator("#offline")).toBeVisible();
  await expect(shell.locator("#working-count")).toBeEmpty();
  await expect(working).toHaveCount(0);
  await expect(shell.locator('.glyph[data-attention="working"]')).toHaveCount(0);
  await expect(shell.locator("#footer")).toContainText("Scripted: Unknown");
  await expect(shell.locator('#footer .dot[data-state="connected"]')).toHaveCount(0);
  await app.start();
  await expect(shell.locator("#offline")).toBeHidden();
  await expect(shell.locator("#footer")).not.toContainText("Unknown");
});

test("a session is complete after a lost connection, even if an old message comes first", async ({ app, page }) => {
  let lastUpsert = "";
  let opens = 0;
  let lose = false;
  await routeSocket(page, (socket) => {
    const server = socket.connectToServer();
    server.onMessage((message) => {
      const { type } = JSON.parse(String(message));
      if (type === "session:upsert") lastUpsert = String(message);
      if (type !== "session:history" || !lose) return socket.send(message);
      lose = false;
      opens += 1;
      socket.send(lastUpsert);
      void socket.close();
    });
  });
  await page.goto(app.link);
  await addProject(page, app.directory("ferry"));
  await sendIn(page, "ferry", "hello one");
  await send(current(page), "hello two");
  await finished(current(page));
  await tab(page, "hello one").click({ button: "middle" });
  await expect(page.locator(".tab")).toHaveCount(0);
  lose = true;
  await sessionRow(page, "hello one").click();
  await expect.poll(() => opens).toBe(1);
  await expect(current(page).locator(".user-text")).toHaveText(["hello one", "hello two"]);
  await expect(current(page).locator(".message")).toHaveCount(2);
});

test("a theme set in one window is shown in the others, including their sessions", async ({ app, shell, context }) => {
  await addProject(shell, app.directory("ferry"));
  await sendIn(shell, "ferry", "hello one");
  const other = await context.newPage();
  await other.goto(app.link);
  await expect(current(other).locator(".user-text")).toHaveText("hello one");
  await expect(other.locator("html")).toHaveAttribute("data-theme", "dark");
  await shell.getByRole("button", { name: "Change theme" }).click();
  await expect(other.locator("html")).toHaveAttribute("data-theme", "light");
  await expect(current(other).locator("html")).toHaveAttribute("data-theme", "light");
  await shell.getByRole("button", { name: "Change theme" }).click();
  await expect(other.locator("html")).toHaveAttribute("data-theme", "dark");
});

test("without workers, the connection runs in the page itself", async ({ app, page }) => {
  await page.route("**/websocket-worker.js", (route) => route.abort());
  await page.goto(app.link);
  await addProject(page, app.directory("ferry"));
  const frame = await newSession(page, "ferry");
  await send(frame, "hello");
  await expect(frame.locator(".message")).toHaveText("Hello from the agent.");
});
