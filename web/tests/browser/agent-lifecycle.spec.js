import { readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { addProject, current, expect, finished, newSession, projectRow, send, sessionRow, tab, test } from "./app.js";
import { writeHistory, writeSessions } from "./saved-history.js";

/** @param {import("@playwright/test").Page} page @param {string} [agent] */
async function pick(page, agent = "Scripted") {
  await projectRow(page, "ferry").getByRole("button", { name: "New Session" }).click();
  await page.getByRole("dialog", { name: "New session" }).locator(".picker-option", { hasText: agent }).click();
}

test("TC-5.1a, TC-5.2a: the first session starts the agent, and its state is shown", async ({ app, shell }) => {
  await addProject(shell, app.directory("ferry"));
  await expect(shell.locator("#footer")).toContainText("Scripted: Not running");
  const frame = await newSession(shell, "ferry");
  await expect(frame.locator(".chip")).toHaveText("Scripted · Connected");
  await expect(shell.locator("#footer")).toContainText("Scripted: Connected");
});

test("TC-5.1b: later sessions use the same process", async ({ app, shell }) => {
  await addProject(shell, app.directory("ferry"));
  await newSession(shell, "ferry");
  await newSession(shell, "ferry");
  const ids = await shell.locator(".session-row")
    .evaluateAll((rows) => rows.map((row) => /** @type {HTMLElement} */ (row).dataset.session ?? ""));
  const processes = new Set(ids.map((id) => /:s(\d+)-/.exec(id)?.[1]));
  expect(ids).toHaveLength(2);
  expect(processes.size).toBe(1);
});

test("TC-5.2b, TC-5.2c, TC-5.2d: a lost agent is reported, retried, and reconnected on request", async (
  { startApp, page: shell },
) => {
  test.slow();
  const app = await startApp({ script: "slow-start" });
  const gate = join(app.home, "release");
  writeFileSync(gate, "");
  await shell.goto(app.link);
  await addProject(shell, app.directory("ferry"));
  const frame = await newSession(shell, "ferry");
  await send(frame, "crash now");
  await expect(frame.getByText("Connection to Scripted lost. Reconnecting...")).toBeVisible();
  await expect(frame.locator(".chip")).toHaveText("Scripted · Reconnecting");
  await expect(frame.locator("textarea")).toBeDisabled();
  await expect(frame.locator("textarea")).toHaveAttribute("placeholder", "Reconnecting to Scripted…");
  await expect(frame.getByText(/Attempt \d of 5/)).toBeVisible();
  await expect(frame.locator(".message")).toHaveText("Before the end.");
  await expect(shell.locator("#footer")).toContainText("Scripted: Disconnected", { timeout: 75_000 });
  await expect(frame.locator(".chip")).toHaveText("Scripted · Disconnected");
  await expect(shell.locator(".inbox-row").first()).toContainText("Scripted disconnected");
  await expect(frame.locator("textarea")).toBeDisabled();
  await expect(frame.locator("textarea")).toHaveAttribute("placeholder", "Reconnect to send a message");
  await expect(frame.getByText("Connection to Scripted lost.", { exact: true })).toBeVisible();
  app.mend();
  // It is held while it starts, so that the test sees what is shown meanwhile.
  rmSync(gate);
  await frame.getByRole("button", { name: "Reconnect", exact: true }).click();
  await expect(frame.locator(".chip")).toHaveText("Scripted · Reconnecting");
  await expect(frame.locator("textarea")).toBeDisabled();
  writeFileSync(gate, "");
  await expect(frame.locator(".chip")).toHaveText("Scripted · Connected");
  await expect(frame.locator("textarea")).toBeEnabled();
  await send(frame, "hello again");
  await expect(frame.getByText("Hello from the agent.")).toBeVisible();
});

test("TC-5.4a: while an agent starts, a launching mark is shown", async ({ startApp, page }) => {
  const app = await startApp({ script: "slow-start" });
  await page.goto(app.link);
  await addProject(page, app.directory("ferry"));
  await pick(page);
  await expect(page.getByRole("heading", { name: "Starting Scripted" })).toBeVisible();
  await expect(page.locator(".tab[data-provisional]")).toHaveText("New Session");
  await expect(page.locator(".session-row")).toHaveCount(0);
  writeFileSync(join(app.home, "release"), "");
  await expect(page.locator(".tab[data-provisional]")).toHaveCount(0);
  await expect(sessionRow(page, "New Session")).toBeVisible();
});

test("a start is cancelled by a slow press while its timer is redrawn", async ({ startApp, page }) => {
  const app = await startApp({ script: "slow-start" });
  await page.goto(app.link);
  await addProject(page, app.directory("ferry"));
  await pick(page);
  const cancel = page.getByRole("button", { name: "Cancel" });
  await cancel.focus();
  await cancel.hover();
  await page.mouse.down();
  const time = page.locator(".step-time").first();
  const before = await time.textContent();
  await expect(time).not.toHaveText(before ?? "");
  await expect(cancel).toBeFocused();
  await page.mouse.up();
  await expect(page.locator(".tab[data-provisional]")).toHaveCount(0);
  await expect(page.getByRole("heading", { name: "No session open" })).toBeVisible();
});

test("an agent that ignores Stop hangs in its session, which offers Restart; its other session continues", async (
  { app, shell },
) => {
  await addProject(shell, app.directory("ferry"));
  const other = await newSession(shell, "ferry");
  await send(other, "hold");
  await expect(other.getByText("The first part.")).toBeVisible();
  const frame = await newSession(shell, "ferry");
  await send(frame, "deaf");
  await expect(frame.getByText("I do not listen.")).toBeVisible();
  await frame.getByRole("button", { name: "Stop" }).click();
  await expect(frame.locator(".turn-end")).toHaveText("Stopped", { timeout: 9_000 });
  await expect(frame.getByText("Scripted hangs.", { exact: true })).toBeVisible();
  await expect(frame.getByText("Connection to Scripted lost.")).toHaveCount(0);
  await expect(frame.locator("textarea")).toHaveAttribute("placeholder", "Restart to send a message");
  await expect(shell.locator("#footer")).toContainText("Scripted: Connected");
  app.release("ferry");
  await sessionRow(shell, "hold").click();
  await expect(current(shell).getByText("The first part. The second part.")).toBeVisible();
  await expect(shell.locator("#inbox .inbox-row", { hasText: "deaf" })).toBeVisible();
  await sessionRow(shell, "deaf").click();
  // A window opened later shows the same.
  await shell.reload();
  await expect(current(shell).getByText("Scripted hangs.", { exact: true })).toBeVisible();
  await current(shell).getByRole("button", { name: "Restart", exact: true }).click();
  await expect(current(shell).locator("textarea")).toBeEnabled();
  await send(current(shell), "hello again");
  await expect(current(shell).getByText("Hello from the agent.")).toBeVisible();
});

test("TC-5.5a: an agent that is not installed shows an error with Retry and the install command", async (
  { startApp, page },
) => {
  const app = await startApp({ env: { CODEX_ACP_CMD: "no-such-program-here" } });
  await page.goto(app.link);
  await addProject(page, app.directory("ferry"));
  await projectRow(page, "ferry").getByRole("button", { name: "New Session" }).click();
  const option = page.locator(".picker-row", { hasText: "Codex" });
  await expect(option).toContainText("Not installed");
  await expect(option.getByRole("button", { name: /Copy/ })).toBeVisible();
  await option.locator(".picker-option").click({ force: true });
  await expect(page.getByRole("dialog", { name: "New session" })).toBeVisible();
});

test("TC-5.5a: an agent uninstalled while it is picked shows an error with Retry and other agents", async (
  { startApp, page },
) => {
  const app = await startApp();
  await app.stop();
  const program = join(app.home, "agent");
  const install = () => symlinkSync(process.execPath, program);
  install();
  const [script] = JSON.parse(readFileSync(join(app.data, "agents.json"), "utf8")).agent_servers.Scripted.args;
  writeFileSync(join(app.data, "agents.json"), JSON.stringify({
    agent_servers: { Scripted: { command: program, args: [script], install_hint: "npm install -g scripted" } },
  }), { mode: 0o600 });
  await app.start();
  await page.goto(app.link);
  await addProject(page, app.directory("ferry"));
  await projectRow(page, "ferry").getByRole("button", { name: "New Session" }).click();
  const option = page.getByRole("dialog", { name: "New session" }).locator(".picker-option", { hasText: "Scripted" });
  await expect(option).not.toHaveAttribute("aria-disabled");
  rmSync(program);
  await option.click();
  await expect(page.locator(".state-title")).toHaveText("Could not start Scripted. Check that it's installed.");
  await expect(page.locator(".failed-command code")).toHaveText("npm install -g scripted");
  await expect(page.getByRole("button", { name: "Use another agent" })).toBeVisible();
  await expect(page.locator(".tab")).toHaveCount(0);
  await expect(page.locator(".session-row")).toHaveCount(0);
  install();
  await page.getByRole("button", { name: "Retry" }).click();
  await expect(current(page).locator("textarea")).toBeEnabled();
});

test("a session whose agent was uninstalled shows an error with Retry and the install command", async (
  { page, startApp },
) => {
  const app = await startApp();
  await app.stop();
  writeHistory(app, 8);
  writeFileSync(join(app.data, "agents.json"), JSON.stringify({
    agent_servers: { Scripted: { command: join(app.home, "nowhere"), install_hint: "npm install -g scripted" } },
  }), { mode: 0o600 });
  await app.start();
  await page.goto(app.link);
  await sessionRow(page, "A long history").click();
  const banner = current(page).locator(".banner");
  await expect(banner).toContainText("Could not start Scripted. Check that it's installed.");
  await expect(banner.locator("code")).toHaveText("npm install -g scripted");
  await expect(banner.getByRole("button", { name: "Copy" })).toBeVisible();
  await expect(banner.getByRole("button", { name: "Retry" })).toBeVisible();
});

test("TC-5.5b: a failed handshake shows an error with Retry, and no session remains", async ({ startApp, page }) => {
  const app = await startApp({ script: "no-handshake" });
  await page.goto(app.link);
  await addProject(page, app.directory("ferry"));
  await pick(page);
  await expect(page
    .getByRole("alert")
    .getByText("Could not connect to Scripted")
    .or(page.getByRole("heading", { name: "Could not connect to Scripted" }))).toBeVisible();
  await expect(page.locator(".tab")).toHaveCount(0);
  await expect(page.locator(".session-row")).toHaveCount(0);
  await page.getByRole("button", { name: "Retry" }).click();
  await expect(page.locator(".state-title")).toHaveText("Could not connect to Scripted");
  await page.getByRole("button", { name: "Dismiss" }).click();
  await expect(page.getByRole("heading", { name: "No session open" })).toBeVisible();
});

test("TC-2.2f: a session that could not be created shows an error with Retry, and no session remains", async (
  { startApp, page },
) => {
  const app = await startApp({ script: "refuse" });
  await page.goto(app.link);
  await addProject(page, app.directory("ferry"));
  await pick(page);
  const failure = async () => {
    await expect(page.locator(".state-title")).toHaveText("Could not create session");
    await expect(page.getByText("no more sessions")).toBeAttached();
    await expect(page.locator(".tab")).toHaveCount(0);
    await expect(page.locator(".session-row")).toHaveCount(0);
  };
  await failure();
  // Retry requests it again and shows the error again.
  await page.getByRole("button", { name: "Retry" }).click();
  await expect.poll(() => readFileSync(join(app.home, ".scripted-agent", "refused"), "utf8").length).toBe(2);
  await failure();
  writeFileSync(join(app.home, "release"), "");
  await page.getByRole("button", { name: "Retry" }).click();
  await expect(current(page).locator("textarea")).toBeEnabled();
  await expect(sessionRow(page, "New Session")).toBeVisible();
});

test("TC-5.6b: a reload loses nothing of a running turn", async ({ app, shell }) => {
  await addProject(shell, app.directory("ferry"));
  const frame = await newSession(shell, "ferry");
  await send(frame, "hold on");
  await expect(frame.locator(".message")).toHaveText("The first part.");
  await shell.reload();
  await expect(tab(shell, "hold on")).toHaveAttribute("data-current", "");
  await expect(current(shell).locator(".message")).toHaveText("The first part.");
  await expect(current(shell).locator("#status-line")).toContainText("Working");
  app.release("ferry");
  await expect(current(shell).locator(".message")).toHaveText("The first part. The second part.");
  await finished(current(shell));
  await send(current(shell), "hello again");
  await expect(current(shell).getByText("Hello from the agent.")).toBeVisible();
});

test("TC-5.3a: when the server ends, so do its agents", async ({ app, shell, quiet }) => {
  await addProject(shell, app.directory("ferry"));
  await newSession(shell, "ferry");
  const id = await shell.locator(".session-row").getAttribute("data-session");
  const pid = Number(/:s(\d+)-/.exec(id ?? "")?.[1]);
  expect(process.kill(pid, 0)).toBe(true);
  quiet.serverMayGo = true;
  await app.stop();
  await expect.poll(() => {
    try {
      return process.kill(pid, 0);
    } catch {
      return false;
    }
  }).toBe(false);
});

test("switching between sessions of two agents keeps the state of both, and what is typed", async (
  { startApp, page },
) => {
  const app = await startApp({ names: ["Scripted", "Second"] });
  await page.goto(app.link);
  await addProject(page, app.directory("ferry"));
  await send(await newSession(page, "ferry", "Scripted"), "hello first");
  await expect(current(page).getByText("Hello from the agent.")).toBeVisible();
  const second = await newSession(page, "ferry", "Second");
  await second.locator("textarea").fill("a draft for the second");
  await tab(page, "hello first").click();
  await expect(current(page).getByText("Hello from the agent.")).toBeVisible();
  await expect(current(page).locator(".chip")).toHaveText("Scripted · Connected");
  await tab(page, "New Session").click();
  await expect(current(page).locator("textarea")).toHaveValue("a draft for the second");
  await expect(current(page).locator(".chip")).toHaveText("Second · Connected");
});

test("sessions opened while the server is down are shown when it is back", async ({ startApp, page, quiet }) => {
  const app = await startApp();
  await app.stop();
  writeSessions(app, ["hello one", "hello two", "hello three"]);
  await app.start();
  await page.goto(app.link);
  await expect(sessionRow(page, "hello one")).toBeVisible();
  quiet.serverMayGo = true;
  await app.stop();
  await expect(page.locator("#offline")).toBeVisible();
  // The first may get a page that was loaded before; the others cannot.
  for (const text of ["hello one", "hello two", "hello three"]) {
    await sessionRow(page, text).click();
    await expect(tab(page, text)).toHaveAttribute("data-current", "");
  }
  await app.start();
  await expect(page.locator("#offline")).toBeHidden();
  for (const [at, text] of ["hello one", "hello two", "hello three"].entries()) {
    await tab(page, text).click();
    await expect(current(page).getByText(`Answer to ${at}.`)).toBeVisible();
  }
});

test("a session whose frame is reloaded shows its whole conversation", async ({ app, shell }) => {
  await addProject(shell, app.directory("ferry"));
  const frame = await newSession(shell, "ferry");
  await send(frame, "hello there");
  await finished(frame);
  await frame.locator("html").evaluate(() => {
    /** @type {any} */ (window).old = true;
    location.reload();
  });
  await expect.poll(() =>
    frame.locator("html").evaluate(() => /** @type {any} */ (window).old).catch(() => true)).toBeUndefined();
  await expect(frame.locator(".user-text")).toHaveText("hello there");
  await expect(frame.getByText("Hello from the agent.")).toBeVisible();
  await send(frame, "hello again");
  await expect(frame.locator(".message")).toHaveCount(2);
});

test("a session's frame has the session's title, whatever it becomes", async ({ app, shell }) => {
  await addProject(shell, app.directory("ferry"));
  const frame = await newSession(shell, "ferry");
  await expect(shell.locator("iframe.portlet")).toHaveAttribute("title", "New Session");
  await send(frame, "hello there");
  await expect(shell.locator("iframe.portlet")).toHaveAttribute("title", "hello there");
});

test("two windows on one session show the same text", async ({ app, shell, context }) => {
  await addProject(shell, app.directory("ferry"));
  const frame = await newSession(shell, "ferry");
  await send(frame, "hold on");
  const other = await context.newPage();
  await other.goto(app.link);
  await sessionRow(other, "hold on").click();
  await expect(current(other).locator(".message")).toHaveText("The first part.");
  app.release("ferry");
  for (const page of [shell, other]) {
    await expect(current(page).locator(".message")).toHaveText("The first part. The second part.");
  }
});

test("a session that ends while another is in view is listed as finished, until it is seen", async ({ app, shell }) => {
  await addProject(shell, app.directory("ferry"));
  await addProject(shell, app.directory("atlas"));
  const frame = await newSession(shell, "ferry");
  await send(frame, "hold on");
  await expect(frame.locator(".message")).toHaveText("The first part.");
  await newSession(shell, "atlas");
  await expect(shell.locator("#working-count")).toHaveText("1 working");
  app.release("ferry");
  await expect(shell.locator("#finished .inbox-row")).toContainText("hold on");
  // Nobody waits for the user, so nothing is counted.
  await expect(shell.locator("#inbox")).toBeHidden();
  await expect(shell).toHaveTitle("Liminal Builder");
  await shell.keyboard.press("Control+j");
  await expect(tab(shell, "hold on")).toHaveAttribute("data-current", "");
  await expect(shell.locator("#finished")).toBeHidden();
  await expect(shell).toHaveTitle("Liminal Builder");
});
