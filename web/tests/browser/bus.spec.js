// bus.spec.js: shell and portlets listen to each other and to nobody else.
import { addProject, expect, newSession, sessionRow, test } from "./app.js";

const FOREIGN = "https://example.invalid";

test("the shell ignores a postMessage from another origin, from another window, or of a wrong shape", async ({ app, page }) => {
  /** @type {string[]} */
  const sent = [];
  page.on("websocket", (socket) => socket.on("framesent", ({ payload }) => sent.push(String(payload))));
  await page.goto(app.link);
  await addProject(page, app.directory("ferry"));
  await newSession(page, "ferry");
  const id = (await page.locator(".tab").getAttribute("data-id")) ?? "";
  const rename = (/** @type {string} */ title) => ({ kind: "request", id: 7, message: { type: "session:rename", sessionId: id, title } });
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
    null, "request", 7, [], {}, { kind: "constructor" }, { kind: "unknown" }, { ...rename("No number"), id: "7" }, { kind: "request", id: 7, message: null },
    { kind: "request", id: 7, message: { type: "project:remove", projectId: "x" } }, { kind: "shortcut", name: 7 }, { kind: "say", text: { toString: "x" } },
  ]);
  // The same from the portlet itself is heard, so the silence above means something.
  await portlet?.evaluate((message) => parent.postMessage(message, location.origin), rename("From the portlet"));
  await expect(sessionRow(page, "From the portlet")).toBeVisible();
  const asked = sent.map((frame) => JSON.parse(frame)).filter(({ type }) => type === "session:rename" || type === "project:remove");
  expect(asked.map(({ type, title }) => [type, title])).toEqual([["session:rename", "From the portlet"]]);
});

test("a portlet ignores a postMessage from another origin, from another window, or of a wrong shape", async ({ app, shell }) => {
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
  await tell([null, "theme", { kind: "theme" }, { kind: "theme", theme: null }, { kind: "toString", theme: "light" }, { kind: "visible", visible: "no" }, { kind: "server", message: "x" }, { kind: "focus", target: "input" }]);
  // Messages come in order: when the last one was heard, all before it were.
  await expect(frame.locator("textarea")).toBeFocused();
  await expect(frame.locator("html")).toHaveAttribute("data-theme", "dark");
  await tell([{ kind: "theme", theme: "light" }]);
  await expect(frame.locator("html")).toHaveAttribute("data-theme", "light");
});
