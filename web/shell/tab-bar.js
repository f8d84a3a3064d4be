// tab-bar.js: draws the tabs and reports what the user does with them. It does not decide which tabs exist.
import { NAMES } from "../shared/attention.js";
import { closest, h, reconcile, setAttribute, setText } from "../shared/dom.js";
import { glyph, icon, mark, markName, setGlyph, setIcon } from "../shared/icons.js";
import { nav } from "../shared/keys.js";
import { driveTabDrag } from "./tab-drag.js";
import { tabWidths } from "./tab-widths.js";

/** @typedef {import("../shared/protocol.js").Attention} Attention */
/**
 * @typedef {{
 *   id: string,
 *   title: string,
 *   cliType: string,
 *   attention: Attention,
 *   current: boolean,
 *   provisional: boolean,
 *   controls: string | null,
 * }} TabView
 */
/**
 * @typedef {{
 *   activate: (id: string) => void,
 *   close: (id: string) => void,
 *   move: (id: string, to: number) => void,
 *   menu: (id: string, at: { x: number, y: number }) => void,
 * }} TabActions
 */

/**
 * The width of a tab without its title: borders, padding, mark, glyph and ×, and the gaps between them; as in
 * tabs.css.
 */
const AROUND_TITLE_PX = 2 + 9 + 14 + 8 + 8 + 16 + 22;
/** The gap between the parts of the bar. */
const BAR_GAP_PX = 4;

/**
 * @param {HTMLElement} root
 * @param {TabActions} actions
 */
