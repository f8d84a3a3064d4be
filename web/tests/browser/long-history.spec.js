import { addProject, current, expect, finished, newSession, routeSocket, send, sessionRow, tab, test } from "./app.js";
import { writeHistory } from "./saved-history.js";

test("a long history is shown from its end, and older parts come as one scrolls up, each once and in place", async (
  { page, startApp },
) => {
  const app = await startApp();
  await app.stop();
  writeHistory(app, 1000);
  await app.start();
  await page.goto(app.link);
  await sessionRow(page, "A long history").click();
  const frame = current(page);
  await expect(frame.getByText("Answer 250 of many")).toBeVisible();
  await expect(frame.getByText("Question 250", { exact: true })).toHaveCount(1);
  await expect(frame.getByText("Question 1", { exact: true })).toHaveCount(0);
  const log = frame.locator("#log");
  await log.hover();
  await expect.poll(async () => {
    await page.mouse.wheel(0, -20_000);
    return frame.getByText("Question 1", { exact: true }).count();
  }, { timeout: 60_000, intervals: [100] }).toBe(1);
  await expect(frame.locator("#older")).toBeHidden();
  const questions = await frame.locator(".user-text").allTextContents();
  expect(questions).toEqual(Array.from({ length: 250 }, (_, at) => `Question ${at + 1}`));
});

test("TC-8.3b: a session from before this server was started opens in a new tab with its whole history", async (
  { page, startApp },
) => {
  const app = await startApp();
  await app.stop();
  writeHistory(app, 40);
  await app.start();
  await page.goto(app.link);
  await expect(page.locator(".tab")).toHaveCount(0);
  await sessionRow(page, "A long history").click();
  await expect(tab(page, "A long history")).toHaveAttribute("data-current", "");
  const frame = current(page);
  const each = (/** @type {(at: number) => string} */ text) => Array.from({ length: 10 }, (_, at) => text(at + 1));
  await expect(frame.locator(".user-text")).toHaveText(each((at) => `Question ${at}`));
  await expect(frame.locator(".message > .block:first-child")).toHaveText(
    each((at) => `Answer ${at} of many, with bold and code.`),
  );
  await expect(frame.locator(".thinking")).toHaveCount(10);
  await expect(frame.locator(".tool")).toHaveCount(10);
  await expect(frame.locator(".message figure.code code").first()).toHaveText("const a = 0;");
});

test("what is in view stays in place while older parts come in above", async ({ page, startApp }) => {
  const app = await startApp();
  await app.stop();
  writeHistory(app, 1000);
  await app.start();
  await page.goto(app.link);
  await sessionRow(page, "A long history").click();
  const frame = current(page);
  await expect(frame.getByText("Answer 250 of many")).toBeVisible();
  const before = await frame.locator(".user-text").count();
  const moved = await frame.locator("#log").evaluate(async (log) => {
    const frame = () => new Promise((resolve) => requestAnimationFrame(resolve));
    const turns = () => document.querySelectorAll(".turn").length;
    const settle = async () => {
      for (let still = 0, height = 0; still < 10; still += 1) {
        await frame();
        if (log.scrollHeight !== height) still = 0;
        height = log.scrollHeight;
      }
    };
    // The session was just opened: its layout settles first, then that of the place from which we scroll on.
    await settle();
    const count = turns();
    log.dispatchEvent(new WheelEvent("wheel"));
    log.scrollTop = 2000;
    await settle();
    if (turns() !== count) throw new Error("older parts came before they were wanted");
    log.dispatchEvent(new WheelEvent("wheel"));
    log.scrollTop = 1500;
    const anchor = document.elementsFromPoint(innerWidth / 2, 300).map((node) => node.closest(".turn")).find(Boolean);
    const place = () => anchor?.getBoundingClientRect().top ?? NaN;
    let before = place();
    while (turns() === count) {
      before = place();
      await frame();
    }
    for (let at = 0; at < 3; at += 1) await frame();
    return Math.abs(place() - before);
  });
  expect(moved).toBeLessThan(4);
  expect(await frame.locator(".user-text").count()).toBeGreaterThan(before);
});

