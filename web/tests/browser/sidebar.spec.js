// sidebar.spec.js: who needs me, who is finished, and rows that stay where they are.
import { addProject, current, expect, finished, newSession, send, sessionRow, tab, test } from "./app.js";
import { writeSessions } from "./saved-history.js";

/** @typedef {import("@playwright/test").Page} Page */

/**
 * Sessions whose turns are held, and another one in view.
 * @param {Page} page
 * @param {import("./app.js").App} app
 * @param {string[]} messages
 */
async function holdAll(page, app, messages) {
  for (const name of ["ferry", "atlas"]) await addProject(page, app.directory(name));
  for (const one of messages) {
    const frame = await newSession(page, "ferry");
    await send(frame, `hold ${one}`);
    await expect(frame.locator(".message")).toHaveText("The first part.");
  }
  await newSession(page, "atlas");
}

/** @param {Page} page @param {string} selector */
const titles = (page, selector) => page.locator(`${selector} .inbox-title`).allTextContents();

test("Needs you counts what waits for the user; what is finished is listed apart and can be marked read", async (
  { app, shell },
) => {
  await holdAll(shell, app, ["one", "two"]);
  app.release("ferry");
  await expect.poll(async () => (await titles(shell, "#finished")).sort()).toEqual(["hold one", "hold two"]);
  await expect(shell.locator("#inbox")).toBeHidden();
  await expect(shell).toHaveTitle("Liminal Builder");
  await send(current(shell), "stumble");
  await expect(current(shell).locator(".message")).toHaveText("The first part.");
  await newSession(shell, "ferry");
  app.release("atlas");
  await expect.poll(() => titles(shell, "#inbox")).toEqual(["stumble"]);
  await expect(shell.locator("#inbox .count-badge")).toHaveText("1");
  await expect(shell).toHaveTitle("(1) Liminal Builder");
  expect((await titles(shell, "#finished")).sort()).toEqual(["hold one", "hold two"]);
  await shell.getByRole("button", { name: "Mark all read" }).click();
  await expect(shell.locator("#finished")).toBeHidden();
  await expect(sessionRow(shell, "hold one").locator('.glyph[data-attention="idle"]')).toBeAttached();
  expect(await titles(shell, "#inbox")).toEqual(["stumble"]);
});

test("a long project name is cut in the list of finished sessions and does not cover their ages", async (
  { app, shell },
) => {
  const long = "a-project-with-quite-a-long-name-that-does-not-fit";
  await addProject(shell, app.directory(long));
  await send(await newSession(shell, long), "hold one");
  await newSession(shell, long);
  app.release(long);
  const row = shell.locator("#finished .inbox-row");
  await expect(row).toHaveCount(1);
  const boxes = await Promise.all([".inbox-title", ".inbox-project", ".inbox-time"].map((part) =>
    row.locator(part).boundingBox()));
  const edges = boxes.flatMap((box) => [box?.x ?? 0, (box?.x ?? 0) + (box?.width ?? 0)]);
  expect(edges).toEqual([...edges].sort((one, other) => one - other));
});

test("the key for the next one visits each unread session once, however fast it is pressed", async ({ app, shell }) => {
  await holdAll(shell, app, ["one", "two", "three"]);
  app.release("ferry");
  await expect.poll(() => titles(shell, "#finished")).toHaveLength(3);
  const listed = await titles(shell, "#finished");
  await shell.evaluate(() => {
    const own = /** @type {any} */ (window);
    own.visited = [];
    new MutationObserver(() => {
      const title = document.querySelector(".tab[data-current] .tab-title")?.textContent;
      if (title !== own.visited.at(-1)) own.visited.push(title);
    }).observe(document.querySelector("#tab-bar") ?? document, { subtree: true, attributes: true, childList: true });
  });
  for (let at = 0; at < 3; at += 1) await shell.keyboard.press("Control+j");
  await expect.poll(() => shell.evaluate(() => /** @type {any} */ (window).visited.at(-1))).toBe(listed.at(-1));
  const visited = await shell.evaluate(() => /** @type {any} */ (window).visited);
  // Keys pressed within one frame are drawn once.
  expect(listed.filter((title) => visited.includes(title))).toEqual(visited);
});

test("Needs you, Finished and the project in view stay while the tree scrolls", async ({ startApp, page }) => {
  const app = await startApp();
  await app.stop();
  writeSessions(app, Array.from({ length: 60 }, (_, at) => `Session ${at}`));
  await app.start();
  await page.goto(app.link);
  await page.locator(".session-row").nth(3).click();
  await expect(current(page).locator(".message")).toBeVisible();
  await send(current(page), "hold it");
  await expect(current(page).locator(".message").last()).toHaveText("The first part.");
  await page.locator(".session-row").nth(5).click();
  app.release("ferry");
  await page.mouse.move(900, 500);
  await expect(page.locator("#finished .inbox-row")).toHaveCount(1);
  await page.locator(".fold-row").click();
  await page.locator(".sidebar-scroll").evaluate((node) => node.scrollTo(0, 800));
  await expect(page.locator("#finished .inbox-row")).toBeInViewport();
  const header = page.locator(".project-row");
  await expect(header).toBeInViewport({ ratio: 1 });
  const [scroll, row] = [await page.locator(".sidebar-scroll").boundingBox(), await header.boundingBox()];
  expect(Math.abs((row?.y ?? 0) - (scroll?.y ?? 0))).toBeLessThanOrEqual(1);
  // A row that gets focus is not hidden below it.
  await page.locator(".session-row").nth(20).focus();
  const focused = await page.locator(".session-row").nth(20).boundingBox();
  expect(focused?.y ?? 0).toBeGreaterThanOrEqual((row?.y ?? 0) + (row?.height ?? 0));
});

test("rows keep their places under the pointer, show new states there, and move when it has left", async (
  { app, shell },
) => {
  await addProject(shell, app.directory("ferry"));
  for (const word of ["a", "b"]) {
    const frame = await newSession(shell, "ferry");
    await send(frame, `hello ${word}`);
    await finished(frame);
  }
  const rows = () => shell.locator(".session-row .row-title").allTextContents();
  await expect.poll(rows).toEqual(["hello b", "hello a"]);
  await tab(shell, "hello a").click();
  await current(shell).locator("textarea").fill("hold on");
  await sessionRow(shell, "hello b").hover();
  await shell.keyboard.press("Enter");
  await expect(sessionRow(shell, "hello a").getByRole("img", { name: "Working" })).toBeVisible();
  expect(await rows()).toEqual(["hello b", "hello a"]);
  await shell.mouse.move(900, 500);
  await expect.poll(rows).toEqual(["hello a", "hello b"]);
  // The same while the rows are navigated by keyboard.
  app.release("ferry");
  await finished(current(shell));
  await tab(shell, "hello b").click();
  await current(shell).locator("textarea").fill("hold on");
  await sessionRow(shell, "hello a").focus();
  await shell.keyboard.press("ArrowDown");
  await expect(sessionRow(shell, "hello b")).toBeFocused();
  await current(shell).locator("form").evaluate((form) => /** @type {HTMLFormElement} */ (form).requestSubmit());
  await expect(current(shell).locator(".user-turn")).toHaveCount(2);
  await finished(current(shell));
  expect(await rows()).toEqual(["hello a", "hello b"]);
  await current(shell).locator("textarea").focus();
  await expect.poll(rows).toEqual(["hello b", "hello a"]);
});
