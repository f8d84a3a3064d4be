// many-tabs.spec.js: tabs that were open before this server was started, many of them, with long titles.
import { current, expect, send, sessionRow, tab, test } from "./app.js";
import { writeSessions } from "./saved-history.js";

/**
 * A window with a tab for each of these sessions.
 * @param {import("@playwright/test").Page} page
 * @param {import("./app.js").App} app
 * @param {string[]} titles
 * @param {number} active
 */
async function openSaved(page, app, titles, active) {
  await app.stop();
  const ids = writeSessions(app, titles);
  await app.start();
  await page.addInitScript((tabs) => {
    if (window === top && !localStorage.getItem("liminal:tabs")) {
      localStorage.setItem("liminal:tabs", JSON.stringify(tabs));
    }
  }, { openTabs: ids, tabOrder: ids, activeTab: ids[active] });
  await page.goto(app.link);
  await expect(page.locator(".tab")).toHaveCount(titles.length);
}

test("of many tabs only the one in view is loaded; another when it is first shown, and then it stays", async (
  { startApp, page },
) => {
  const app = await startApp();
  await openSaved(page, app, Array.from({ length: 60 }, (_, at) => `Session ${at}`), 40);
  await expect(current(page).getByText("Answer to 40.")).toBeVisible();
  await expect(tab(page, /^Session 40$/)).toHaveAttribute("data-current", "");
  // The one in view, and one preloaded without a session.
  await expect(page.locator("iframe.portlet")).toHaveCount(1);
  await expect(page.locator("iframe")).toHaveCount(2);
  await tab(page, /^Session 41$/).click();
  await expect(current(page).getByText("Answer to 41.")).toBeVisible();
  await tab(page, /^Session 40$/).click();
  await expect(page.locator("iframe.portlet")).toHaveCount(2);
  await expect(current(page).getByText("Answer to 40.")).toBeVisible();
});

test("after a reload the sessions that run are loaded behind the one in view", async ({ startApp, page }) => {
  const app = await startApp();
  await openSaved(page, app, ["Session 0", "Session 1", "Session 2"], 0);
  await expect(current(page).getByText("Answer to 0.")).toBeVisible();
  await tab(page, "Session 1").click();
  await expect(current(page).getByText("Answer to 1.")).toBeVisible();
  await page.reload();
  await expect(current(page).getByText("Answer to 1.")).toBeVisible();
  await expect(page.locator("iframe.portlet")).toHaveCount(2);
  const hidden = page.frameLocator("iframe.portlet:not([data-current])");
  await tab(page, "Session 0").click();
  await expect(current(page).getByText("Answer to 0.")).toBeVisible();
  await expect(hidden.getByText("Answer to 1.")).toBeAttached();
});

test("a title is whole while there is room beside the tabs, in every state of its tab", async ({ startApp, page }) => {
  const app = await startApp();
  const titles = ["mar", "New Session", "Fix flaky auth refresh", "A title that is rather long but not too long"];
  await openSaved(page, app, titles, 1);
  /**
   * In one step: the page may redraw a tab between two.
   * @param {string} [attention] The state that all tabs get first.
   */
  const measure = async (attention) => {
    const tabs = await page.evaluate((name) => [...document.querySelectorAll(".tab")].map((node) => {
      if (name) node.setAttribute("data-attention", name);
      const title = node.querySelector(".tab-title");
      return {
        width: node.getBoundingClientRect().width,
        title: title?.textContent,
        isCut: title !== null && title.scrollWidth > title.clientWidth,
      };
    }), attention);
    return { widths: tabs.map(({ width }) => width), cut: tabs.filter(({ isCut }) => isCut).map(({ title }) => title) };
  };
  // The last one needs more than the widest tab has.
  await expect.poll(async () => (await measure()).cut).toEqual(titles.slice(3));
  const { widths } = await measure();
  expect(widths[3]).toBe(256);
  for (const attention of ["finished", "needs_permission", "working"]) {
    expect(await measure(attention)).toEqual({ widths, cut: titles.slice(3) });
  }
  // The longest shrinks first.
  await page.setViewportSize({ width: 1030, height: 900 });
  await expect.poll(async () => (await measure()).widths[3]).toBeLessThan(256);
  expect((await measure()).widths.slice(0, 2)).toEqual(widths.slice(0, 2));
});

