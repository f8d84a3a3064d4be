// journal.spec.js: what the page shows of the journal: what the agent has forgotten, what is not recorded, whether the
// agent remembers, and the export of a conversation.
import { readFileSync } from "node:fs";
import {
  addProject,
  current,
  expect,
  finished,
  newSession,
  routeSocket,
  send,
  sessionRow,
  tab,
  test,
} from "./app.js";
import { writeHistory } from "./saved-history.js";

/** @typedef {import("@playwright/test").Page} Page */

/**
 * Changes the messages of the server on their way to a page that is yet to load.
 * @param {Page} page
 * @param {(frame: any) => any} change
 */
async function changeFrames(page, change) {
  /** @type {import("@playwright/test").WebSocketRoute | null} */
  let open = null;
  await routeSocket(page, (socket) => {
    const server = socket.connectToServer();
    open = socket;
    server.onMessage((data) => socket.send(JSON.stringify(change(JSON.parse(String(data))))));
  });
  return (/** @type {object} */ frame) => open?.send(JSON.stringify(frame));
}

test("turns that the agent has forgotten are marked, on older pages too, and the line moves up with them", async (
  { page, startApp },
) => {
  const app = await startApp();
  await app.stop();
  writeHistory(app, 1000);
  await app.start();
  const questionOf = (/** @type {any} */ entry) => Number(/^Question (\d+)$/.exec(entry.content ?? "")?.[1] ?? 0);
  await changeFrames(page, (frame) => {
    if (frame.type !== "session:history" && frame.type !== "session:page") return frame;
    const turns = frame.entries.filter(questionOf).map((/** @type {any} */ entry) => ({
      turnId: entry.turnId,
      status: questionOf(entry) === 150 ? "cancelled" : "completed",
      ...(questionOf(entry) <= 240 ? { forgotten: true } : {}),
    }));
    return { ...frame, turns };
  });
  await page.goto(app.link);
  await sessionRow(page, "A long history").click();
  const frame = current(page);
  await expect(frame.getByText("Answer 250 of many")).toBeVisible();
  const marks = frame.locator(".memory-mark");
  await expect(marks).toHaveText(["No longer in the agent’s memory", "In the agent’s memory from here on"]);
  await expect(marks.first()).toHaveAttribute("title", /removed what follows from its own history/);
  const below = (/** @type {number} */ at) =>
    marks.nth(at).evaluate((mark) => mark.nextElementSibling?.querySelector(".user-text")?.textContent);
  expect(await below(1)).toBe("Question 241");
  const turn = (/** @type {number} */ number) =>
    frame.locator(".turn").filter({ has: frame.getByText(`Question ${number}`, { exact: true }) });
  await expect(turn(240)).toHaveAttribute("data-forgotten");
  await expect(turn(240).getByText("You (no longer in the agent’s memory):")).toHaveCount(1);
  await expect(turn(241)).not.toHaveAttribute("data-forgotten");
  await expect(turn(241).getByText("You:", { exact: true })).toHaveCount(1);
  await frame.locator("#log").hover();
  await expect.poll(async () => {
    await page.mouse.wheel(0, -20_000);
    return frame.getByText("Question 1", { exact: true }).count();
  }, { timeout: 60_000, intervals: [100] }).toBe(1);
  await expect(marks).toHaveCount(2);
  expect(await below(0)).toBe("Question 1");
  expect(await below(1)).toBe("Question 241");
  await expect(turn(150).locator(".turn-end"), "an older turn shows how it ended").toHaveText("Stopped");
});

test("a message that the disk refused is marked as not recorded, and its next one is not", async ({ app, page }) => {
  let full = true;
  await changeFrames(page, (frame) =>
    (frame.type === "session:turn" && full ? { ...frame, recorded: false } : frame));
  await page.goto(app.link);
  await addProject(page, app.directory("ferry"));
  const frame = await newSession(page, "ferry");
  await send(frame, "hello one");
  await finished(frame);
  full = false;
  await send(frame, "hello two");
  await finished(frame);
  const marks = frame.locator(".user-unrecorded >> visible=true");
  await expect(marks).toHaveCount(1);
  await expect(frame.locator(".user-turn", { has: marks })).toContainText("hello one");
  await expect(marks).toContainText("Not recorded");
  await expect(marks).toHaveAttribute("title", /The disk refused this message\. It is kept in memory/);
});

test("notices of the server come and go, and one that returns is shown though it was dismissed", async (
  { app, page },
) => {
  const send = await changeFrames(page, (frame) => frame);
  await page.goto(app.link);
  await expect(page.locator("#footer")).toContainText("Scripted");
  const notices = page.locator(".lasting-notice .notice-text");
  const full = "The disk is full. What is said now is kept in memory.";
  send({ type: "server:notices", notices: [full, "Another."] });
  await expect(notices).toHaveText([full, "Another."]);
  await page.getByRole("button", { name: `Dismiss: ${full}` }).click();
  await expect(notices).toHaveText(["Another."]);
  send({ type: "server:notices", notices: [full] });
  await expect(notices).toHaveCount(0);
  send({ type: "server:notices", notices: [] });
  send({ type: "server:notices", notices: [full] });
  await expect(notices).toHaveText([full]);
});

