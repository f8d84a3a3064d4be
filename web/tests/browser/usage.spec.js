// usage.spec.js: tokens and cost: the dialog that sums the usage reported by agents.
import { addProject, current, expect, newSession, send, test } from "./app.js";

test("usage is shown by day, project and session, and a session opens from the dialog", async ({ app, shell }) => {
  await addProject(shell, app.directory("one"));
  await newSession(shell, "one");
  await send(current(shell), "spend");
  await expect(current(shell).locator(".status-line")).toContainText("8 tokens · $0.50");
  await newSession(shell, "one");
  await send(current(shell), "spend some more");
  await expect(current(shell).locator(".status-line")).toContainText("8 tokens · $0.50");

  await shell.keyboard.press("Control+k");
  await shell.keyboard.type("usage");
  await shell.keyboard.press("Enter");
  const dialog = shell.getByRole("dialog", { name: "Usage" });
  const lines = dialog.locator("tbody tr");
  await expect(lines).toHaveCount(1);
  await expect(lines.first()).toContainText("$1.00");
  await dialog.getByRole("radio", { name: "Project" }).check();
  await expect(lines).toHaveText([/^one.*2.*16.*\$1\.00$/]);
  await dialog.getByRole("radio", { name: "Session" }).check();
  await expect(lines).toHaveCount(2);
  await expect(dialog.locator("tfoot")).toContainText("Total");
  await dialog.getByRole("radio", { name: "Today" }).check();
  await expect(lines).toHaveCount(2);
  await lines.first().getByRole("button").press("Enter");
  await expect(dialog).toBeHidden();
});

test("the dialog shows that there is no usage, and fits a phone", async ({ shell }) => {
  await shell.keyboard.press("Control+k");
  await shell.keyboard.type("usage");
  await shell.keyboard.press("Enter");
  const dialog = shell.getByRole("dialog", { name: "Usage" });
  await expect(dialog).toContainText("No agent reported any usage in this period.");
  await shell.setViewportSize({ width: 390, height: 844 });
  const box = await dialog.boundingBox();
  expect(box && box.x >= 0 && box.x + box.width <= 390).toBe(true);
});