test("tabs that do not fit are in a list with their projects and states, and many are closed at once", async (
  { startApp, page },
) => {
  const app = await startApp();
  await openSaved(page, app, Array.from({ length: 30 }, (_, at) => `Session ${at}`), 0);
  await expect(current(page).getByText("Answer to 0.")).toBeVisible();
  await send(current(page), "hold on");
  await expect(tab(page, /^Session 0$/)).toHaveAttribute("data-attention", "working");
  await page.getByRole("button", { name: "All tabs" }).click();
  const menu = page.getByRole("menu", { name: "Open sessions" });
  await expect(menu.getByRole("menuitemradio")).toHaveCount(30);
  await expect(menu.getByRole("menuitemradio").first()).toContainText("ferry · Working");
  await menu.getByRole("menuitemradio", { name: /Session 29/ }).click();
  await expect(tab(page, /^Session 29$/)).toHaveAttribute("data-current", "");
  await expect(tab(page, /^Session 29$/)).toBeInViewport({ ratio: 1 });
  await page.getByRole("button", { name: "All tabs" }).click();
  await page.getByRole("menuitem", { name: "Close finished" }).click();
  await expect(page.locator(".tab")).toHaveCount(2);
  await expect(page.getByRole("button", { name: "All tabs" })).toBeHidden();
  await page.getByRole("button", { name: "Undo" }).click();
  await expect(page.locator(".tab")).toHaveCount(30);
  await tab(page, /^Session 29$/).click({ button: "right" });
  await page.getByRole("menuitem", { name: "Close others" }).click();
  await expect(page.locator(".tab")).toHaveCount(1);
  await expect(tab(page, /^Session 29$/)).toHaveAttribute("data-current", "");
  app.release("ferry");
});

test("in a narrow tab × replaces the glyph, and the title keeps its width", async ({ startApp, page }) => {
  const app = await startApp();
  await openSaved(page, app, Array.from({ length: 14 }, (_, at) => `Session with number ${at}`), 3);
  const here = page.locator(".tab[data-current]");
  const there = page.locator(".tab").nth(4);
  expect((await here.boundingBox())?.width).toBe(112);
  const width = async (/** @type {import("@playwright/test").Locator} */ node) =>
    (await node.locator(".tab-title").boundingBox())?.width ?? 0;
  expect(await width(here)).toBeGreaterThanOrEqual(await width(there));
  const [close, glyph] = [
    await here.locator(".tab-close").boundingBox(),
    await there.locator(".tab-slot").boundingBox(),
  ];
  const [from, other] = [await here.boundingBox(), await there.boundingBox()];
  // At the same distance from the tab's end.
  expect(Math.abs(((from?.x ?? 0) - (close?.x ?? 0) - (close?.width ?? 0) / 2)
    - ((other?.x ?? 0) - (glyph?.x ?? 0) - (glyph?.width ?? 0) / 2))).toBeLessThanOrEqual(4);
});

test("a title that is read from right to left keeps its beginning in a tab and in the sidebar", async (
  { startApp, page },
) => {
  const app = await startApp();
  const title =
    "إصلاح تسجيل الدخول ثم اختبار كل شيء مرة أخرى with words of the other kind";
  await openSaved(page, app, [title, ...Array.from({ length: 13 }, (_, at) => `Session ${at}`)], 0);
  for (const node of [page.locator(".tab .tab-title").first(), sessionRow(page, "with words").locator(".row-title")]) {
    const cut = await node.evaluate((element) => {
      const range = document.createRange();
      range.setStart(/** @type {Node} */ (element.firstChild), 0);
      range.setEnd(/** @type {Node} */ (element.firstChild), 1);
      const [letter, room] = [range.getBoundingClientRect(), element.getBoundingClientRect()];
      return {
        wide: element.scrollWidth > element.clientWidth,
        seen: letter.left >= room.left - 1 && letter.right <= room.right + 1,
      };
    });
    expect(cut).toEqual({ wide: true, seen: true });
  }
});
