import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import {
  addProject,
  current,
  expect,
  finished,
  framesOf,
  newSession,
  projectRow,
  routeSocket,
  send,
  sessionRow,
  tab,
  test,
} from "./app.js";

const axe = readFileSync(new URL("../../node_modules/axe-core/axe.min.js", import.meta.url), "utf8");

/** No serious or critical violation in any frame. @param {import("@playwright/test").Page} page @param {string} what */
async function checkAccess(page, what) {
  for (const frame of await framesOf(page)) {
    await frame.evaluate(axe);
    const violations = await frame.evaluate(async () => {
      const result = await /** @type {any} */ (window).axe.run(document, {
        iframes: false,
        runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"],
      });
      return result.violations.map((/** @type {any} */ violation) => {
        const targets = violation.nodes.map((/** @type {any} */ node) => node.target.join(" "));
        return `${violation.impact} ${violation.id}: ${targets.join(", ")}`;
      });
    });
    expect(
      violations.filter((/** @type {string} */ violation) => /^(serious|critical)/.test(violation)),
      what,
    ).toEqual([]);
  }
}

for (const theme of /** @type {const} */ (["dark", "light"])) {
  test.describe(theme, () => {
    test.use({ colorScheme: theme });
    test(`axe finds nothing serious on any main screen (${theme})`, async ({ app, shell }) => {
      // Many screens.
      test.slow();
      await shell.emulateMedia({ reducedMotion: "reduce", colorScheme: theme });
      await expect(shell.locator("html")).toHaveAttribute("data-theme", theme);
      await checkAccess(shell, "first run");
      await addProject(shell, app.directory("ferry"));
      await expect(shell.getByRole("heading", { name: "No session open" })).toBeVisible();
      await checkAccess(shell, "no session");
      await shell.locator(".new-tab").click();
      await checkAccess(shell, "picker");
      await shell.keyboard.press("Escape");
      const frame = await newSession(shell, "ferry");
      await checkAccess(shell, "new session");
      for (const text of ["markdown please", "explore it", "edit it", "broken it", "think about it", "plan it"]) {
        await send(frame, text);
        await finished(frame);
      }
      await frame.locator(".thinking button").click();
      await checkAccess(shell, "conversation");
      await frame.locator(".continuity").click();
      await expect(frame.getByRole("dialog", { name: "How this conversation goes on" })).toBeVisible();
      await checkAccess(shell, "continuity");
      await shell.keyboard.press("Escape");
      await tab(shell, "markdown please").click({ button: "right" });
      await shell.getByRole("menuitem", { name: "Export…" }).click();
      await expect(shell.getByRole("dialog", { name: "Export conversation" })).toBeVisible();
      await checkAccess(shell, "export");
      await shell.keyboard.press("Escape");
      await shell.keyboard.press("Control+k");
      await expect(shell.getByRole("dialog")).toBeVisible();
      await checkAccess(shell, "palette");
      await shell.keyboard.press("Escape");
      await shell.locator(".tab [role=tab]").first().focus();
      await shell.keyboard.press("Shift+?");
      await expect(shell.getByRole("dialog", { name: "Keyboard shortcuts" })).toBeVisible();
      await checkAccess(shell, "keyboard shortcuts");
      await shell.keyboard.press("Escape");
      await shell.locator(".projects .section-title [data-command=add-project]").click();
      await checkAccess(shell, "add project");
      await shell.keyboard.press("Escape");
      await shell.locator("#footer").getByRole("button", { name: "Settings" }).click();
      await expect(shell.getByRole("button", { name: "Try it: Demo agent" })).toBeVisible();
      await checkAccess(shell, "settings");
      await shell.getByRole("button", { name: "Edit Scripted" }).click();
      await shell.getByRole("dialog", { name: "Edit Scripted" }).getByRole("button", { name: "Try it" }).click();
      await expect(shell.locator(".agent-form .probe")).toContainText("It answers");
      await checkAccess(shell, "edit agent");
      await shell.keyboard.press("Escape");
      await shell.keyboard.press("Escape");
      await shell.locator("#footer .footer-agents").click();
      await expect(shell.getByRole("dialog", { name: "Agents" })).toBeVisible();
      await checkAccess(shell, "agents");
      await shell.keyboard.press("Escape");
      await projectRow(shell, "ferry").click({ button: "right" });
      await expect(shell.getByRole("menu")).toBeVisible();
      await checkAccess(shell, "menu");
      await shell.keyboard.press("Escape");
      await send(frame, "run the tests");
      await expect(frame.locator('.tool[data-state="running"]')).toBeVisible();
      await checkAccess(shell, "at work");
      await projectRow(shell, "ferry").click({ button: "right" });
      await shell.getByRole("menuitem", { name: "Remove from sidebar" }).click();
      await checkAccess(shell, "remove a project that works");
      await shell.keyboard.press("Escape");
      app.release("ferry");
      await finished(frame);
      for (const width of [820, 390]) {
        await shell.setViewportSize({ width, height: 900 });
        await checkAccess(shell, `${width} px`);
      }
      await shell.locator(".top-bar [data-command=sidebar]").click();
      await checkAccess(shell, "sidebar of a phone");
    });

    test(`axe finds nothing serious in turns that are forgotten or not recorded (${theme})`, async ({ app, page }) => {
      await page.emulateMedia({ reducedMotion: "reduce", colorScheme: theme });
      await routeSocket(page, (socket) => {
        const server = socket.connectToServer();
        server.onMessage((data) => {
          const frame = JSON.parse(String(data));
          const turns = (/** @type {object[]} */ all) => all.map((turn) => ({ ...turn, forgotten: true }));
          socket.send(JSON.stringify(frame.type === "session:turn" ? { ...frame, recorded: false }
            : frame.type === "session:history" ? { ...frame, turns: turns(frame.turns) } : frame));
        });
      });
      await page.goto(app.link);
      await addProject(page, app.directory("ferry"));
      await send(await newSession(page, "ferry"), "markdown please");
      await finished(current(page));
      await page.reload();
      await expect(current(page).locator(".user-turn")).toHaveCount(1);
      await send(current(page), "hello");
      await finished(current(page));
      await expect(current(page).locator(".memory-mark")).toHaveCount(2);
      await expect(current(page).locator(".user-unrecorded >> visible=true")).toHaveCount(1);
      await checkAccess(page, "forgotten and not recorded");
    });

    test(`axe finds nothing serious on the screens of what can go wrong (${theme})`, async (
      { startApp, page, quiet },
    ) => {
      await page.emulateMedia({ reducedMotion: "reduce", colorScheme: theme });
      const app = await startApp();
      await app.stop();
      writeFileSync(join(app.data, "sessions.json"), "{ not json", { mode: 0o600 });
      await app.start();
      await page.goto(app.link);
      await expect(page.locator(".lasting-notice")).toBeVisible();
      await addProject(page, app.directory("ferry"));
      const frame = await newSession(page, "ferry");
      await send(frame, "then crash");
      await expect(frame.getByText("Connection to Scripted lost. Reconnecting...")).toBeVisible();
      await checkAccess(page, "reconnecting, with a notice");
      quiet.serverMayGo = true;
      await app.stop();
      await expect(page.locator("#offline")).toBeVisible();
      await checkAccess(page, "server gone");
    });
  });
}

