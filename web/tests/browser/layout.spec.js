// layout.spec.js: nothing overlaps, nothing is cut off, nothing is wider than its window, on any main screen.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { addProject, current, expect, finished, newSession, projectRow, send, sessionRow, test } from "./app.js";

/** In a document: what a user could not read or click. */
function faults() {
  /** Overlaps another element on purpose. */
  const OVER = ".tab-close, .picker-row > .button, .separator, .skip-link";
  const found = /** @type {string[]} */ ([]);
  const name = (/** @type {Element} */ node) => {
    const label = (node.getAttribute("aria-label") ?? node.textContent ?? "").trim().slice(0, 40);
    return `${node.localName}.${[...node.classList].join(".")} "${label}"`;
  };
  const isShown = (/** @type {Element} */ node) =>
    node.checkVisibility({ visibilityProperty: true, opacityProperty: true, contentVisibilityAuto: true })
      && !node.closest(".sprite, .skip-link")
      && !isForReaders(node);
  /** Kept for screen readers only. @param {Element | null} node */
  function isForReaders(node) {
    for (let at = node; at; at = at.parentElement) if (getComputedStyle(at).clipPath === "inset(50%)") return true;
    return false;
  }
  if (document.documentElement.scrollWidth > innerWidth) {
    found.push(`the page is ${document.documentElement.scrollWidth} px wide in a window of ${innerWidth}`);
  }

  /**
   * The part of a box that can be seen in what scrolls around it, or null.
   * @param {Element} node
   * @param {DOMRect} box
   */
  function seen(node, box) {
    let { left, right, top, bottom } = box;
    for (let at = node.parentElement; at; at = at.parentElement) {
      const { overflowX, overflowY } = getComputedStyle(at);
      if (overflowX === "visible" && overflowY === "visible") continue;
      const room = at.getBoundingClientRect();
      [left, right, top, bottom] = [
        Math.max(left, room.left),
        Math.min(right, room.right),
        Math.max(top, room.top),
        Math.min(bottom, room.bottom),
      ];
    }
    return right - left > 1 && bottom - top > 1 ? { left, right, top, bottom } : null;
  }

  for (const node of document.body.querySelectorAll("*")) {
    const own = [...node.childNodes].filter((child) => child.nodeType === Node.TEXT_NODE && child.nodeValue?.trim());
    if (own.length === 0 || !isShown(node)) continue;
    const range = document.createRange();
    range.setStart(/** @type {Node} */ (own[0]), 0);
    range.setEndAfter(/** @type {Node} */ (own.at(-1)));
    const text = range.getBoundingClientRect();
    if (text.width === 0) continue;
    let ends = false;
    for (let at = /** @type {Element | null} */ (node); at; at = at.parentElement) {
      const { overflowX, overflowY, textOverflow } = getComputedStyle(at);
      ends ||= textOverflow === "ellipsis" || at.matches('[data-folded="true"] *');
      // Content of a scroll container can be reached by scrolling.
      if (overflowX === "auto" || overflowX === "scroll" || overflowY === "auto" || overflowY === "scroll") break;
      if (overflowX === "visible" || ends) continue;
      const room = at.getBoundingClientRect();
      if (
        text.left < room.left - 1
        || text.right > room.right + 1
        || text.top < room.top - 3
        || text.bottom > room.bottom + 3
      ) {
        found.push(`cut off: ${name(node)}`);
        break;
      }
    }
  }

  const targets = [
    ...document.body.querySelectorAll("button, a[href], input, textarea, [role=tab], [role=option]"),
  ].filter((node) => isShown(node) && !node.matches(OVER));
  // An overlay hides the rest on purpose.
  const modal = document.querySelector("dialog[open]")
    ?? document.querySelector(".agents-popover")
    ?? document.querySelector(".app[data-drawer] > .sidebar");
  const boxes = targets.filter((node) => !modal || modal.contains(node)).flatMap((node) => {
    const box = seen(node, node.getBoundingClientRect());
    return box ? [{ node, box }] : [];
  });
  for (const [at, a] of boxes.entries()) {
    for (const b of boxes.slice(at + 1)) {
      if (a.node.contains(b.node) || b.node.contains(a.node)) continue;
      const wide = Math.min(a.box.right, b.box.right) - Math.max(a.box.left, b.box.left);
      const high = Math.min(a.box.bottom, b.box.bottom) - Math.max(a.box.top, b.box.top);
      if (wide > 1 && high > 1) found.push(`overlap: ${name(a.node)} and ${name(b.node)}`);
    }
  }
  return found;
}

