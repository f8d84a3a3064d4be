// offline.js: the bar that says that our own server is gone. What is on the screen stays readable.
import { h, reconcile } from "../shared/dom.js";
import { glyph } from "../shared/icons.js";

/** @param {HTMLElement} root @param {{ tryNow: () => void }} deps */
export function mountOffline(root, { tryNow }) {
  const words = h("span");
  const button = h("button", { class: "button", type: "button", "data-kind": "secondary" }, "Try now");
  button.addEventListener("click", tryNow);
  return {
    /** @param {boolean} refused It is there, but lets this browser not in. */
    show(refused) {
      const now = refused
        ? "This browser is no longer signed in to Liminal Builder. "
          + "Run liminal-builder open, or open the link it printed when it started."
        : "Liminal Builder is not running. Trying again…";
      if (!root.hidden && words.textContent === now) return;
      words.textContent = now;
      if (root.hidden) reconcile(root, [glyph("reconnecting"), words, button]);
      root.hidden = false;
    },
    hide() {
      root.hidden = true;
    },
  };
}
