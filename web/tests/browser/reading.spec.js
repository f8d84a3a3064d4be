// Content stays where the reader has it: across server restarts, while text streams in, on a phone.
import { addProject, current, expect, finished, newSession, send, sessionRow, test } from "./app.js";
import { writeHistory } from "./saved-history.js";

/** @typedef {import("@playwright/test").FrameLocator} FrameLocator */

/** @param {FrameLocator} frame */
const log = (frame) => frame.locator("#log");
/** @param {FrameLocator} frame */
const distance = (frame) => log(frame).evaluate((node) => node.scrollHeight - node.scrollTop - node.clientHeight);
/** The vertical position of a turn in the window. @param {FrameLocator} frame @param {string} text */
const placeOf = (frame, text) =>
  frame.getByText(text, { exact: true }).evaluate((node) => Math.round(node.getBoundingClientRect().top));

test("a restart of the server moves nothing and folds nothing", async ({ app, shell, quiet }) => {
  test.slow();
  await addProject(shell, app.directory("ferry"));
  const frame = await newSession(shell, "ferry");
  for (const text of ["think about it", "explore it", "edit it", "long answer", "long again"]) {
    await send(frame, text);
    await finished(frame);
  }
  await frame.locator(".thinking button").click();
  await frame.locator(".group > .tool-head").click();
  await frame.locator('.tool[data-kind="edit"] > .tool-head').click();
  await expect(frame.locator('.tool[data-kind="edit"] .diff')).toBeHidden();
  await log(frame).hover();
  await shell.mouse.wheel(0, -100_000);
  await expect(frame.getByText("edit it", { exact: true })).toBeInViewport();
  await shell.mouse.wheel(0, 60);
  await expect.poll(() => log(frame).evaluate((node) => node.scrollTop)).toBe(60);
  const before = await placeOf(frame, "edit it");
  quiet.serverMayGo = true;
  for (let run = 0; run < 2; run += 1) {
    await app.restart();
    await expect(shell.locator("#offline")).toBeHidden();
    await expect(frame.locator("#session")).not.toHaveAttribute("data-stale");
    await expect(frame.locator(".thinking-text")).toBeVisible();
    await expect(frame.locator(".group .tool").first()).toBeVisible();
    await expect(frame.locator('.tool[data-kind="edit"] .diff')).toBeHidden();
    expect(await placeOf(frame, "edit it")).toBe(before);
    expect(await log(frame).evaluate((node) => node.scrollTop)).toBe(60);
    await expect(frame.locator(".user-text")).toHaveText([
      "think about it",
      "explore it",
      "edit it",
      "long answer",
      "long again",
    ]);
  }
  // What is shown can be opened and closed as before, and the conversation goes on below.
  await frame.locator(".thinking button").click();
  await expect(frame.locator(".thinking-text")).toBeHidden();
  await send(frame, "hello again");
  await expect(frame.getByText("Hello from the agent.")).toBeVisible();
});

test("without the server nothing is shown as running, and everything stays readable", async ({ app, shell, quiet }) => {
  await addProject(shell, app.directory("ferry"));
  const frame = await newSession(shell, "ferry");
  await send(frame, "run the tests");
  await expect(frame.locator('.tool[data-state="running"] .tool-time')).toHaveText(/^[1-9]\d*s$/);
  await expect(frame.locator("#status-line")).toContainText(/Working\d+s/);
  quiet.serverMayGo = true;
  await app.stop("SIGKILL");
  await expect(shell.locator("#offline")).toBeVisible();
  await expect(frame.locator("#status-line")).toContainText("Liminal Builder is not answeringA turn was running");
  await expect(frame.locator(".chip")).toHaveText("Scripted · Unknown");
  const moving = () => frame.locator("body")
    .evaluate(() => document.getAnimations().filter(({ playState }) => playState === "running").length);
  await expect.poll(moving).toBe(0);
  const writes = await frame.locator("body").evaluate(async () => {
    let count = 0;
    const observer = new MutationObserver((list) => (count += list.length));
    observer.observe(document, { subtree: true, childList: true, characterData: true, attributes: true });
    // Long enough for a clock that counts seconds to change.
    await new Promise((resolve) => setTimeout(resolve, 2500));
    return count;
  });
  expect(writes).toBe(0);
  await expect(frame.locator(".user-text")).toHaveText("run the tests");
  await expect(frame.locator(".tool")).toContainText("npm test");
  await expect(frame.getByRole("button", { name: "Stop" })).toBeHidden();
  await frame.locator("textarea").fill("a draft meanwhile");
  await expect(frame.getByRole("button", { name: "Send" })).toBeDisabled();
  await app.start();
  await expect(shell.locator("#offline")).toBeHidden();
  await expect(frame.locator("#status-line")).not.toContainText(/Working|not answering/);
  await expect(frame.locator(".chip")).toHaveText(/Scripted · (Connected|Not running)/);
  await expect(frame.locator("textarea")).toHaveValue("a draft meanwhile");
  await expect(frame.getByRole("button", { name: "Send" })).toBeEnabled();
});

