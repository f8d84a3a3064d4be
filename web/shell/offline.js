// offline.js: the bar shown while our own server is not reachable. What is on the screen stays readable.
import { h, reconcile } from "../shared/dom.js";
import { glyph } from "../shared/icons.js";

/** @param {HTMLElement} root @param {{ tryNow: () => void }} deps */
export function mountOffline(root, { tryNow }) {
  const message = h("span");
  const button = h("button", { class: "button", type: "button", "data-kind": "secondary" }, "Try now");
  button.addEventListener("click", tryNow);
  return {
    /** @param {boolean} refused It is running, but refuses this browser. */
    show(refused) {
      const now = refused
        ? "This browser is no longer signed in to Liminal Builder. "
          + "Run liminal-builder open, or open the link it printed when it started."
        : "Liminal Builder is not running. Trying again…";
      if (!root.hidden && message.textContent === now) return;
      message.textContent = now;
      if (root.hidden) reconcile(root, [glyph("reconnecting"), message, button]);
      root.hidden = false;
    },
    hide() {
      root.hidden = true;
    },
  };
}
