// dialog.js: a modal dialog. The browser keeps focus inside; when it closes, focus returns to where it was.
import { h } from "../shared/dom.js";

/** @type {(from: Element | null) => void} */
let giveBack = () => {};

/**
 * @param {(from: Element | null) => void} give Returns focus to the element that had it before a dialog, or to what
 *   replaced it.
 */
export const giveFocusBackBy = (give) => void (giveBack = give);

/**
 * @param {{ label: string, className: string, closed?: () => void }} options
 * @param {...Node} children
 */
export function openDialog({ label, className, closed }, ...children) {
  const back = document.activeElement;
  const dialog = h("dialog", { class: `dialog ${className}`, "aria-label": label, "aria-modal": "true" }, ...children);
  document.body.append(dialog);
  dialog.addEventListener("close", () => {
    dialog.remove();
    // The browser has already returned focus; an element opened or focused since then keeps it.
    const now = document.activeElement;
    if (now === back || now === document.body || now === null) giveBack(back);
    closed?.();
  });
  dialog.addEventListener("pointerdown", (event) => {
    if (event.target === dialog) dialog.close();
  });
  dialog.showModal();
  return dialog;
}

/**
 * One hint in a dialog's footer: keys and what they do.
 * @param {(string | Node)[]} keys
 * @param {string} text
 */
export const hint = (keys, text) => h("span", { class: "hint" },
  ...keys.map((key) => h("kbd", { class: "kbd", "aria-hidden": "true" }, key)),
  h("span", {}, text));

export const isOpen = () => document.querySelector("dialog[open]") !== null;