test("a command folds when the next turn begins", async ({ app, shell }) => {
  await addProject(shell, app.directory("ferry"));
  const frame = await newSession(shell, "ferry");
  await send(frame, "print it");
  await finished(frame);
  const head = frame.locator(".tool > .tool-head");
  await expect(head).toHaveAttribute("aria-expanded", "true");
  await send(frame, "hello");
  await finished(frame);
  await expect(head).toHaveAttribute("aria-expanded", "false");
  // One that the user opened stays open.
  await head.click();
  await send(frame, "hello again");
  await finished(frame);
  await expect(head).toHaveAttribute("aria-expanded", "true");
});

test("text can be marked while the agent writes, and what was marked stays in view", async ({ app, shell }) => {
  test.slow();
  await addProject(shell, app.directory("ferry"));
  const frame = await newSession(shell, "ferry");
  await send(frame, "slow words");
  await expect.poll(() => log(frame).evaluate((node) => node.scrollTop)).toBeGreaterThan(300);
  const box = await log(frame).boundingBox();
  if (!box) throw new Error("no conversation");
  const [x, y] = [box.x + 300, box.y + box.height - 200];
  await shell.mouse.move(x, y);
  await shell.mouse.down();
  const top = await log(frame).evaluate((node) => node.scrollTop);
  const length = async () => (await frame.locator(".message").textContent())?.length ?? 0;
  const before = await length();
  await shell.mouse.move(x + 120, y - 60, { steps: 6 });
  const marked = () => log(frame).evaluate(() => getSelection()?.toString() ?? "");
  const text = await marked();
  expect(text.length).toBeGreaterThan(10);
  await expect.poll(length).toBeGreaterThan(before + 200);
  expect(await log(frame).evaluate((node) => node.scrollTop), "held while the button is down").toBe(top);
  expect(await marked()).toBe(text);
  await shell.mouse.up();
  const after = await length();
  await expect.poll(length).toBeGreaterThan(after + 200);
  expect(await log(frame).evaluate((node) => node.scrollTop), "and after it").toBe(top);
  expect(await marked()).toBe(text);
  await frame.getByRole("button", { name: "Scroll to bottom" }).click();
  await expect.poll(() => distance(frame)).toBeLessThan(60);
  // A mere click does not stop it.
  await shell.mouse.click(x, y);
  const clicked = await log(frame).evaluate((node) => node.scrollTop);
  await expect.poll(() => log(frame).evaluate((node) => node.scrollTop)).toBeGreaterThan(clicked + 200);
});

test("End follows the end again, however fast it moves away", async ({ app, shell }) => {
  test.slow();
  await addProject(shell, app.directory("ferry"));
  const frame = await newSession(shell, "ferry");
  await send(frame, "slow words");
  await expect.poll(() => log(frame).evaluate((node) => node.scrollTop)).toBeGreaterThan(600);
  await log(frame).focus();
  await shell.keyboard.press("PageUp");
  const down = frame.getByRole("button", { name: "Scroll to bottom" });
  await expect(down).toBeVisible();
  await shell.keyboard.press("End");
  await expect(down).toBeHidden();
  const top = await log(frame).evaluate((node) => node.scrollTop);
  await expect.poll(() => log(frame).evaluate((node) => node.scrollTop)).toBeGreaterThan(top + 400);
  expect(await distance(frame)).toBeLessThan(60);
});

