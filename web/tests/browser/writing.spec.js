// Writing, copying and keys in a session do what they promise.
import { addProject, current, expect, finished, newSession, send, tab, test } from "./app.js";

test.beforeEach(async ({ app, shell }) => {
  await addProject(shell, app.directory("ferry"));
});

test("a draft written in one window is not overwritten by another window", async (
  { app, shell, context },
) => {
  const frame = await newSession(shell, "ferry");
  await send(frame, "hello");
  await finished(frame);
  const other = await context.newPage();
  await other.goto(app.link);
  await current(other).locator("textarea").fill("a long careful draft");
  const stored = () => shell.evaluate(() => Object.values(JSON.parse(localStorage.getItem("liminal:drafts") ?? "{}")));
  await expect.poll(stored).toEqual(["a long careful draft"]);
  // This window shows it too, unless something else was typed here.
  await expect(frame.locator("textarea")).toHaveValue("a long careful draft");
  await other.close();
  await shell.reload();
  await expect(current(shell).locator("textarea")).toHaveValue("a long careful draft");
  expect(await stored()).toEqual(["a long careful draft"]);
  // A sent message is no longer a draft anywhere.
  const third = await context.newPage();
  await third.goto(app.link);
  await expect(current(third).locator("textarea")).toHaveValue("a long careful draft");
  await current(shell).locator("textarea").press("Enter");
  await expect(current(third).locator("textarea")).toHaveValue("");
});

test("words are selected by key in the message field, and the tabs stay where they are", async ({ shell }) => {
  await send(await newSession(shell, "ferry"), "hello a");
  await expect(tab(shell, "hello a")).toBeVisible();
  const frame = await newSession(shell, "ferry");
  await send(frame, "hello b");
  await expect(tab(shell, "hello b")).toBeVisible();
  const input = frame.locator("textarea");
  await input.fill("one two three");
  await input.press("Control+Shift+ArrowLeft");
  expect(await input.evaluate((node) => {
    const { value, selectionStart, selectionEnd } = /** @type {HTMLTextAreaElement} */ (node);
    return value.slice(selectionStart, selectionEnd);
  })).toBe("three");
  await expect(shell.locator(".tab .tab-title")).toHaveText(["hello a", "hello b"]);
});

test("a message to a connected agent never shows that it is starting", async ({ app, shell }) => {
  const frame = await newSession(shell, "ferry");
  await send(frame, "hello");
  await finished(frame);
  await frame.locator("#status-line").evaluate((node) => {
    const all = /** @type {any} */ (window);
    all.texts = [];
    new MutationObserver(() => all.texts.push(node.textContent)).observe(node, {
      subtree: true,
      childList: true,
      characterData: true,
    });
  });
  for (let at = 0; at < 3; at += 1) {
    await send(frame, "hello again");
    await finished(frame);
  }
  await send(frame, "hold on");
  await expect(frame.locator("#status-line")).toContainText("Working");
  app.release("ferry");
  await finished(frame);
  const texts = await frame.locator("body").evaluate(() => /** @type {any} */ (window).texts);
  expect(texts.length).toBeGreaterThan(3);
  expect(texts.filter((/** @type {string} */ text) => /Starting/.test(text))).toEqual([]);
});

test("text is copied without clipboard access, and a failure is reported", async (
  { shell, context },
) => {
  await context.grantPermissions(["clipboard-read", "clipboard-write"]);
  const frame = await newSession(shell, "ferry");
  await send(frame, "markdown please");
  await finished(frame);
  await frame.locator("body").evaluate(() => Object.defineProperty(navigator, "clipboard", { value: undefined }));
  const copy = frame.locator(".copy-code");
  await copy.click();
  await expect(copy).toHaveText("Copied");
  expect(await shell.evaluate(() => navigator.clipboard.readText())).toBe("const answer: number = 42;\n");
  await expect(copy).toBeFocused();
  await expect(copy).toHaveText("Copy");
  await frame.locator("body").evaluate(() => (document.execCommand = () => false));
  await copy.click();
  await expect(copy).toHaveText("Could not copy");
});

test("a file location that could not be copied is reported", async ({ shell }) => {
  const frame = await newSession(shell, "ferry");
  await send(frame, "repeat: see `src/a.ts:12` there");
  await finished(frame);
  await frame.locator("body").evaluate(() => {
    Object.defineProperty(navigator, "clipboard", { value: undefined });
    document.execCommand = () => false;
  });
  await frame.locator("a.ref").click();
  await expect(shell.getByText("Could not copy")).toBeVisible();
});

test("TC-3.7b: Escape stops a turn at once from the conversation; from the input it asks first", async ({ shell }) => {
  const frame = await newSession(shell, "ferry");
  await send(frame, "hold on");
  await expect(frame.locator(".message")).toHaveText("The first part.");
  // The hint disappears after two seconds, before a busy machine may check it.
  await frame.locator("#status-line").evaluate((line) => {
    const all = /** @type {any} */ (window);
    new MutationObserver(() => (all.hinted ||= line.textContent?.includes("Esc again to stop"))).observe(line, {
      subtree: true,
      childList: true,
      characterData: true,
    });
  });
  await frame.locator("textarea").press("Escape");
  await expect.poll(() => frame.locator("body").evaluate(() => /** @type {any} */ (window).hinted)).toBe(true);
  await expect(frame.locator("#status-line")).not.toContainText("Esc again to stop");
  await expect(frame.locator(".turn-end")).toHaveCount(0);
  await frame.locator("#log").press("Escape");
  await expect(frame.locator(".turn-end")).toHaveText("Stopped");
});