test("older pages and lists that fail to load show an error, and load later", async ({ page, startApp }) => {
  const app = await startApp();
  await app.stop();
  writeHistory(app, 1000);
  await app.start();
  const refused = new Set(["session:page", "session:list"]);
  await routeSocket(page, (socket) => {
    const server = socket.connectToServer();
    socket.onMessage((message) => {
      const { type, requestId } = JSON.parse(String(message));
      // Each kind once.
      if (!refused.delete(type)) return server.send(message);
      socket.send(JSON.stringify({ type: "error", requestId, code: "INTERNAL_ERROR", message: `No ${type} today.` }));
    });
  });
  await page.goto(app.link);
  await expect(page.getByRole("alert").getByText("No session:list today.")).toBeVisible();
  await page.reload();
  await sessionRow(page, "A long history").click();
  const frame = current(page);
  await expect(frame.getByText("Answer 250 of many")).toBeVisible();
  const before = await frame.locator(".turn").count();
  await frame.locator("#log").hover();
  const scroll = () => page.mouse.wheel(0, -20_000);
  await expect(async () => {
    await scroll();
    await expect(page.getByRole("alert").getByText("No session:page today.")).toBeVisible({ timeout: 500 });
  }).toPass();
  await expect.poll(async () => {
    await scroll();
    return frame.locator(".turn").count();
  }, { timeout: 60_000, intervals: [200] }).toBeGreaterThan(before);
});

test("an agent that lost the conversation shows: context not restored", async ({ page, startApp }) => {
  const app = await startApp({ script: "forgetful" });
  await page.goto(app.link);
  await addProject(page, app.directory("ferry"));
  const frame = await newSession(page, "ferry");
  await send(frame, "hello one");
  await finished(frame);
  await send(frame, "crash now");
  await expect(frame.getByText("Connection to Scripted lost. Reconnecting...")).toBeVisible();
  app.mend();
  await expect(frame.getByText("Context not restored.")).toBeVisible({ timeout: 40_000 });
  await expect(frame.getByText("Scripted does not remember it", { exact: false })).toBeVisible();
  await expect(frame.getByText("Hello from the agent.")).toBeVisible();
});

test("an agent without output for long is shown as silent, with Cancel and Restart", async (
  { page, startApp },
) => {
  const app = await startApp({ env: { ACP_PROMPT_TIMEOUT_MS: "1000" } });
  await page.goto(app.link);
  await addProject(page, app.directory("ferry"));
  const frame = await newSession(page, "ferry");
  await send(frame, "hold on");
  await expect(frame.locator("#status-line")).toContainText(/No output for \d+ s/);
  await expect(frame.locator("#status-line").getByRole("button", { name: "Restart" })).toBeVisible();
  await frame.locator("#status-line").getByRole("button", { name: "Cancel" }).click();
  await expect(frame.locator(".turn-end")).toHaveText("Stopped");
});

test("a long message and a long output fold behind Show all", async ({ app, shell }) => {
  await addProject(shell, app.directory("ferry"));
  const frame = await newSession(shell, "ferry");
  await send(frame, `print it\n${Array.from({ length: 40 }, (_, at) => `row ${at + 1}`).join("\n")}`);
  await finished(frame);
  const user = frame.locator(".user-turn");
  const height = async () => (await user.boundingBox())?.height ?? 0;
  const folded = await height();
  await user.getByRole("button", { name: "Show all" }).click();
  await expect.poll(height).toBeGreaterThan(folded + 300);
  await expect(user.getByRole("button", { name: "Show all" })).toBeHidden();
  const tool = frame.locator(".tool");
  if ((await tool.locator(".tool-head").getAttribute("aria-expanded")) !== "true") {
    await tool.locator(".tool-head").click();
  }
  await expect(tool.getByText("line 2500", { exact: true })).toHaveCount(0);
  await tool.getByRole("button", { name: /^Show all/ }).click();
  await expect(tool.getByText("line 2500", { exact: true })).toHaveCount(1);
  await expect(tool.getByText("line 1", { exact: true })).toHaveCount(1);
  await expect(tool.getByText("line 5000", { exact: true })).toHaveCount(1);
});

