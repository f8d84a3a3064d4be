// toasts.js: short notes at the bottom. They stay while hovered or focused.
import { h } from "../shared/dom.js";
import { icon } from "../shared/icons.js";

const SHOWN_MS = 6000;
const AT_ONCE_MAX = 3;

/** @typedef {{ kind?: "note" | "error", detail?: string, action?: { label: string, run: () => void } }} ToastOptions */

/**
 * @param {HTMLElement} root
 * @param {{ giveBack: (from: Element | null) => void }} deps `giveBack`: returns focus after a focused note is gone.
 */
export function mountToasts(root, { giveBack }) {
  /** What had focus before a note got it. @type {Element | null} */
  let from = null;
  root.addEventListener("focusin", ({ relatedTarget }) => {
    if (!(relatedTarget instanceof Element && root.contains(relatedTarget))) {
      from = /** @type {Element | null} */ (relatedTarget);
    }
  });

  /** @param {Element} node */
  function remove(node) {
    const hadFocus = node.contains(document.activeElement);
    node.remove();
    if (hadFocus) giveBack(from);
  }

  /**
   * @param {string} text
   * @param {ToastOptions} [options]
   */
  return function toast(text, { kind = "note", detail, action } = {}) {
    const close = h("button", { class: "icon-button", type: "button", "data-size": "row", "aria-label": "Dismiss" },
      icon("close"));
    const act = action ? h("button", { class: "link-button", type: "button" }, action.label) : null;
    const node = h("div", { class: "toast", role: kind === "error" ? "alert" : "status", "data-kind": kind },
      h("span", { class: "toast-text" }, text, detail ? h("small", {}, detail) : null), act, close);
    let timer = setTimeout(dismiss, SHOWN_MS);
    function dismiss() {
      clearTimeout(timer);
      remove(node);
    }
    const pause = () => clearTimeout(timer);
    const resume = () => {
      clearTimeout(timer);
      timer = setTimeout(dismiss, SHOWN_MS);
    };
    node.addEventListener("pointerenter", pause);
    node.addEventListener("focusin", pause);
    node.addEventListener("pointerleave", resume);
    node.addEventListener("focusout", resume);
    node.addEventListener("keydown", (event) => {
      if (event.key !== "Escape") return;
      event.preventDefault();
      dismiss();
    });
    close.addEventListener("click", dismiss);
    act?.addEventListener("click", () => {
      dismiss();
      action?.run();
    });
    root.append(node);
    while (root.firstElementChild && root.childElementCount > AT_ONCE_MAX) remove(root.firstElementChild);
    return dismiss;
  };
}
/** @typedef {ReturnType<typeof mountToasts>} Toast */
