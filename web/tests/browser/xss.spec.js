// xss.spec.js: the rendered XSS corpus in a real browser, under the product's policy. Nothing may run, load or
// navigate. The page is written by `cargo test -p rendering safety`; see crates/rendering/tests/data/xss.txt for the
// payloads.
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { expect, test } from "@playwright/test";

const page_file = new URL("../../../target/tmp/xss/corpus.html", import.meta.url);
const payloads_file = new URL("../../../crates/rendering/tests/data/xss.txt", import.meta.url);
const policy =
  "default-src 'self'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
  + "frame-src 'self'; frame-ancestors 'self'; base-uri 'none'; form-action 'none'; object-src 'none'";

/**
 * Opens `html` and tries everything on it. Returns what it did beyond being shown.
 * @param {import("@playwright/test").Page} page
 * @param {string} html
 * @param {Record<string, string>} headers
 */
async function deeds(page, html, headers) {
  const server = createServer((request, response) => {
    if (request.url !== "/") return response.writeHead(204).end();
    response.writeHead(200, { "content-type": "text/html; charset=utf-8", ...headers }).end(html);
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", () => resolve(undefined)));
  const address = /** @type {import("node:net").AddressInfo} */ (server.address());
  const origin = `http://127.0.0.1:${address.port}/`;
  /** @type {string[]} */
  const done = [];
  page.on("dialog", (dialog) => (done.push(`dialog ${dialog.message()}`), void dialog.dismiss()));
  page.on("request", (request) =>
    request.url() !== origin && !/^data:|favicon/.test(request.url()) && done.push(`request ${request.url()}`));
  page.on("popup", (popup) => (done.push("popup"), void popup.close()));
  await page.route((url) => url.origin !== new URL(origin).origin, (route) => route.abort());
  await page.goto(origin, { waitUntil: "load" });
  const found = await page.evaluate(() => {
    const events = [
      "load",
      "error",
      "focus",
      "blur",
      "mouseover",
      "pointerenter",
      "toggle",
      "begin",
      "animationstart",
      "transitionend",
      "input",
    ];
    const handlers = [];
    for (const element of document.querySelectorAll("body *")) {
      for (const { name } of element.attributes) if (
        name.startsWith("on")
        || ["style", "srcdoc", "id", "name"].includes(name)
      ) handlers.push(`${element.localName} ${name}`);
      for (const name of events) element.dispatchEvent(new Event(name, { bubbles: true }));
      // A click on a real link would rightly open it; everything else is clicked.
      if (element instanceof HTMLElement && !element.closest("a[href]")) element.click();
    }
    return handlers;
  });
  await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))));
  done.push(...found.map((handler) => `attribute ${handler}`));
  if (page.url() !== origin) done.push(`navigated to ${page.url()}`);
  server.close();
  return done;
}

test("no payload of the corpus does anything", async ({ page }) => {
  expect(await deeds(page, await readFile(page_file, "utf8"), { "content-security-policy": policy })).toEqual([]);
});

test("no payload of the corpus does anything even without the policy", async ({ page }) => {
  expect(await deeds(page, await readFile(page_file, "utf8"), {})).toEqual([]);
});

test("the same payloads, unrendered, do a lot: the test can see it", async ({ page }) => {
  const lines = (await readFile(payloads_file, "utf8")).split("\n").filter((line) => line.startsWith("<img"));
  expect((await deeds(page, `<!doctype html><body>${lines.join("\n")}`, {})).length).toBeGreaterThan(5);
});
