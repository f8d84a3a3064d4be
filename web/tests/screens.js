// Takes a picture of every screen, from the real binary, into docs/screenshots/.
import { chromium } from "@playwright/test";
import { mkdirSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { App, addProject, current, finished, newSession, projectRow, send, sessionRow, tab } from "./browser/app.js";
import config from "./playwright.config.js";

const folder = fileURLToPath(new URL("../../docs/screenshots/", import.meta.url));
mkdirSync(folder, { recursive: true });

const browser = await chromium.launch({ ...config.use?.launchOptions });

/** @typedef {import("@playwright/test").Page} Page */

/**
 * @param {{ width?: number, height?: number, theme?: "dark" | "light", script?: string }} view
 * @param {(page: Page, app: App, shot: (name: string) => Promise<unknown>) => Promise<void>} visit
 */
async function visit({ width = 1440, height = 900, theme = "dark", script = "" }, visit) {
  const app = await new App({ script }).start();
  const context = await browser.newContext({ viewport: { width, height }, colorScheme: theme });
  const page = await context.newPage();
  page.setDefaultTimeout(20_000);
  try {
    await page.goto(app.link);
    await visit(page, app, async (name) => {
      await page.mouse.move(width - 5, height - 5);
      await page.screenshot({ path: `${folder}${name}.png` });
      console.log(name);
    });
  } finally {
    await context.close();
    await app.remove();
  }
}

/** A day's work: three projects, sessions that finished, failed and still work. @param {Page} page @param {App} app */
async function workday(page, app) {
  for (const name of ["atlas-api", "atlas-web", "ferry"]) await addProject(page, app.directory(name));
  const talk = async (/** @type {string} */ project, /** @type {string} */ words, wait = true) => {
    const frame = await newSession(page, project);
    await send(frame, words);
    if (wait) await finished(frame);
    return frame;
  };
  await talk("atlas-api", "Explain the retry budget, markdown please");
  await talk("atlas-web", "Dark mode for settings: hold on until I say so", false);
  await talk("atlas-web", "Bundle size regression, then fail");
  await talk("ferry", "Release checklist: make a plan");
  await newSession(page, "ferry");
  app.release("atlas-web");
}

await visit({}, async (page, app, shot) => {
  await page.getByText("Agents on this machine").waitFor();
  await shot("01-first-run");
  await workday(page, app);
  for (let open = await page.locator(".tab").count(); open > 0; open -= 1) {
    await page.keyboard.press("Alt+KeyW");
    await page.waitForFunction((left) => document.querySelectorAll(".tab").length === left, open - 1);
  }
  await page.getByRole("heading", { name: "No session open" }).waitFor();
  await shot("01b-no-session");
});

for (const theme of /** @type {const} */ (["dark", "light"])) {
  const mark = theme === "dark" ? "02" : "07";
  await visit({ theme }, async (page, app, shot) => {
    await workday(page, app);
    const frame = await newSession(page, "atlas-api");
    for (const words of ["Think about the relay first", "Explore the sources, then say what you see", "Edit the file", "Try the broken tool", "Make a plan"]) {
      await send(frame, words);
      await finished(frame);
    }
    await send(frame, "Run the tests");
    await frame.locator('.tool[data-state="running"]').waitFor();
    await shot(`${mark}-main`);
    app.release("atlas-api");
    await finished(frame);
    if (theme === "dark") {
      await page.setViewportSize({ width: 1440, height: 1500 });
      await shot("02c-main-full");
      await page.setViewportSize({ width: 1440, height: 900 });
    }
    await send(frame, "Write it up, slow words");
    await frame.getByText("word40").waitFor();
    await shot(`${mark}b-streaming`);
    if (theme === "light") return;
    await page.locator("#footer").getByRole("button", { name: "Settings" }).click();
    await shot("06b-settings");
    await page.keyboard.press("Escape");
    await page.locator(".new-tab").click();
    await shot("05a-new-session");
    await page.keyboard.press("Escape");
    await page.locator(".section-title [data-command=add-project]").click();
    await page.getByRole("combobox", { name: "Directory" }).fill("~/code/at");
    await page.getByRole("option").first().waitFor();
    await shot("05b-add-project");
    await page.getByRole("combobox", { name: "Directory" }).fill("~/code/atlas-infar");
    await page.keyboard.press("Enter");
    await page.getByText("Directory does not exist").waitFor();
    await shot("05c-add-project-error");
    await page.keyboard.press("Escape");
    await page.locator(".search").click();
    await page.getByRole("combobox", { name: "Search or jump to" }).fill("re");
    await shot("06-palette");
    await page.keyboard.press("Escape");
    await tab(page, "New Session").first().click();
    await current(page).getByText("Describe the task").waitFor();
    await shot("05d-session-ready");
  });
}

await visit({}, async (page, app, shot) => {
  await workday(page, app);
  const frame = await newSession(page, "atlas-api");
  await send(frame, "Edit the file");
  await finished(frame);
  await send(frame, "Now crash");
  await frame.getByText("Reconnecting...").waitFor();
  await shot("04b-reconnecting");
  await frame.getByRole("button", { name: "Reconnect", exact: true }).waitFor({ timeout: 120_000 });
  await shot("04a-disconnected");
});

await visit({ script: "slow-start" }, async (page, app, shot) => {
  await addProject(page, app.directory("atlas-web"));
  await projectRow(page, "atlas-web").getByRole("button", { name: "New Session" }).click();
  await page.locator(".picker-option", { hasText: "Scripted" }).click();
  await page.getByText("Starting Scripted").waitFor();
  await shot("04c-launching");
});

await visit({ script: "no-handshake" }, async (page, app, shot) => {
  await addProject(page, app.directory("atlas-web"));
  await projectRow(page, "atlas-web").getByRole("button", { name: "New Session" }).click();
  await page.locator(".picker-option", { hasText: "Scripted" }).click();
  await page.getByRole("button", { name: "Retry" }).waitFor();
  await shot("04d-error");
});

await visit({}, async (page, app, shot) => {
  await workday(page, app);
  await sessionRow(page, "Explain the retry budget").click();
  await current(page).getByRole("heading", { name: "What changed" }).waitFor();
  await page.setViewportSize({ width: 820, height: 1100 });
  await shot("08-narrow-820");
  await page.setViewportSize({ width: 390, height: 844 });
  await shot("08b-phone");
  await page.locator(".top-bar [data-command=sidebar]").click();
  await shot("08c-phone-sidebar");
});

await browser.close();