test.describe("a phone", () => {
  test.use({ viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true });
  test("Show all stands below the text it shows", async ({ page, startApp }) => {
    const app = await startApp();
    await app.stop();
    writeHistory(app, 4);
    await app.start();
    await page.goto(app.link);
    await page.getByRole("button", { name: /Projects and sessions/ }).tap();
    await sessionRow(page, "A long history").tap();
    const frame = current(page);
    await frame.locator("textarea").fill(`hello\n${"row\n".repeat(30)}`);
    await frame.getByRole("button", { name: "Send" }).tap();
    await finished(frame);
    const [text, more] = await Promise.all([
      frame.locator(".user-text").last().boundingBox(),
      frame.getByRole("button", { name: "Show all" }).boundingBox(),
    ]);
    expect(more?.y).toBeGreaterThanOrEqual((text?.y ?? 0) + (text?.height ?? Infinity));
    expect(Math.round(more?.x ?? 0)).toBe(Math.round(text?.x ?? -1));
  });
});

test("quotations stand at the edge, and every line reads in its own direction", async ({ app, shell }) => {
  await addProject(shell, app.directory("ferry"));
  const frame = await newSession(shell, "ferry");
  await send(frame, "repeat: > quoted");
  await finished(frame);
  const quote = frame.locator(".message blockquote");
  await expect(quote).toHaveCSS("margin", "0px");
  const hebrew = "שלום world";
  await send(frame, `repeat: ${hebrew}\n\n- ${hebrew}\n\nplain words\n\n\`\`\`\n${hebrew}\n\`\`\``);
  await finished(frame);
  const sides = (/** @type {import("@playwright/test").Locator} */ nodes) =>
    nodes.evaluateAll((all) => all.map((node) => getComputedStyle(node).direction));
  expect(await sides(frame.locator(".message").last().locator("p, ul, pre"))).toEqual(["rtl", "rtl", "ltr", "ltr"]);
  // The user's own text: each line for itself.
  const lines = await frame.locator(".user-text").last().evaluate((node) => {
    const text = node.firstChild;
    const box = node.getBoundingClientRect();
    const edge = (/** @type {string} */ part) => {
      const range = document.createRange();
      const at = node.textContent?.indexOf(part) ?? 0;
      range.setStart(/** @type {Node} */ (text), at);
      range.setEnd(/** @type {Node} */ (text), at + part.length);
      const { left, right } = range.getBoundingClientRect();
      return left - box.left < box.right - right ? "left" : "right";
    };
    return [edge("plain words"), edge("repeat:")];
  });
  expect(lines).toEqual(["left", "left"]);
  await send(frame, `${hebrew}\nplain hello`);
  await finished(frame);
  await expect(frame.locator(".user-text").last()).toHaveCSS("unicode-bidi", "plaintext");
  expect(await sides(frame.locator(".user-text").last())).toEqual(["rtl"]);
  await expect(frame.locator("textarea")).toHaveAttribute("dir", "auto");
  await expect(frame.locator("h1")).toHaveAttribute("dir", "auto");
});

test("a long word in a menu stays in its box", async ({ app, shell }) => {
  await addProject(shell, app.directory("ferry"));
  await send(await newSession(shell, "ferry"), "x".repeat(45));
  await finished(current(shell));
  await shell.setViewportSize({ width: 390, height: 844 });
  await shell.locator(".top-bar [data-command=open-sessions]").click();
  const label = shell.getByRole("menuitemradio").locator(".label").first();
  await expect(label).toContainText("xxx");
  expect(await label.evaluate((node) => node.scrollWidth - node.clientWidth)).toBe(0);
});
