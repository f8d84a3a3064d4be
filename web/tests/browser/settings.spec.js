import { addProject, expect, newSession, send, tab, test } from "./app.js";

test("Settings: the theme can be set, can follow the system, and is stored", async ({ shell }) => {
  await shell.getByRole("button", { name: "Settings" }).click();
  const dialog = shell.getByRole("dialog", { name: "Settings" });
  await expect(dialog.getByRole("radio", { name: "System" })).toBeChecked();
  await dialog.getByRole("radio", { name: "Light" }).check();
  await expect(shell.locator("html")).toHaveAttribute("data-theme", "light");
  await shell.reload();
  await expect(shell.locator("html")).toHaveAttribute("data-theme", "light");
  await shell.getByRole("button", { name: "Settings" }).click();
  await expect(dialog.getByRole("radio", { name: "Light" })).toBeChecked();
  await dialog.getByRole("radio", { name: "System" }).check();
  await expect(shell.locator("html")).toHaveAttribute("data-theme", "dark");
  await shell.keyboard.press("Escape");
  await expect(dialog).toBeHidden();
  await expect(shell.getByRole("button", { name: "Settings" })).toBeFocused();
});

test("a desktop notification comes only when switched on and while the page is not in view", async (
  { app, page, context },
) => {
  await context.grantPermissions(["notifications"]);
  await page.addInitScript(() => {
    const own = /** @type {any} */ (window);
    own.notes = [];
    own.Notification = class extends EventTarget {
      static permission = "granted";
      static requestPermission = async () => "granted";
      /** @param {string} title @param {{ body: string }} options */
      constructor(title, { body }) {
        super();
        own.notes.push({ text: `${title}: ${body}`, note: this });
      }
      close() {}
    };
    Object.defineProperty(document, "visibilityState", { get: () => (own.away ? "hidden" : "visible") });
  });
  const notes = () =>
    page.evaluate(() => /** @type {any} */ (window).notes.map((/** @type {any} */ { text }) => text));
  /** @param {boolean} away */
  const look = (away) => page.evaluate((now) => void (/** @type {any} */ (window).away = now), away);
  await page.goto(app.link);
  for (const name of ["one", "two", "three"]) await addProject(page, app.directory(name));
  await send(await newSession(page, "one"), "hold one");
  await send(await newSession(page, "two"), "hold two");
  await send(await newSession(page, "three"), "hold three");
  await expect(page.locator("#working-count")).toHaveText("3 working");
  await look(true);
  app.release("one");
  await expect(page.locator(".inbox-row")).toHaveCount(1);
  expect(await notes()).toEqual([]);
  await look(false);
  await page.getByRole("button", { name: "Settings" }).click();
  await page.getByRole("checkbox", { name: "Desktop notifications" }).check();
  await page.keyboard.press("Escape");
  await look(true);
  app.release("two");
  await expect.poll(notes).toEqual(["hold two: Finished · two"]);
  await look(false);
  await page.evaluate(() => /** @type {any} */ (window).notes[0].note.dispatchEvent(new Event("click")));
  await expect(tab(page, "hold two")).toHaveAttribute("data-current", "");
  app.release("three");
  await expect(page.locator(".inbox-row").filter({ hasText: "hold three" })).toBeVisible();
  expect(await notes()).toHaveLength(1);
});