test("with reduced motion nothing moves, and every state is still shown", async ({ app, shell }) => {
  await shell.emulateMedia({ reducedMotion: "reduce" });
  await addProject(shell, app.directory("ferry"));
  const frame = await newSession(shell, "ferry");
  await send(frame, "hold on");
  await expect(frame.locator(".message")).toHaveText("The first part.");
  await expect(sessionRow(shell, "hold on").getByRole("img", { name: "Working" })).toBeVisible();
  const moving = async () =>
    Promise.all((await framesOf(shell)).map((page) => page.evaluate(() => document.getAnimations().length)));
  expect(await moving()).toEqual([0, 0]);
  // Without it the same page does move: the spinner and the cursor.
  await shell.emulateMedia({ reducedMotion: "no-preference" });
  await expect.poll(async () => (await moving()).every((count) => count > 0)).toBe(true);
});

test("the main flow works by keyboard alone", async ({ app, shell }) => {
  app.directory("ferry");
  await expect(shell.getByRole("combobox", { name: "Directory" })).toBeFocused();
  await shell.keyboard.type("code/ferry");
  await expect(shell.getByRole("option")).toHaveText(["ferry/"]);
  await shell.keyboard.press("Enter");
  await expect(projectRow(shell, "ferry")).toBeVisible();
  await shell.keyboard.press("Alt+KeyN");
  const dialog = shell.getByRole("dialog", { name: "New session" });
  await expect(dialog).toBeVisible();
  const number = await dialog.locator(".picker-option", { hasText: "Scripted" }).locator(".kbd").textContent();
  await shell.keyboard.press(number ?? "");
  await expect(current(shell).locator("textarea")).toBeFocused();
  await shell.keyboard.type("hello by keyboard");
  await shell.keyboard.press("Enter");
  await expect(current(shell).getByText("Hello from the agent.")).toBeVisible();
  await shell.keyboard.press("Control+k");
  await expect(shell.getByRole("combobox", { name: "Search or jump to" })).toBeFocused();
  await shell.keyboard.type("keyb");
  await expect(shell.getByRole("option", { selected: true })).toContainText("hello by keyboard");
  await shell.keyboard.press("Escape");
  await shell.keyboard.press("Alt+KeyW");
  await expect(shell.locator(".tab")).toHaveCount(0);
  await shell.keyboard.press("F6");
  await shell.keyboard.press("End");
  await expect(sessionRow(shell, "hello by keyboard")).toBeFocused();
  await shell.keyboard.press("Enter");
  await expect(tab(shell, "hello by keyboard")).toHaveAttribute("data-current", "");
  await expect(current(shell).locator("textarea")).toBeFocused();
});

