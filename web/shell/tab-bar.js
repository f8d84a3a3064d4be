// tab-bar.js: draws the tabs and tells what the user did with them. Which tabs there are is not its business.
import { NAMES } from "../shared/attention.js";
import { closest, h, reconcile, setAttribute, setText } from "../shared/dom.js";
import { glyph, icon, mark, markName, setGlyph, setIcon } from "../shared/icons.js";
import { nav } from "../shared/keys.js";
import { driveTabDrag } from "./tab-drag.js";

/** @typedef {import("../shared/protocol.js").Attention} Attention */
/** @typedef {{ id: string, title: string, cliType: string, attention: Attention, current: boolean, provisional: boolean, controls: string | null }} TabView */
/**
 * @typedef {{ activate: (id: string) => void, close: (id: string) => void, move: (id: string, to: number) => void,
 *   menu: (id: string, at: { x: number, y: number }) => void }} TabActions
 */

/**
 * @param {HTMLElement} root
 * @param {TabActions} actions
 */
export function mountTabBar(root, actions) {
  const show = h("button", { class: "icon-button show-sidebar", type: "button", "data-command": "sidebar", "aria-label": "Show sidebar", title: "Show sidebar" }, icon("sidebar"));
  const strip = h("div", { class: "tab-strip", role: "tablist", "aria-label": "Open sessions" });
  const add = h("button", { class: "icon-button new-tab", type: "button", "data-command": "new-session", "aria-label": "New session", title: `New session (${nav("N")})` }, icon("plus"));
  root.append(show, strip, add);
  /** @type {Map<string, HTMLElement>} */
  const tabs = new Map();

  strip.addEventListener("click", (event) => {
    const tab = closest(event, ".tab");
    if (!tab?.dataset.id) return;
    if (closest(event, ".tab-close")) actions.close(tab.dataset.id);
    else actions.activate(tab.dataset.id);
  });
  strip.addEventListener("mousedown", (event) => {
    // No autoscroll, and what is about to go takes no focus: the click closes.
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
    const all = /** @type {HTMLElement[]} */ ([...strip.children]);
    const at = all.indexOf(tab);
    const to = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: all.length - 1 }[event.key];
    if (to !== undefined) focusTab(all[(to + all.length) % all.length]);
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
      reconcile(strip, views.map(draw));
      const ids = new Set(views.map(({ id }) => id));
      for (const id of tabs.keys()) if (!ids.has(id)) tabs.delete(id);
      const first = strip.querySelector('[role="tab"]');
      if (first && !strip.querySelector('[role="tab"][tabindex="0"]')) first.setAttribute("tabindex", "0");
      const now = strip.querySelector(".tab[data-current]");
      // After the frame, when nothing is left to lay out.
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
  return h("div", { class: "tab", role: "presentation", "data-id": view.id, draggable: view.provisional ? null : "true" },
    h("button", { class: "tab-button", type: "button", role: "tab" }, mark(view.cliType), h("span", { class: "tab-title truncate", dir: "auto" }), h("span", { class: "tab-slot" }, glyph("idle"))),
    h("span", { class: "tab-close", "aria-hidden": "true", title: `Close (${nav("W")})` }, icon("close")));
}
