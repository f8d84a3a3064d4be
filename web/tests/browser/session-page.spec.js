// session-page.spec.js: the parts of a session's page that a new user looks for.
import {
  addProject,
  current,
  expect,
  finished,
  newSession,
  projectRow,
  routeSocket,
  send,
  sessionRow,
  test,
} from "./app.js";
import { writeHistory } from "./saved-history.js";

/** @typedef {import("@playwright/test").FrameLocator} FrameLocator */

for (const width of [1300, 1440, 1900, 2400]) {
  test(`the conversation keeps its place when the rail comes and goes, at ${width} px`, async ({ app, shell }) => {
    await shell.setViewportSize({ width, height: 900 });
    await addProject(shell, app.directory("ferry"));
    const frame = await newSession(shell, "ferry");
    await send(frame, "hello");
    await finished(frame);
    const places = async () => {
      const boxes = await Promise.all(
        [".composer", ".message >> nth=0", ".user-turn >> nth=0"].map((part) => frame.locator(part).boundingBox()),
      );
      return boxes.map((box) => [box?.x, box?.width]);
    };
    await expect(frame.locator("#rail")).toBeHidden();
    const before = await places();
    await send(frame, "plan it");
    await finished(frame);
    await expect(frame.locator("#rail")).toBeVisible();
    expect(await places()).toEqual(before);
    await shell.keyboard.press("Control+.");
    await expect(frame.locator("#rail")).toBeHidden();
    expect(await places()).toEqual(before);
  });
}

test("options that are neither mode nor model are in a menu under their names; on a phone one menu holds all", async (
  { startApp, page },
) => {
  const app = await startApp({ script: "options" });
  await page.goto(app.link);
  await addProject(page, app.directory("ferry"));
  const frame = await newSession(page, "ferry");
  const buttons = frame.locator(".option-button");
  await expect(buttons).toHaveText(["Ask first", "gpt-5-codex · high", "Options"]);
  await frame.getByRole("button", { name: "Options" }).click();
  const menu = frame.getByRole("menu", { name: "Options" });
  await expect(menu.locator(".menu-heading")).toHaveText(["Collaboration mode", "Fast mode"]);
  await expect(menu.getByRole("group", { name: "Fast mode" }).getByRole("menuitemradio", { checked: true })).toHaveText(
    "Off",
  );
  await menu.getByRole("group", { name: "Fast mode" }).getByRole("menuitemradio", { name: "On" }).click();
  await frame.getByRole("button", { name: "Options" }).click();
  await expect(menu.getByRole("group", { name: "Fast mode" }).getByRole("menuitemradio", { checked: true })).toHaveText(
    "On",
  );
  await page.keyboard.press("Escape");
  await page.setViewportSize({ width: 390, height: 844 });
  await expect(buttons).toHaveText(["Options"]);
  await buttons.click();
  await expect(frame.locator(".menu-heading")).toHaveText(["Mode", "Model", "Collaboration mode", "Fast mode"]);
  await expect(frame.getByRole("menuitemradio", { checked: true })).toHaveText([
    "Ask first",
    "gpt-5-codex · high",
    "Default",
    "On",
  ]);
});

test("a command shows that output appears at its end, until its agent has sent live output", async (
  { app, shell },
) => {
  await addProject(shell, app.directory("ferry"));
  const frame = await newSession(shell, "ferry");
  await send(frame, "run the tests");
  await expect(frame.locator(".tool-silent")).toHaveText("Output appears when it ends");
  app.release("ferry");
  await finished(frame);
  await expect(frame.locator(".tool-silent")).toBeHidden();
  await addProject(shell, app.directory("atlas"));
  const other = await newSession(shell, "atlas");
  await send(other, "interleave");
  await expect(other.locator(".tool").first().locator(".line")).toHaveText(["first of one", "second of one"]);
  await expect(other.locator(".tool-silent >> visible=true")).toHaveCount(0);
  for (const name of ["release", "release-one"]) app.release("atlas", name);
  await finished(other);
  await addProject(shell, app.directory("third"));
  const third = await newSession(shell, "third");
  await send(third, "run the tests");
  await expect(third.locator(".tool-silent")).toHaveText("No output yet");
});

