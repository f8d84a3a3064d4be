// bus.spec.js: shell and portlets accept messages from each other only.
import { addProject, expect, newSession, sessionRow, test } from "./app.js";

const FOREIGN = "https://example.invalid";

test("the shell ignores a postMessage from another origin, from another window, or of a wrong shape", async (
  { app, page },
) => {
  /** @type {string[]} */
  const sent = [];
  page.on("websocket", (socket) => socket.on("framesent", ({ payload }) => sent.push(String(payload))));
  await page.goto(app.link);
  await addProject(page, app.directory("ferry"));
  await newSession(page, "ferry");
  const id = (await page.locator(".tab").getAttribute("data-id")) ?? "";
  const rename = (/** @type {string} */ title) => ({
    kind: "request",
    id: 7,
    message: { type: "session:rename", sessionId: id, title },
  });
  const portlet = page.frames().find((frame) => frame.url().endsWith("/portlet"));
  await page.evaluate(async ({ foreign, message }) => {
    const source = /** @type {HTMLIFrameElement} */ (document.querySelector("iframe.portlet")).contentWindow;
    // Our portlet's window, but another origin; then our origin, but no portlet: the shell itself, a frame, no window.
    dispatchEvent(new MessageEvent("message", { origin: foreign, source, data: message }));
    postMessage(message, location.origin);
    dispatchEvent(new MessageEvent("message", { origin: location.origin, source: null, data: message }));
    const frame = document.createElement("iframe");
    frame.src = "/portlet";
    document.body.append(frame);
    await new Promise((resolve) => frame.addEventListener("load", resolve));
    dispatchEvent(new MessageEvent("message", { origin: location.origin, source: frame.contentWindow, data: message }));
    frame.remove();
  }, { foreign: FOREIGN, message: rename("From elsewhere") });
  await portlet?.evaluate((messages) => messages.forEach((message) => parent.postMessage(message, location.origin)), [
    null,
    "request",
    7,
    [],
    {},
    { kind: "constructor" },
    { kind: "unknown" },
    { ...rename("No number"), id: "7" },
    { kind: "request", id: 7, message: null },
    { kind: "request", id: 7, message: { type: "project:remove", projectId: "x" } },
    { kind: "shortcut", name: 7 },
    { kind: "report", text: { toString: "x" } },
  ]);
  // The same from the portlet itself takes effect, so the check above means something.
  await portlet?.evaluate((message) => parent.postMessage(message, location.origin), rename("From the portlet"));
  await expect(sessionRow(page, "From the portlet")).toBeVisible();
  const asked = sent.map((frame) => JSON.parse(frame))
    .filter(({ type }) => type === "session:rename" || type === "project:remove");
  expect(asked.map(({ type, title }) => [type, title])).toEqual([["session:rename", "From the portlet"]]);
});

test("a shortcut takes effect before the next key, and only a portlet can send one", async ({ app, shell }) => {
  await addProject(shell, app.directory("ferry"));
  const frame = await newSession(shell, "ferry");
  await expect(frame.locator("textarea")).toBeFocused();
  const palettes = () => shell.locator("dialog.palette").count();
  await shell.evaluate(() => {
    const portlet = /** @type {HTMLIFrameElement} */ (document.querySelector("iframe.portlet")).contentWindow;
    const palette = { kind: "shortcut", name: "palette", index: null };
    const details = [null, {}, { source: window, message: palette }, { source: null, message: palette },
      { source: portlet, message: { kind: "shortcut", name: 7 } },
      { source: portlet, message: { kind: "command", name: "archive" } }];
    for (const detail of details) dispatchEvent(new CustomEvent("liminal:keys", { detail }));
  });
  expect(await palettes()).toBe(0);
  const isOpenAtOnce = await frame.locator("textarea").evaluate((input) => {
    input.dispatchEvent(new KeyboardEvent("keydown", { key: "k", ctrlKey: true, bubbles: true, cancelable: true }));
    return parent.document.activeElement?.matches("dialog.palette input") ?? false;
  });
  expect(isOpenAtOnce).toBe(true);
  await expect(sessionRow(shell, "New Session")).toBeVisible();
});

test("focus moves into a portlet before the next key, and only the shell can move it", async ({ app, shell }) => {
  await addProject(shell, app.directory("ferry"));
  const frame = await newSession(shell, "ferry");
  const portlet = shell.frames().find((other) => other.url().endsWith("/portlet"));
  await frame.locator("#log").focus();
  await portlet?.evaluate(() => {
    const focus = { kind: "focus", target: "input" };
    const details = [
      null,
      {},
      { source: window, message: focus },
      { source: null, message: focus },
      { source: parent, message: { kind: "focus" } },
    ];
    for (const detail of details) dispatchEvent(new CustomEvent("liminal:keys", { detail }));
  });
  await expect(frame.locator("#log")).toBeFocused();
  const isFocusedAtOnce = await shell.evaluate(() => {
    dispatchEvent(new KeyboardEvent("keydown", { key: "1", code: "Digit1", altKey: true, bubbles: true }));
    const inside = /** @type {HTMLIFrameElement} */ (document.querySelector("iframe.portlet")).contentDocument;
    return inside?.activeElement?.matches("textarea") ?? false;
  });
  expect(isFocusedAtOnce).toBe(true);
});

test("a portlet ignores a postMessage from another origin, from another window, or of a wrong shape", async (
  { app, shell },
) => {
  await addProject(shell, app.directory("ferry"));
  const frame = await newSession(shell, "ferry");
  const portlet = shell.frames().find((other) => other.url().endsWith("/portlet"));
  await expect(frame.locator("html")).toHaveAttribute("data-theme", "dark");
  await portlet?.evaluate((foreign) => {
    const light = { kind: "theme", theme: "light" };
    dispatchEvent(new MessageEvent("message", { origin: foreign, source: parent, data: light }));
    postMessage(light, location.origin);
    dispatchEvent(new MessageEvent("message", { origin: location.origin, source: null, data: light }));
  }, FOREIGN);
  const tell = (/** @type {unknown[]} */ messages) => shell.evaluate((all) => {
    const portlet = /** @type {HTMLIFrameElement} */ (document.querySelector("iframe.portlet")).contentWindow;
    for (const message of all) portlet?.postMessage(message, location.origin);
  }, messages);
  await tell([
    null,
    "theme",
    { kind: "theme" },
    { kind: "theme", theme: null },
    { kind: "toString", theme: "light" },
    { kind: "visible", visible: "no" },
    { kind: "server", message: "x" },
    { kind: "focus", target: "input" },
  ]);
  // Messages arrive in order: when the last one took effect, all before it did.
  await expect(frame.locator("textarea")).toBeFocused();
  await expect(frame.locator("html")).toHaveAttribute("data-theme", "dark");
  await tell([{ kind: "theme", theme: "light" }]);
  await expect(frame.locator("html")).toHaveAttribute("data-theme", "light");
});
