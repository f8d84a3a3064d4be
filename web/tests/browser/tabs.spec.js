import { addProject, current, expect, finished, newSession, send, sessionRow, tab, test } from "./app.js";

/** @param {import("@playwright/test").Page} page */
const order = (page) => page.locator(".tab .tab-title").allTextContents();
/** @param {import("@playwright/test").Page} page @param {string[]} messages */
async function openAll(page, ...messages) {
  for (const message of messages) {
    const frame = await newSession(page, "ferry");
    await send(frame, `hello ${message}`);
    await expect(tab(page, `hello ${message}`)).toBeVisible();
    await finished(frame);
  }
}

test.beforeEach(async ({ app, shell }) => {
  await addProject(shell, app.directory("ferry"));
});

test("TC-4.1a, TC-4.1b: each session opens in a tab of its own, the others stay", async ({ shell }) => {
  await openAll(shell, "a", "b");
  expect(await order(shell)).toEqual(["hello a", "hello b"]);
  await expect(tab(shell, "hello b")).toHaveAttribute("data-current", "");
  await expect(shell.locator("iframe.portlet")).toHaveCount(2);
  await expect(shell.getByRole("tab", { selected: true })).toHaveText("hello b");
});

test("TC-4.2a: switching tabs keeps the scroll position", async ({ shell }) => {
  const frame = await newSession(shell, "ferry");
  await send(frame, "long answer");
  await finished(frame);
  await expect(frame.getByText("Paragraph 120 of")).toBeVisible();
  const log = frame.locator("#log");
  await log.evaluate((node) => node.scrollTo(0, 700));
  await expect(frame.getByRole("button", { name: "Scroll to bottom" })).toBeVisible();
  await openAll(shell, "b");
  await tab(shell, "long answer").click();
  await expect(tab(shell, "long answer")).toHaveAttribute("data-current", "");
  expect(await current(shell).locator("#log").evaluate((node) => node.scrollTop)).toBe(700);
});

test("TC-4.2b: a tab that is switched to is shown in the very next frame", async ({ shell }) => {
  await openAll(shell, "a", "b");
  const shown = await shell.evaluate(async () => {
    const other = document.querySelector(".tab:not([data-current])");
    /** @type {HTMLElement | null | undefined} */ (other?.querySelector("[role=tab]"))?.click();
    await new Promise((resolve) => requestAnimationFrame(resolve));
    const frame = document.querySelector(
      `iframe[data-session="${CSS.escape(/** @type {HTMLElement} */ (other).dataset.id ?? "")}"]`,
    );
    return frame ? getComputedStyle(frame).visibility : "";
  });
  expect(shown).toBe("visible");
  await expect(current(shell).locator(".user-text")).toHaveText("hello a");
});

test("a hidden session draws nothing until it is shown, and no key reaches it", async ({ app, shell }) => {
  const frame = await newSession(shell, "ferry");
  await send(frame, "hold on");
  await expect(frame.locator(".message")).toHaveText("The first part.");
  const hidden = shell.frames().find((other) => other.url().endsWith("/portlet"));
  await openAll(shell, "b");
  await hidden?.evaluate(() => {
    const all = /** @type {any} */ (window);
    all.writes = 0;
    new MutationObserver((list) => (all.writes += list.length)).observe(document, {
      subtree: true,
      childList: true,
      characterData: true,
      attributes: true,
    });
  });
  app.release("ferry");
  // It receives the update and the sidebar shows it; its own page stays as it was.
  await expect(sessionRow(shell, "hold on").getByRole("img", { name: "Finished, unread" })).toBeVisible();
  expect(await hidden?.evaluate(() => /** @type {any} */ (window).writes)).toBe(0);
  await shell.locator(".skip-link").focus();
  for (let at = 0; at < 40; at += 1) {
    await shell.keyboard.press("Tab");
    expect(await shell.evaluate(() => document.activeElement?.matches("iframe:not([data-current])"))).toBe(false);
  }
  await tab(shell, "hold on").click();
  await expect(current(shell).locator(".message")).toHaveText("The first part. The second part.");
});

test("TC-4.3a, TC-4.3b: the sidebar activates the tab that is there", async ({ shell }) => {
  await openAll(shell, "a", "b", "c");
  await sessionRow(shell, "hello a").click();
  await expect(tab(shell, "hello a")).toHaveAttribute("data-current", "");
  await expect(shell.locator(".tab")).toHaveCount(3);
});

test("TC-4.4a: closing a tab keeps the session", async ({ shell }) => {
  await openAll(shell, "a", "b");
  await tab(shell, "hello b").locator(".tab-close").click();
  await expect.poll(() => order(shell)).toEqual(["hello a"]);
  await expect(sessionRow(shell, "hello b")).toBeVisible();
  await sessionRow(shell, "hello b").click();
  await expect(current(shell).getByText("Hello from the agent.")).toBeVisible();
});

