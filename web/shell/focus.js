// focus.js: the regions of the window: the order in which F6 visits them, and where focus goes when the focused element
// is removed.

/** @typedef {"side" | "tabs" | "log" | "input" | "page"} Name */
/** @typedef {{ isThere: () => boolean, enter: () => void }} Region */
/** @typedef {ReturnType<typeof createFocus>} Focus */

/** @param {Element} node */
const isVisible = (node) => node.checkVisibility({ visibilityProperty: true }) && node.closest("[inert]") === null;

/**
 * @param {{
 *   sidebar: HTMLElement,
 *   rail: HTMLElement,
 *   topBar: HTMLElement,
 *   tabBar: HTMLElement,
 *   sheet: HTMLElement,
 * }} places
 * @param {{ enterTabs: () => void, enterSession: (part: "log" | "input") => void }} deps
 */
export function createFocus({ sidebar, rail, topBar, tabBar, sheet }, { enterTabs, enterSession }) {
  /** Only one of them is visible at a time. */
  const sides = [sidebar, rail, topBar];
  const inSession = () => isVisible(sheet) && sheet.querySelector("iframe[data-current]") !== null;
  /** In the order of F6. @type {Record<Name, Region>} */
  const regions = {
    side: { isThere: () => sides.some(isVisible), enter: enterSide },
    tabs: { isThere: () => isVisible(tabBar), enter: enterTabs },
    log: { isThere: inSession, enter: () => enterSession("log") },
    input: { isThere: inSession, enter: () => enterSession("input") },
    page: { isThere: () => isVisible(sheet) && !inSession(), enter: () => sheet.focus() },
  };
  const order = /** @type {Name[]} */ (Object.keys(regions));
  /**
   * The part of a session in which F6 was last pressed; only the session knows which part has focus now.
   * @type {"log" | "input"}
   */
  let part = "input";

  function enterSide() {
    const side = sides.find(isVisible);
    const node = side === sidebar
      ? (sidebar.querySelector('#tree [tabindex="0"]') ?? sidebar.querySelector(".search"))
      : side?.querySelector("button");
    if (node instanceof HTMLElement) node.focus();
  }

  /** @param {Element | null} node @returns {Name | null} */
  function regionOf(node) {
    if (!node) return null;
    if (sides.some((side) => side.contains(node))) return "side";
    if (tabBar.contains(node)) return "tabs";
    if (node.matches("iframe")) return "input";
    return sheet.contains(node) ? "page" : null;
  }

  /** Focuses the first of these regions that is visible. @param {Name[]} names */
  function enterFirst(names) {
    const name = names.find((each) => regions[each].isThere());
    if (name) regions[name].enter();
  }

  const isLost = () => {
    const node = document.activeElement;
    return node === null || node === document.body || !isVisible(node);
  };

  /** @param {Name | null} region */
  const enterInstead = (region) => enterFirst([...(region ? [region] : []), "input", "page", "side"]);

  return {
    /** No visible element has focus. */
    isLost,
    /** @param {Name} region */
    enter: (region) => enterFirst([region]),
    /**
     * Goes to the next or the previous visible region.
     * @param {number} step
     * @param {"log" | "input"} [from]
     */
    step(step, from) {
      part = from ?? part;
      const region = regionOf(document.activeElement);
      const now = region === "input" ? part : region;
      const at = now ? order.indexOf(now) : step > 0 ? -1 : 0;
      enterFirst(order.map((_, tried) => /** @type {Name} */ (order.at((at + step * (tried + 1)) % order.length))));
    },
    /**
     * Runs a change that may remove the focused element; if it does, focus goes to what replaced it.
     * @param {() => void} change
     */
    keep(change) {
      const region = regionOf(document.activeElement);
      change();
      if (region && isLost()) enterInstead(region);
    },
    /** Returns focus to where it was, or to what is there now. @param {Element | null} from */
    giveBack(from) {
      if (from instanceof HTMLElement && from !== document.body) from.focus();
      if (isLost()) enterInstead(regionOf(from));
    },
  };
}