test("the theme is stored and shown in every portlet, without a flash", async ({ app, shell }) => {
  await addProject(shell, app.directory("ferry"));
  const frame = await newSession(shell, "ferry");
  await shell.getByRole("button", { name: "Change theme" }).click();
  await expect(shell.locator("html")).toHaveAttribute("data-theme", "light");
  await expect(frame.locator("html")).toHaveAttribute("data-theme", "light");
  await shell.addInitScript(() => {
    new MutationObserver(() => {
      const theme = document.documentElement?.dataset.theme;
      if (theme) {
        /** @type {any} */ (window).themes = [...new Set([...(/** @type {any} */ (window).themes ?? []), theme])];
      }
    }).observe(document, { subtree: true, childList: true, attributes: true });
  });
  await shell.reload();
  await expect(sessionRow(shell, "New Session")).toBeVisible();
  expect(await shell.evaluate(() => /** @type {any} */ (window).themes)).toEqual(["light"]);
});

for (const width of [1440, 820, 390]) {
  test(`nothing is wider than the window at ${width} px`, async ({ app, shell }) => {
    await addProject(shell, app.directory("a-project-with-quite-a-long-name-that-does-not-fit"));
    const frame = await newSession(shell, "a-project-with-quite-a-long-name-that-does-not-fit");
    await send(frame, `markdown ${"unbroken".repeat(40)}`);
    await finished(frame);
    await shell.setViewportSize({ width, height: 900 });
    for (const page of shell.frames()) {
      expect(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth)).toBe(true);
    }
    expect(await frame.locator("#log").evaluate((node) => node.scrollWidth <= node.clientWidth)).toBe(true);
  });
}

test("the sidebar is resized by keys, hidden and shown, and remembered", async ({ app, shell }) => {
  await addProject(shell, app.directory("ferry"));
  const separator = shell.getByRole("separator", { name: "Width of the sidebar" });
  await separator.focus();
  await shell.keyboard.press("ArrowRight");
  await expect(separator).toHaveAttribute("aria-valuenow", "300");
  await shell.reload();
  await expect(separator).toHaveAttribute("aria-valuenow", "300");
  await shell.keyboard.press("Control+b");
  await expect(shell.locator("#sidebar")).toBeHidden();
  await shell.getByRole("button", { name: "Show sidebar" }).click();
  await expect(shell.locator("#sidebar")).toBeVisible();
});
