// menu.js: a small menu at a button or at the pointer. One is open at a time.
import { NAMES } from "./attention.js";
import { closest, h } from "./dom.js";
import { glyph, icon } from "./icons.js";

/**
 * `heading` starts a named group of entries. `attention` is the state of the session that an entry stands for.
 * @typedef {{
 *   label: string,
 *   icon?: string,
 *   attention?: import("./protocol.js").Attention,
 *   hint?: string,
 *   note?: string,
 *   checked?: boolean,
 *   disabled?: boolean,
 *   run: () => void,
 * }} MenuItem
 * @typedef {MenuItem | { heading: string } | "line"} MenuEntry
 */

/** @type {(() => void) | null} */
let closeOpen = null;

/**
 * @param {HTMLElement | { x: number, y: number }} at The button it belongs to, or a point.
 * @param {string} label
 * @param {MenuEntry[]} entries
 * @param {{
 *   wide?: boolean,
 *   above?: boolean,
 *   pinned?: number,
 * }} [options] `pinned`: this many first entries stay in view.
 */
export function openMenu(at, label, entries, { wide = false, above = false, pinned = 0 } = {}) {
  const again = at instanceof HTMLElement && at.getAttribute("aria-expanded") === "true";
  closeOpen?.();
  if (again) return;
  const back = at instanceof HTMLElement ? at : /** @type {HTMLElement | null} */ (document.activeElement);
  const menu = h("div", { class: "menu", role: "menu", "aria-label": label, "data-wide": wide });
  let group = menu;
  if (pinned) menu.append((group = h("div", { class: "menu-pinned", role: "presentation" })));
  entries.forEach((entry, index) => {
    if (pinned && index === pinned) group = menu;
    if (entry === "line") {
      group = menu;
      menu.append(h("hr"));
    } else if ("heading" in entry) {
      group = h("div", { role: "group", "aria-label": entry.heading },
        h("div", { class: "menu-heading", "aria-hidden": "true" }, entry.heading));
      menu.append(group);
    } else group.append(item(entry, index));
  });
  const host = (at instanceof HTMLElement && at.closest("dialog")) || document.body;
  host.append(menu);
  place(menu, at, above);
  if (at instanceof HTMLElement) at.setAttribute("aria-expanded", "true");

  const stop = new AbortController();
  const close = (/** @type {boolean} */ giveFocus) => {
    stop.abort();
    menu.remove();
    if (at instanceof HTMLElement) at.setAttribute("aria-expanded", "false");
    if (giveFocus) back?.focus();
    closeOpen = null;
  };
  closeOpen = () => close(false);

  menu.addEventListener("click", (event) => {
    const node = closest(event, ".menu-item");
    const entry = node ? entries[Number(node.dataset.index)] : undefined;
    if (!entry || entry === "line" || "heading" in entry) return;
    close(true);
    entry.run();
  });
  menu.addEventListener("keydown", (event) => onKey(event, menu, close));
  addEventListener("pointerdown", (event) => {
    const target = /** @type {Node} */ (event.target);
    if (!menu.contains(target) && !(at instanceof HTMLElement && at.contains(target))) close(false);
  }, { capture: true, signal: stop.signal });
  addEventListener("blur", () => close(false), { signal: stop.signal });
  addEventListener("resize", () => close(false), { signal: stop.signal });

  const first = menu.querySelector('[aria-checked="true"]') ?? menu.querySelector(".menu-item:not(:disabled)");
  if (first instanceof HTMLElement) first.focus({ preventScroll: false });
}

/**
 * @param {MenuItem} entry
 * @param {number} index
 */
function item(entry, index) {
  const radio = entry.checked !== undefined;
  return h("button", {
    class: "menu-item", type: "button", role: radio ? "menuitemradio" : "menuitem", tabindex: -1, "data-index": index,
    "aria-checked": radio ? String(entry.checked) : null, disabled: entry.disabled ?? false,
  },
    entry.icon ? icon(entry.icon) : null,
    entry.attention ? glyph(entry.attention, { label: NAMES[entry.attention] }) : null,
    h("span", { class: "label", dir: "auto" }, entry.label, entry.note ? h("small", {}, entry.note) : null),
    entry.hint ? h("kbd", { class: "kbd" }, entry.hint) : null,
    entry.checked ? icon("check") : null,
  );
}

/**
 * @param {HTMLElement} menu
 * @param {HTMLElement | { x: number, y: number }} at
 * @param {boolean} above
 */
function place(menu, at, above) {
  const box = at instanceof HTMLElement ? at.getBoundingClientRect() : new DOMRect(at.x, at.y, 0, 0);
  const { offsetWidth: width, offsetHeight: height } = menu;
  const left = Math.max(8, Math.min(box.left, innerWidth - width - 8));
  const below = box.bottom + 4;
  const over = box.top - height - 4;
  const top = above || below + height > innerHeight - 8 ? Math.max(8, over) : below;
  menu.style.setProperty("left", `${left}px`);
  menu.style.setProperty("top", `${top}px`);
}

/**
 * @param {KeyboardEvent} event
 * @param {HTMLElement} menu
 * @param {(giveFocus: boolean) => void} close
 */
function onKey(event, menu, close) {
  const items = /** @type {HTMLElement[]} */ ([...menu.querySelectorAll(".menu-item:not(:disabled)")]);
  const at = items.indexOf(/** @type {HTMLElement} */ (document.activeElement));
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (step) items.at((at + step + items.length) % items.length)?.focus();
  else if (event.key === "Home") items[0]?.focus();
  else if (event.key === "End") items.at(-1)?.focus();
  else if (event.key === "Escape" || event.key === "Tab") close(true);
  else return;
  event.preventDefault();
  event.stopPropagation();
}