/** @param {import("@playwright/test").Page} page @param {string} what */
async function checkLayout(page, what) {
  for (const frame of page.frames()) {
    const inView = frame.parentFrame() === null || await (await frame.frameElement()).isVisible();
    if (inView) {
      const where = `${what}, ${frame.parentFrame() ? "session" : "shell"}`;
      // A frame gets its new width some frames after the window: what counts is the layout that stays.
      await expect.poll(() => frame.evaluate(faults), { message: where }).toEqual([]);
    }
  }
}

test("nothing jumps when a turn starts and ends in view", async ({ app, shell }) => {
  await addProject(shell, app.directory("ferry"));
  await newSession(shell, "ferry");
  const frame = await newSession(shell, "ferry");
  await send(frame, "hello");
  await finished(frame);
  await expect(sessionRow(shell, "hello").locator('.glyph[data-attention="idle"]')).toBeAttached();
  const places = async () => {
    const boxes = [".composer", ".session-header", ".status-line"].map((part) => frame.locator(part).boundingBox());
    const around = [
      ".tab >> nth=0",
      ".tab >> nth=1",
      ".new-tab",
      "#projects-title",
      ".project-row",
      ".session-row >> nth=0",
      ".session-row >> nth=1",
      "#footer",
    ].map((part) => shell.locator(part).boundingBox());
    return Promise.all([...boxes, ...around]);
  };
  const before = await places();
  await shell.evaluate(() => {
    const all = /** @type {any} */ (window);
    all.shifts = [];
    new PerformanceObserver((list) =>
      list.getEntries().forEach((entry) => all.shifts.push(
        ...(/** @type {any} */ (entry)).sources.map((/** @type {any} */ source) => source.node?.className ?? "?"),
      ))).observe({
      type: "layout-shift",
    });
  });
  await send(frame, "hold on");
  await expect(sessionRow(shell, "hello").getByRole("img", { name: "Working" })).toBeVisible();
  expect(await places()).toEqual(before);
  app.release("ferry");
  await finished(frame);
  expect(await places()).toEqual(before);
  await expect(sessionRow(shell, "hello").locator('.glyph[data-attention="idle"]')).toBeAttached();
  expect(await places()).toEqual(before);
  expect(await shell.evaluate(() => /** @type {any} */ (window).shifts)).toEqual([]);
});