export function mountTabBar(root, actions) {
  const show = h("button", {
    class: "icon-button show-sidebar",
    type: "button",
    "data-command": "sidebar",
    "aria-label": "Show sidebar",
    title: "Show sidebar",
  }, icon("sidebar"));
  const strip = h("div", { class: "tab-strip", role: "tablist", "aria-label": "Open sessions" });
  const add = h("button", {
    class: "icon-button new-tab",
    type: "button",
    "data-command": "new-session",
    "aria-label": "New session",
    title: `New session (${nav("N")})`,
  }, icon("plus"));
  const all = h("button", {
    class: "icon-button all-tabs",
    type: "button",
    "data-command": "open-sessions",
    "aria-label": "All tabs",
    title: "All tabs",
    "aria-haspopup": "menu",
    "aria-expanded": "false",
    hidden: true,
  }, icon("chevron-down"));
  root.append(show, strip, add, all);
  /** @type {Map<string, HTMLElement>} */
  const tabs = new Map();
  const titleWidth = measureTitles(strip);
  /** The width available for tabs; measured when something around them is resized, never while drawing. */
  let room = Infinity;
  /** @type {TabView[]} */
  let drawn = [];
  const watcher = new ResizeObserver(() => {
    const { paddingLeft, paddingRight } = getComputedStyle(root);
    const others = [show, add].reduce((sum, node) => sum + (node.offsetWidth ? node.offsetWidth + BAR_GAP_PX : 0), 0);
    const now = root.clientWidth - parseFloat(paddingLeft) - parseFloat(paddingRight) - others;
    if (now === room) return;
    room = now;
    fit();
  });
  for (const node of [root, show, add]) watcher.observe(node);

  /** Sets each tab's width. It fits the title in its boldest style, so that a change of state moves no tab. */
  function fit() {
    const { widths, fits } = tabWidths(drawn.map(({ title }) => titleWidth(title) + AROUND_TITLE_PX), room);
    drawn.forEach(({ id }, at) => {
      const node = tabs.get(id);
      const width = `${widths[at]}px`;
      if (node && node.style.width !== width) node.style.setProperty("width", width);
    });
    if (all.hidden !== fits) all.hidden = fits;
  }

  strip.addEventListener("click", (event) => {
    const tab = closest(event, ".tab");
    if (!tab?.dataset.id) return;
    if (closest(event, ".tab-close")) actions.close(tab.dataset.id);
    else actions.activate(tab.dataset.id);
  });
  strip.addEventListener("mousedown", (event) => {
    // No autoscroll, and a tab that is about to close takes no focus.
    if (event.button === 1 || closest(event, ".tab-close")) event.preventDefault();
  });
  strip.addEventListener("auxclick", (event) => {
    const tab = closest(event, ".tab");
    if (event.button === 1 && tab?.dataset.id) actions.close(tab.dataset.id);
  });
  strip.addEventListener("contextmenu", (event) => {
    const tab = closest(event, ".tab");
    if (!tab?.dataset.id) return;
    event.preventDefault();
    actions.menu(tab.dataset.id, { x: event.clientX, y: event.clientY });
  });
  strip.addEventListener("keydown", (event) => {
    const tab = closest(event, ".tab");
    if (!tab?.dataset.id || event.ctrlKey || event.metaKey || event.altKey) return;
    const others = /** @type {HTMLElement[]} */ ([...strip.children]);
    const at = others.indexOf(tab);
    const to = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: others.length - 1 }[event.key];
    if (to !== undefined) focusTab(others[(to + others.length) % others.length]);
    else if (event.key === "Delete") actions.close(tab.dataset.id);
    else return;
    event.preventDefault();
  });
  driveTabDrag(strip, actions.move);

  /** @param {HTMLElement | undefined} tab */
  function focusTab(tab) {
    if (!tab?.dataset.id) return;
    actions.activate(tab.dataset.id);
    /** @type {HTMLElement | null} */ (tab.querySelector('[role="tab"]'))?.focus();
  }

  /** @param {TabView} view */
  function draw(view) {
    const node = tabs.get(view.id) ?? create(view);
    tabs.set(view.id, node);
    const button = /** @type {HTMLElement} */ (node.firstElementChild);
    const [agent, title] = [...button.children];
    const sign = node.querySelector(".glyph");
    setAttribute(node, "data-attention", view.attention);
    setAttribute(node, "data-current", view.current);
    setAttribute(node, "data-provisional", view.provisional);
    setAttribute(button, "aria-selected", String(view.current));
    setAttribute(button, "tabindex", view.current ? 0 : -1);
    setAttribute(button, "aria-controls", view.controls);
    setAttribute(button, "title", view.title);
    if (agent instanceof SVGElement) setIcon(agent, markName(view.cliType));
    if (title) setText(title, view.title);
    if (sign instanceof SVGElement) setGlyph(sign, view.attention, NAMES[view.attention]);
    return node;
  }

  return {
    /** @param {TabView[]} views */
    update(views) {
      const before = strip.querySelector(".tab[data-current]");
      drawn = views;
      reconcile(strip, views.map(draw));
      const ids = new Set(views.map(({ id }) => id));
      for (const id of tabs.keys()) if (!ids.has(id)) tabs.delete(id);
      fit();
      const first = strip.querySelector('[role="tab"]');
      if (first && !strip.querySelector('[role="tab"][tabindex="0"]')) first.setAttribute("tabindex", "0");
      const now = strip.querySelector(".tab[data-current]");
      // After the frame, so that it forces no layout.
      if (now && now !== before) setTimeout(() => now.scrollIntoView({ block: "nearest", inline: "nearest" }));
    },
    focusCurrent() {
      const tab = strip.querySelector('[role="tab"][tabindex="0"]');
      (tab instanceof HTMLElement ? tab : add).focus();
    },
  };
}

/** @param {TabView} view */
function create(view) {
  return h("div", {
    class: "tab",
    role: "presentation",
    "data-id": view.id,
    draggable: view.provisional ? null : "true",
  },
    h("button", { class: "tab-button", type: "button", role: "tab" },
      mark(view.cliType),
      h("span", { class: "tab-title truncate", dir: "auto" }),
      h("span", { class: "tab-slot" }, glyph("idle"))),
    h("span", { class: "tab-close", "aria-hidden": "true", title: `Close (${nav("W")})` }, icon("close")));
}

/** How many measured titles are cached. */
const TITLES_MAX = 500;

/**
 * Measures a title in its boldest weight, on a canvas, so that the page needs no layout.
 * @param {HTMLElement} near The element whose font is used.
 * @returns {(title: string) => number}
 */
function measureTitles(near) {
  /** @type {Map<string, number>} */
  const known = new Map();
  const context = document.createElement("canvas").getContext("2d");
  const { fontFamily, fontSize } = getComputedStyle(near);
  if (context) context.font = `600 ${fontSize} ${fontFamily}`;
  return (title) => {
    let width = known.get(title);
    if (width === undefined) {
      if (known.size >= TITLES_MAX) known.clear();
      width = Math.ceil(context?.measureText(title).width ?? 0) + 1;
      known.set(title, width);
    }
    return width;
  };
}