test("a long edit is cut, is shown whole on request as the edit it is, and goes on from there", async (
  { app, shell },
) => {
  await addProject(shell, app.directory("ferry"));
  const frame = await newSession(shell, "ferry");
  await send(frame, "rewrite it");
  const tool = frame.locator(".tool");
  if ((await tool.locator(".tool-head").getAttribute("aria-expanded")) !== "true") {
    await tool.locator(".tool-head").click();
  }
  const lines = tool.locator(".diff .line.add");
  await expect(lines).toHaveCount(400);
  await expect(tool.getByText("row 500", { exact: true })).toHaveCount(0);
  await tool.getByRole("button", { name: "Show all (600 more lines)" }).click();
  await expect(lines).toHaveCount(1000);
  await expect(tool.locator(".diff .line.add").filter({ hasText: "row 500" })).toContainText("500");
  await expect(tool.locator(".tool-output")).toHaveText("It is being written.");
  await expect(tool.getByRole("button", { name: /^Show all/ })).toBeHidden();
  app.release("ferry");
  await finished(frame);
  await expect(tool.locator(".tool-output")).toHaveText("It is being written. The disk is full.");
  await tool.getByRole("button", { name: "Show all (600 more lines)" }).click();
  await expect(lines).toHaveCount(1000);
});

test("a paragraph of any length is one piece in the end, whatever it was drawn in", async ({ app, shell }) => {
  await addProject(shell, app.directory("ferry"));
  const frame = await newSession(shell, "ferry");
  await frame.locator("#turns").evaluate((turns) => new MutationObserver((changes) => {
    if (changes.some(({ addedNodes }) => [...addedNodes].some((node) => node.nodeName === "WBR"))) {
      turns.dataset.pieces = "";
    }
  }).observe(turns, { childList: true, subtree: true }));
  await send(frame, "flood-prose");
  await finished(frame);
  await expect(frame.locator("#turns"), "it was drawn in pieces").toHaveAttribute("data-pieces");
  const paragraph = frame.locator(".message p");
  await expect(paragraph.locator("wbr")).toHaveCount(0);
  const text = await paragraph.evaluate((node) => (node.childNodes.length === 1 ? node.textContent : "in pieces"));
  const numbers = [...(text ?? "").matchAll(/number (\d+)/g)].map(([, number]) => Number(number));
  expect(numbers).toEqual(Array.from({ length: 2000 }, (_, at) => at + 1));
  expect(text?.endsWith("the last word")).toBe(true);
});

test("code of any length reads and measures as if it had come at once", async ({ app, shell }) => {
  await addProject(shell, app.directory("ferry"));
  const frame = await newSession(shell, "ferry");
  await send(frame, "flood-code");
  await finished(frame);
  const code = frame.locator(".message pre code");
  await expect(code.locator("code-lines"), "it was drawn in pieces").not.toHaveCount(0);
  const look = () =>
    code.evaluate((node) => ({ text: node.textContent ?? "", height: node.getBoundingClientRect().height }));
  const streamed = await look();
  expect([...streamed.text.matchAll(/let x(\d+)/g)].map(([, number]) => Number(number))).toEqual(
    Array.from({ length: 2000 }, (_, at) => at + 1),
  );
  await shell.reload();
  await expect(code).toContainText("the last word");
  await expect(code.locator("code-lines")).toHaveCount(0);
  expect(streamed).toEqual(await look());
});