for (const width of [1440, 820, 390]) {
  test(`nothing overlaps, is cut off or too wide on any main screen at ${width} px`, async ({ app, shell }) => {
    // Many screens.
    test.slow();
    const fit = () => shell.setViewportSize({ width, height: 900 });
    const wide = () => shell.setViewportSize({ width: 1440, height: 900 });
    await shell.emulateMedia({ reducedMotion: "reduce" });
    const check = async (/** @type {string} */ what) => {
      await fit();
      await checkLayout(shell, what);
      await wide();
    };
    await expect(shell.getByText("Agents on this machine")).toBeVisible();
    await check("first run");
    const long = "a-project-with-quite-a-long-name-that-does-not-fit";
    await addProject(shell, app.directory(long));
    await expect(shell.getByRole("heading", { name: "No session open" })).toBeVisible();
    await check("no session");
    const frame = await newSession(shell, long);
    await expect(frame.getByText("Describe the task")).toBeVisible();
    await check("new session");
    for (const text of [
      `markdown ${"unbroken".repeat(40)}`,
      "explore it",
      "edit it",
      "broken it",
      "think about it",
      "plan it",
    ]) {
      await send(frame, text);
      await finished(frame);
    }
    await check("conversation");
    await send(frame, "run the tests");
    await expect(frame.locator('.tool[data-state="running"]')).toBeVisible();
    await check("at work");
    await shell.locator(".new-tab").click();
    await check("picker");
    await shell.keyboard.press("Escape");
    await shell.locator(".projects .section-title [data-command=add-project]").click();
    await shell.getByRole("combobox", { name: "Directory" }).fill("~/nowhere");
    await shell.keyboard.press("Enter");
    await expect(shell.getByText("Directory does not exist")).toBeVisible();
    await check("add project");
    await shell.keyboard.press("Escape");
    await shell.keyboard.press("Control+k");
    await check("palette");
    await shell.keyboard.press("Escape");
    await shell.locator(".tab [role=tab]").first().focus();
    await shell.keyboard.press("Shift+?");
    await expect(shell.getByRole("dialog", { name: "Keyboard shortcuts" })).toBeVisible();
    await check("keyboard shortcuts");
    await shell.keyboard.press("Escape");
    await shell.locator("#footer").getByRole("button", { name: "Settings" }).click();
    await check("settings");
    await shell.keyboard.press("Escape");
    await projectRow(shell, long).click({ button: "right" });
    await shell.getByRole("menuitem", { name: "Remove from sidebar" }).click();
    await check("remove a project that works");
    await shell.keyboard.press("Escape");
    await fit();
    if (width < 1024) {
      await shell.locator(
        width < 720 ? ".top-bar [data-command=sidebar]" : "#rail [data-command=sidebar]",
      ).first().click();
      await expect(shell.locator("#sidebar")).toBeVisible();
    }
    await checkLayout(shell, "sidebar");
    await shell.locator("#footer .footer-agents").click();
    await expect(shell.getByRole("dialog", { name: "Agents" })).toBeVisible();
    await checkLayout(shell, "agents");
  });

  test(`nothing overlaps, is cut off or too wide while a session starts and when many wait at ${width} px`, async (
    { startApp, page },
  ) => {
    await page.emulateMedia({ reducedMotion: "reduce" });
    const app = await startApp({ script: "slow-start" });
    await page.goto(app.link);
    await addProject(page, app.directory("ferry"));
    await projectRow(page, "ferry").getByRole("button", { name: "New Session" }).click();
    await page.locator(".picker-option", { hasText: "Scripted" }).click();
    await expect(page.getByRole("textbox", { name: "Message Scripted" })).toBeFocused();
    await page.setViewportSize({ width, height: 900 });
    await checkLayout(page, "starting");
    await page.setViewportSize({ width: 1440, height: 900 });
    writeFileSync(join(app.home, "release"), "");
    await expect(current(page).locator("textarea")).toBeEnabled();
    await send(current(page), "stumble over something with a rather wide name");
    for (const text of ["hold this one", "hold that other one with a longer name"]) {
      await send(await newSession(page, "ferry"), text);
    }
    await newSession(page, "ferry");
    app.release("ferry");
    await page.mouse.move(900, 500);
    await expect(page.locator("#finished .inbox-row")).toHaveCount(2);
    await expect(page.locator("#inbox .inbox-row")).toHaveCount(1);
    await page.setViewportSize({ width, height: 900 });
    if (width < 1024) await page.locator(
      width < 720 ? ".top-bar [data-command=sidebar]" : "#rail [data-command=sidebar]",
    ).first().click();
    await expect(page.locator("#sidebar")).toBeVisible();
    await checkLayout(page, "many wait");
  });

  test(`nothing overlaps, is cut off or too wide when things go wrong at ${width} px`, async (
    { startApp, page, quiet },
  ) => {
    await page.emulateMedia({ reducedMotion: "reduce" });
    const app = await startApp();
    await app.stop();
    writeFileSync(join(app.data, "sessions.json"), "{ not json", { mode: 0o600 });
    await app.start();
    await page.goto(app.link);
    await addProject(page, app.directory("ferry"));
    const frame = await newSession(page, "ferry");
    await send(frame, "then crash");
    await expect(frame.getByText("Connection to Scripted lost. Reconnecting...")).toBeVisible();
    await page.setViewportSize({ width, height: 900 });
    await checkLayout(page, "reconnecting, with a notice");
    await current(page).getByRole("button", { name: "Details" }).click();
    await checkLayout(page, "its details");
    quiet.serverMayGo = true;
    await app.stop();
    await expect(page.locator("#offline")).toBeVisible();
    await checkLayout(page, "server gone");
  });
}