test("header, row and top bar say whether the agent remembers, and a click on it says what that means", async (
  { app, page },
) => {
  const feed = await changeFrames(page, (frame) => frame);
  await page.goto(app.link);
  await addProject(page, app.directory("ferry"));
  const frame = await newSession(page, "ferry");
  await send(frame, "hello one");
  await finished(frame);
  const mark = frame.locator(".continuity");
  const row = sessionRow(page, "hello one");
  const id = await row.getAttribute("data-session");
  const become = (/** @type {string} */ continuity, attention = "idle") => feed({
    type: "session:state",
    sessionId: id,
    lastActiveAt: new Date().toISOString(),
    attention,
    continuity,
  });
  await expect(mark).toHaveText("Live");
  await expect(mark).toHaveAttribute("title", "The agent runs and remembers everything shown here.");
  await expect(row.locator(".row-continuity")).toHaveCount(0);
  await mark.click();
  const popover = frame.getByRole("dialog", { name: "How this conversation goes on" });
  await expect(popover).toBeFocused();
  await expect(popover.locator("strong")).toHaveText(["Live", "Resumed by the agent", "Copy only"]);
  await expect(popover.locator('[aria-current="true"]')).toHaveText(/Live\s*this session/);
  await page.keyboard.press("Escape");
  await expect(popover).toHaveCount(0);
  await expect(mark).toBeFocused();
  await page.keyboard.press("Enter");
  await expect(popover).toBeVisible();
  await frame.locator("#log").click();
  await expect(popover).toHaveCount(0);
  become("resumed");
  await expect(mark).toHaveText("Resumed by the agent");
  await expect(row.locator(".row-continuity")).toHaveAttribute("title", /^Resumed by the agent\. The agent was/);
  await expect(row).toHaveAttribute("aria-label", /Resumed by the agent$/);
  become("copy");
  await expect(mark).toHaveText("Copy only");
  await expect(mark).toHaveAttribute("title", /Your next message starts afresh/);
  await expect(row).toHaveAttribute("aria-label", /Copy only$/);
  await expect(frame.getByText("Context not restored.")).toBeVisible();
  await page.setViewportSize({ width: 390, height: 844 });
  await expect(page.locator("#top-bar").getByRole("img", { name: "Copy only" })).toBeVisible();
  await page.setViewportSize({ width: 1440, height: 900 });
  become("dormant");
  await expect(mark).toBeHidden();
  await expect(row.locator(".row-continuity")).toHaveCount(0);
  become("resumed", "disconnected");
  await expect(mark).toBeHidden();
});

test("a conversation is exported from the header, a row, a tab and the palette, in each format", async (
  { app, page, quiet },
) => {
  // The browser logs the export that fails.
  quiet.serverMayGo = true;
  /** @type {string[]} */
  const addresses = [];
  let broken = true;
  await page.route("**/api/session/*/export?*", async (route) => {
    const url = new URL(route.request().url());
    addresses.push(decodeURIComponent(url.pathname) + url.search);
    if (broken) return route.fulfill({
      status: 500,
      json: { error: { code: "INTERNAL_ERROR", message: "The journal could not be read." } },
    });
    return route.fulfill({
      body: "# hello one\n",
      headers: { "content-disposition": 'attachment; filename="hello one.md"' },
    });
  });
  await page.goto(app.link);
  await addProject(page, app.directory("ferry"));
  const frame = await newSession(page, "ferry");
  await send(frame, "hello one");
  await finished(frame);
  const id = await sessionRow(page, "hello one").getAttribute("data-session");
  const dialog = page.getByRole("dialog", { name: "Export conversation" });
  await frame.locator("#header").getByRole("button", { name: "More" }).click();
  await frame.getByRole("menuitem", { name: "Export…" }).click();
  await expect(dialog.getByRole("radio", { name: "Markdown" })).toBeFocused();
  await page.keyboard.press("Enter");
  await expect(dialog.getByRole("alert")).toHaveText("The journal could not be read.");
  broken = false;
  // By keyboard alone.
  await dialog.getByRole("radio", { name: "Markdown" }).focus();
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Tab");
  await page.keyboard.press("Space");
  await expect(dialog.getByRole("checkbox", { name: "Mask keys, tokens and e-mail addresses" })).toBeChecked();
  const [download] = await Promise.all([page.waitForEvent("download"), page.keyboard.press("Enter")]);
  expect(download.suggestedFilename()).toBe("hello one.md");
  expect(readFileSync(await download.path(), "utf8")).toBe("# hello one\n");
  await expect(dialog).toHaveCount(0);
  await expect(page.getByText("Exported as hello one.md")).toBeVisible();
  expect(addresses).toEqual([
    `/api/session/${id}/export?format=md`,
    `/api/session/${id}/export?format=html&redact=true`,
  ]);
  for (const open of [
    () => sessionRow(page, "hello one").click({ button: "right" }),
    () => tab(page, "hello one").click({ button: "right" }),
  ]) {
    await open();
    await page.getByRole("menuitem", { name: "Export…" }).click();
    await expect(dialog).toContainText("hello one");
    await page.keyboard.press("Escape");
    await expect(dialog).toHaveCount(0);
  }
  await page.keyboard.press("Control+k");
  await page.keyboard.type("export conv");
  await page.keyboard.press("Enter");
  await dialog.getByRole("radio", { name: "JSON" }).check();
  await Promise.all([page.waitForEvent("download"), dialog.getByRole("button", { name: "Export" }).click()]);
  expect(addresses.at(-1)).toBe(`/api/session/${id}/export?format=json`);
});
