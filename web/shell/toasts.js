// toasts.js: short notes at the bottom. They stay while pointed at or focused.
import { h } from "../shared/dom.js";
import { icon } from "../shared/icons.js";

const SHOWN_MS = 6000;
const AT_ONCE_MAX = 3;

/** @typedef {{ kind?: "note" | "error", detail?: string, action?: { label: string, run: () => void } }} ToastOptions */

/** @param {HTMLElement} root */
export function mountToasts(root) {
  /**
   * @param {string} text
   * @param {ToastOptions} [options]
   */
  return function toast(text, { kind = "note", detail, action } = {}) {
    const close = h("button", { class: "icon-button", type: "button", "data-size": "row", "aria-label": "Dismiss" }, icon("close"));
    const act = action ? h("button", { class: "link-button", type: "button" }, action.label) : null;
    const node = h("div", { class: "toast", role: kind === "error" ? "alert" : "status", "data-kind": kind },
      h("span", { class: "toast-text" }, text, detail ? h("small", {}, detail) : null), act, close);
    let timer = setTimeout(leave, SHOWN_MS);
    function leave() {
      clearTimeout(timer);
      node.remove();
    }
    const wait = () => clearTimeout(timer);
    const go = () => {
      clearTimeout(timer);
      timer = setTimeout(leave, SHOWN_MS);
    };
    node.addEventListener("pointerenter", wait);
    node.addEventListener("focusin", wait);
    node.addEventListener("pointerleave", go);
    node.addEventListener("focusout", go);
    close.addEventListener("click", leave);
    act?.addEventListener("click", () => {
      leave();
      action?.run();
    });
    root.append(node);
    while (root.childElementCount > AT_ONCE_MAX) root.firstElementChild?.remove();
    return leave;
  };
}
/** @typedef {ReturnType<typeof mountToasts>} Toast */