test("TC-4.4b: closing the tab in front shows the next one, or the previous if it was last", async ({ shell }) => {
  await openAll(shell, "a", "b", "c");
  await tab(shell, "hello b").click();
  await shell.keyboard.press("Delete");
  await expect(tab(shell, "hello c")).toHaveAttribute("data-current", "");
  await tab(shell, "hello c").click({ button: "middle" });
  await expect(tab(shell, "hello a")).toHaveAttribute("data-current", "");
});

test("TC-4.4c: with the last tab closed nothing is open", async ({ shell }) => {
  await openAll(shell, "a");
  await shell.keyboard.press("Alt+KeyW");
  await expect(shell.getByRole("heading", { name: "No session open" })).toBeVisible();
  await expect(shell.locator(".tab")).toHaveCount(0);
});

test("TC-4.5b: a tab shows a placeholder until the first message gives it a title", async ({ shell }) => {
  await newSession(shell, "ferry");
  await expect(tab(shell, "New Session")).toBeVisible();
  await send(current(shell), "hello title");
  await expect(tab(shell, "hello title")).toBeVisible();
});

test("TC-4.6a, TC-4.6b: tabs are reordered by dragging, and stay so when all is closed and opened again", async (
  { app, shell, context, quiet },
) => {
  await openAll(shell, "a", "b", "c");
  const onto = await tab(shell, "hello b").boundingBox();
  await tab(shell, "hello c").hover();
  await shell.mouse.down();
  // A real pointer moves through many points; a drag starts only at the second of them.
  await shell.mouse.move((onto?.x ?? 0) + 10, (onto?.y ?? 0) + 15, { steps: 8 });
  await expect(tab(shell, "hello b")).toHaveAttribute("data-drop", "before");
  await shell.mouse.up();
  await expect.poll(() => order(shell)).toEqual(["hello a", "hello c", "hello b"]);
  quiet.serverMayGo = true;
  await shell.close();
  await app.restart();
  const again = await context.newPage();
  await again.goto(app.link);
  await expect.poll(() => order(again)).toEqual(["hello a", "hello c", "hello b"]);
});

test("TC-4.6a: tabs are reordered by keyboard", async ({ shell }) => {
  await openAll(shell, "a", "b", "c");
  await shell.locator(".tab[data-current] [role=tab]").focus();
  await shell.keyboard.press("Control+Shift+ArrowLeft");
  await expect.poll(() => order(shell)).toEqual(["hello a", "hello c", "hello b"]);
  await expect(tab(shell, "hello c").getByRole("tab")).toBeFocused();
  await shell.keyboard.press("Control+Shift+ArrowLeft");
  await expect.poll(() => order(shell)).toEqual(["hello c", "hello a", "hello b"]);
  await shell.keyboard.press("Control+Shift+ArrowRight");
  await expect.poll(() => order(shell)).toEqual(["hello a", "hello c", "hello b"]);
});

test("TC-5.6a: three tabs with the second active are so again after a reload", async ({ shell }) => {
  await openAll(shell, "a", "b", "c");
  await tab(shell, "hello b").click();
  await expect(tab(shell, "hello b")).toHaveAttribute("data-current", "");
  await shell.reload();
  await expect.poll(() => order(shell)).toEqual(["hello a", "hello b", "hello c"]);
  await expect(tab(shell, "hello b")).toHaveAttribute("data-current", "");
  await expect(shell.getByRole("tab", { selected: true })).toHaveCount(1);
  await expect(current(shell).locator(".user-text")).toHaveText("hello b");
});

test("TC-4.7a: three tabs with the second active are so again after a restart of the server", async (
  { app, shell, context, quiet },
) => {
  await openAll(shell, "a", "b", "c");
  await tab(shell, "hello b").click();
  quiet.serverMayGo = true;
  await app.restart();
  await expect(shell.locator("#offline")).toBeHidden();
  expect(await order(shell)).toEqual(["hello a", "hello b", "hello c"]);
  await expect(tab(shell, "hello b")).toHaveAttribute("data-current", "");
  await shell.close();
  const again = await context.newPage();
  await again.goto(app.link);
  await expect.poll(() => order(again)).toEqual(["hello a", "hello b", "hello c"]);
  await expect(tab(again, "hello b")).toHaveAttribute("data-current", "");
  await expect(current(again).locator(".user-text")).toHaveText("hello b");
  await expect(current(again).getByText("Hello from the agent.")).toBeVisible();
  const stored = await again.evaluate(() => JSON.parse(localStorage.getItem("liminal:tabs") ?? "{}"));
  expect(Object.keys(stored).sort()).toEqual(["activeTab", "openTabs", "tabOrder"]);
});

test("tabs are reached by keys from inside a session", async ({ shell }) => {
  await openAll(shell, "a", "b", "c");
  await current(shell).locator("textarea").focus();
  await shell.keyboard.press("Alt+Digit1");
  await expect(tab(shell, "hello a")).toHaveAttribute("data-current", "");
  await shell.keyboard.press("Alt+BracketLeft");
  await expect(tab(shell, "hello c")).toHaveAttribute("data-current", "");
  await shell.locator(".tab[data-current] [role=tab]").focus();
  await shell.keyboard.press("ArrowLeft");
  await expect(tab(shell, "hello b")).toHaveAttribute("data-current", "");
});