test("an agent whose login was refused is not shown as connected in header, footer or picker until login works", async (
  { app, page },
) => {
  let loggedIn = false;
  await routeSocket(page, (socket) => {
    const server = socket.connectToServer();
    server.onMessage((data) => {
      const frame = JSON.parse(String(data));
      if (frame.type !== "agent:list") return socket.send(data);
      const agents = frame.agents.map((/** @type {{ cliType: string }} */ agent) =>
        (agent.cliType === "Scripted" ? { ...agent, loggedIn, loginHint: "scripted login" } : agent));
      socket.send(JSON.stringify({ ...frame, agents }));
    });
  });
  await page.goto(app.link);
  await addProject(page, app.directory("ferry"));
  const frame = await newSession(page, "ferry");
  const picker = page.getByRole("dialog", { name: "New session" });
  const option = picker.locator(".picker-option", { hasText: "Scripted" });
  for (const [label, state] of [["Not logged in", "login"], ["Connected", "connected"]]) {
    // The list is requested again when the picker opens.
    await projectRow(page, "ferry").getByRole("button", { name: "New Session" }).click();
    await expect(option).toContainText(label ?? "");
    await expect(option.locator(".dot")).toHaveAttribute("data-state", state ?? "");
    await page.keyboard.press("Escape");
    await expect(frame.locator(".chip")).toHaveText(`Scripted · ${label}`);
    await expect(frame.locator(".chip .dot")).toHaveAttribute("data-state", state ?? "");
    await page.locator("#footer .footer-agents").click();
    const card = page.locator(".agent-card[data-key=Scripted]");
    await expect(card).toContainText(label ?? "");
    await expect(card.getByText("scripted login")).toHaveCount(loggedIn ? 0 : 1);
    await page.keyboard.press("Escape");
    loggedIn = true;
  }
});

test("an error is shown once, in the conversation, and stays there after the next turn and a reload", async (
  { app, shell },
) => {
  await addProject(shell, app.directory("ferry"));
  const frame = await newSession(shell, "ferry");
  await send(frame, "fail");
  await finished(frame);
  await expect(frame.locator("#status-line")).toContainText("Turn failed");
  await expect(frame.getByText("rate limit")).toHaveCount(1);
  await send(frame, "hello");
  await expect(frame.locator("#status-line")).toContainText("Finished");
  await shell.reload();
  const error = current(shell).locator('.notice[data-kind="error"]');
  await expect(error).toHaveText("Turn failed: rate limit");
  await expect(error).toBeVisible();
});

test("an answer is copied as markdown, by pointer and by keyboard, and its button moves nothing", async (
  { app, shell, context },
) => {
  await context.grantPermissions(["clipboard-read", "clipboard-write"]);
  await addProject(shell, app.directory("ferry"));
  const frame = await newSession(shell, "ferry");
  await send(frame, "markdown please");
  await finished(frame);
  const button = frame.getByRole("button", { name: "Copy answer" });
  await expect(button).toHaveCSS("opacity", "0");
  const before = await frame.locator(".message").boundingBox();
  await frame.locator(".message").hover();
  await expect(button).toHaveCSS("opacity", "1");
  expect(await frame.locator(".message").boundingBox()).toEqual(before);
  await button.click();
  await expect(frame.getByRole("button", { name: "Copied" })).toBeVisible();
  expect(await shell.evaluate(() => navigator.clipboard.readText())).toMatch(
    /^## What changed\n\nIt has \*\*bold\*\* words[\s\S]*Done\.$/,
  );
  await send(frame, "hold on");
  await expect(frame.locator(".message").last()).toHaveText("The first part.");
  await expect(frame.getByRole("button", { name: "Copy answer" })).toHaveCount(1);
  app.release("ferry");
  await finished(frame);
  await frame.getByRole("button", { name: "Copy answer" }).last().focus();
  await shell.keyboard.press("Enter");
  await expect.poll(() => shell.evaluate(() => navigator.clipboard.readText()))
    .toBe("The first part. The second part.");
});

test("a whole conversation is copied, also what the page has not loaded", async ({ startApp, page, context }) => {
  await context.grantPermissions(["clipboard-read", "clipboard-write"]);
  const app = await startApp();
  await app.stop();
  writeHistory(app, 2400);
  await app.start();
  await page.goto(app.link);
  await sessionRow(page, "A long history").click();
  await expect(current(page).getByText("Answer 600 of many")).toBeVisible();
  await expect(current(page).getByText("Question 1", { exact: true })).toHaveCount(0);
  await current(page).locator("#header").getByRole("button", { name: "More" }).click();
  await current(page).getByRole("menuitem", { name: "Copy conversation" }).click();
  await expect(page.getByText("Conversation copied")).toBeVisible();
  const text = await page.evaluate(() => navigator.clipboard.readText());
  expect(
    text.startsWith(
      "# A long history\n\n## You\n\nQuestion 1\n\n## Scripted\n\n```text\nRead a.ts\n```\n\n"
        + "Answer 1 of many, with **bold**",
    ),
  ).toBe(
    true,
  );
  expect(text.match(/^## You$/gm)).toHaveLength(600);
  expect([...text.matchAll(/^Question (\d+)$/gm)].map((match) => Number(match[1]))).toEqual(
    Array.from({ length: 600 }, (_, at) => at + 1),
  );
  await page.keyboard.press("Control+k");
  await page.keyboard.type("copy conv");
  await page.evaluate(() => navigator.clipboard.writeText(""));
  await page.keyboard.press("Enter");
  await expect.poll(() => page.evaluate(() => navigator.clipboard.readText())).toBe(text);
});
