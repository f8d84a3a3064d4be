import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { expect, test } from "./app.js";

/** @param {import("@playwright/test").Page} page */
async function openSettings(page) {
  await page.locator("#footer").getByRole("button", { name: "Settings" }).click();
  return page.getByRole("dialog", { name: "Settings" });
}

test("Settings lists the browsers, and a revoked one is signed out at once", async ({ app, shell, browser }) => {
  const other = await (await browser.newContext()).newPage();
  await other.goto(app.link);
  await expect(other.locator("#sidebar")).toBeVisible();
  await expect(other.locator("#offline")).toBeHidden();

  const dialog = await openSettings(shell);
  const rows = dialog.locator(".browser-list > li");
  await expect(rows).toHaveCount(2);
  await expect(rows.nth(0)).toContainText("This browser");
  await expect(rows.nth(0)).toContainText(/Chrom\w+ on Linux/);
  await expect(rows.nth(1)).not.toContainText("This browser");
  await expect(rows.nth(1)).toContainText("Added just now · used just now");

  await rows.nth(1).getByRole("button", { name: "Revoke" }).click();
  await expect(rows).toHaveCount(1);
  await expect(dialog.locator(":focus")).toHaveCount(1);
  await expect(other.locator("#offline")).toContainText("This browser is no longer signed in");
  const answer = await other.reload();
  expect(answer?.status()).toBe(403);
  await expect(other.getByText("This browser has not been let in yet.")).toBeVisible();
  // The browser that revoked it goes on, and the other returns by the link.
  await expect(shell.locator("#offline")).toBeHidden();
  await other.goto(app.link);
  await expect(other.locator("#sidebar")).toBeVisible();
  await other.context().close();
});

test("revoking this browser itself takes a second click", async ({ app, browser }) => {
  const page = await (await browser.newContext()).newPage();
  await page.goto(app.link);
  const dialog = await openSettings(page);
  await dialog.getByRole("button", { name: /Revoke .*, this browser/ }).click();
  await expect(page.locator("#offline")).toBeHidden();
  await dialog.getByRole("button", { name: "Sign out this browser?" }).click();
  await expect(page.locator("#offline")).toContainText("This browser is no longer signed in");
  expect((await page.reload())?.status()).toBe(403);
  await page.context().close();
});

test("no script of the page creates HTML or loads scripts except through the policies of its modules", async (
  { app, browser },
) => {
  const page = await (await browser.newContext()).newPage();
  await page.goto(app.link);
  await expect(page.locator("#sidebar")).toBeVisible();
  const refused = await page.evaluate(() => {
    const own = /** @type {any} */ (window);
    /** @type {[string, () => void][]} */
    const ways = [
      ["innerHTML", () => void (document.body.innerHTML = "<b>x</b>")],
      ["insertAdjacentHTML", () => document.body.insertAdjacentHTML("beforeend", "<b>x</b>")],
      ["DOMParser", () => void new DOMParser().parseFromString("<b>x</b>", "text/html")],
      ["Worker", () => void new Worker("/shell/websocket-worker.js")],
      ["script", () => void (document.createElement("script").src = "/shell/main.js")],
      ["srcdoc", () => void (document.createElement("iframe").srcdoc = "<b>x</b>")],
      [
        "another policy",
        () => own.trustedTypes.createPolicy("mine", { createHTML: (/** @type {string} */ text) => text }),
      ],
      [
        "the same policy again",
        () => own.trustedTypes.createPolicy("liminal-worker", { createScriptURL: (/** @type {string} */ url) => url }),
      ],
    ];
    return ways.filter(([, way]) => {
      try {
        way();
        return false;
      } catch (error) {
        return error instanceof TypeError;
      }
    }).map(([name]) => name);
  });
  expect(refused).toEqual([
    "innerHTML",
    "insertAdjacentHTML",
    "DOMParser",
    "Worker",
    "script",
    "srcdoc",
    "another policy",
    "the same policy again",
  ]);
  await page.context().close();
});

