import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { addProject, current, expect, finished, newSession, projectRow, routeSocket, send, test } from "./app.js";

/** @param {import("@playwright/test").Page} page */
const notices = (page) => page.locator(".lasting-notice");

test("a damaged file is reported until dismissed, on the first page too, and not again in this tab", async (
  { page, startApp },
) => {
  const app = await startApp();
  await app.stop();
  writeFileSync(join(app.data, "projects.json"), "{ not json", { mode: 0o600 });
  await app.start();
  await page.goto(app.link);
  await expect(page.getByRole("heading", { name: "Add your first project" })).toBeVisible();
  await expect(notices(page)).toContainText("projects.json");
  await page.reload();
  await expect(notices(page)).toHaveCount(1);
  await page.getByRole("button", { name: /^Dismiss/ }).click();
  await expect(notices(page)).toHaveCount(0);
  await page.reload();
  await expect(page.getByRole("heading", { name: "Add your first project" })).toBeVisible();
  await expect(page.locator("#footer")).toContainText("Scripted");
  await expect(notices(page)).toHaveCount(0);
});

test("a server of another version is reported when it comes back, with a Reload button", async (
  { app, page, quiet },
) => {
  let connections = 0;
  await routeSocket(page, (socket) => {
    const server = socket.connectToServer();
    connections += 1;
    const later = connections > 1;
    server.onMessage((message) =>
      socket.send(later ? String(message).replace(/("type":"server:hello","version":")[^"]+/, "$199.0.0") : message));
  });
  await page.goto(app.link);
  await addProject(page, app.directory("ferry"));
  await expect(notices(page)).toHaveCount(0);
  quiet.serverMayGo = true;
  await app.restart();
  await expect(notices(page)).toContainText("Liminal Builder 99.0.0 is running.");
  await expect(page.locator("#offline")).toBeHidden();
  await page.unrouteAll();
  await notices(page).getByRole("button", { name: "Reload" }).click();
  await expect(projectRow(page, "ferry")).toBeVisible();
  await expect(notices(page)).toHaveCount(0);
});

test("Try now, focus and a restored network check for the server at once", async ({ app, shell, quiet }) => {
  // A stopped clock, so that no pause ever ends by itself.
  await shell.clock.install();
  await shell.reload();
  await addProject(shell, app.directory("ferry"));
  quiet.serverMayGo = true;
  const bar = shell.locator("#offline");
  let hours = 0;
  for (const come of [
    () => bar.getByRole("button", { name: "Try now" }).click(),
    () => shell.evaluate(() => dispatchEvent(new Event("focus"))),
    () => shell.evaluate(() => dispatchEvent(new Event("online"))),
  ]) {
    await shell.clock.pauseAt(new Date(Date.now() + 3_600_000 * (hours += 1)));
    await app.stop();
    await expect(bar).toContainText("Liminal Builder is not running. Trying again…");
    await app.start();
    await come();
    await expect(bar).toBeHidden();
    await shell.clock.resume();
  }
});

test("on a phone the bar of a lost server is over the open sidebar", async ({ app, shell, quiet }) => {
  await addProject(shell, app.directory("ferry"));
  await shell.setViewportSize({ width: 390, height: 844 });
  await shell.locator(".top-bar [data-command=sidebar]").click();
  await expect(projectRow(shell, "ferry")).toBeVisible();
  quiet.serverMayGo = true;
  await app.stop();
  const button = shell.locator("#offline").getByRole("button", { name: "Try now" });
  await expect(button).toBeVisible();
  await button.click({ trial: true });
  const [bar, footer] = await Promise.all([
    shell.locator("#offline").boundingBox(),
    shell.locator("#footer").boundingBox(),
  ]);
  expect((footer?.y ?? 0) + (footer?.height ?? 0)).toBeLessThanOrEqual(bar?.y ?? 0);
});

test("HTML that an agent writes is shown quietly as text", async ({ app, shell }) => {
  await addProject(shell, app.directory("ferry"));
  const frame = await newSession(shell, "ferry");
  await send(frame, "markup as text");
  await finished(frame);
  const block = current(shell).locator("p.html");
  await expect(block).toContainText("<details>");
  await expect(block).toHaveCSS("white-space", "pre-wrap");
  await expect(block).toHaveCSS("font-family", /mono/i);
});

test("a window that is signed out shows how to sign in, and returns once it is allowed", async (
  { app, shell, context, quiet },
) => {
  await addProject(shell, app.directory("ferry"));
  quiet.serverMayGo = true;
  const cookies = await context.cookies();
  await context.clearCookies();
  await app.restart();
  const bar = shell.locator("#offline");
  await expect(bar).toContainText("Run liminal-builder open");
  await context.addCookies(cookies);
  // It tries by itself too, perhaps before the click.
  await Promise.any([bar.getByRole("button", { name: "Try now" }).click(), expect(bar).toBeHidden()]);
  await expect(bar).toBeHidden();
  await expect(projectRow(shell, "ferry")).toBeVisible();
});

test("a browser that never signed in is shown how to", async ({ app, page, quiet }) => {
  // The browser itself reports the refusal.
  quiet.serverMayGo = true;
  await page.goto(new URL("/", app.link).href);
  await expect(page.getByText("This browser has not been let in yet.")).toBeVisible();
  await expect(page.getByText("liminal-builder open", { exact: true })).toBeVisible();
});