test("a browser without Trusted Types shows the page all the same", async ({ app, page }) => {
  // Signs in without a page: one that is still loading frames would be in a mixed state.
  await page.request.get(app.link);
  await page.addInitScript(() => Reflect.deleteProperty(window, "trustedTypes"));
  // Such a browser ignores the directive. Only documents are intercepted: the scripts of a worker do not always arrive
  // when Playwright intercepts them.
  await page.route(({ pathname }) => ["/", "/portlet"].includes(pathname), async (route) => {
    const response = await route.fetch();
    const headers = { ...response.headers() };
    headers["content-security-policy"] = (headers["content-security-policy"] ?? "").replace(
      /; require-trusted-types-for.*/,
      "",
    );
    await route.fulfill({ response, headers });
  });
  await page.goto(new URL("/", app.link).href);
  expect(await page.evaluate(() => "trustedTypes" in window)).toBe(false);
  await expect(page.locator("#sidebar")).toBeVisible();
  await expect(page.locator("#offline")).toBeHidden();
});

test("the service worker of another program on this port gives way to the page", async ({ startApp, page, quiet }) => {
  quiet.serverMayGo = true;
  const worker = `addEventListener("install", () => skipWaiting());
    addEventListener("activate", (event) => event.waitUntil(clients.claim()));
    const page = () => new Response("<title>Old</title>An old page", { headers: { "content-type": "text/html" } });
    addEventListener("fetch", (event) => event.request.mode === "navigate" && event.respondWith(page()));`;
  const old = createServer((request, response) => {
    const isWorker = request.url === "/sw.js";
    response.setHeader("content-type", isWorker ? "text/javascript" : "text/html");
    response.end(isWorker ? worker : "<title>Dev server</title>");
  });
  await new Promise((resolve) => old.listen(0, "127.0.0.1", () => resolve(null)));
  const address = old.address();
  const port = address && typeof address === "object" ? address.port : 0;
  await page.goto(`http://127.0.0.1:${port}/`);
  await page.evaluate(async () => {
    await navigator.serviceWorker.register("/sw.js");
    await navigator.serviceWorker.ready;
  });
  await page.goto(`http://127.0.0.1:${port}/`);
  await expect(page).toHaveTitle("Old");
  old.closeAllConnections();
  await new Promise((resolve) => old.close(() => resolve(null)));

  const app = await startApp({ port });
  expect(app.port).toBe(port);
  await page.goto(app.link);
  await expect(page.locator("#sidebar")).toBeVisible({ timeout: 60_000 });
  await expect.poll(() => page.evaluate(async () => (await navigator.serviceWorker.getRegistrations()).length)).toBe(0);
});

test("the link in a private file signs the browser in", async ({ startApp, page }) => {
  const tools = mkdtempSync(join(tmpdir(), "liminal-tools-"));
  mkdirSync(tools, { recursive: true });
  const opened = join(tools, "opened");
  writeFileSync(
    join(tools, "xdg-open"),
    `#!/bin/sh\necho "$1" > '${opened}.part' && mv '${opened}.part' '${opened}'\n`,
  );
  chmodSync(join(tools, "xdg-open"), 0o755);
  const app = await startApp({
    args: ["--open", "--open-by-file"],
    env: { PATH: [tools, process.env.PATH].join(delimiter) },
  });
  await expect.poll(() => existsSync(opened)).toBe(true);
  const link = readFileSync(opened, "utf8").trim();
  expect(link).toMatch(/^file:\/\/.*\.html$/);
  expect(statSync(new URL(link)).mode & 0o777).toBe(0o600);
  await page.goto(link);
  await expect(page.locator("#sidebar")).toBeVisible();
  expect(page.url()).toBe(new URL("/", app.link).href);
  expect(existsSync(new URL(link))).toBe(false);
});
