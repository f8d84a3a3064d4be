// offline.js: the bar that says that our own server is gone. What is on the screen stays readable.
import { h, reconcile } from "../shared/dom.js";
import { glyph } from "../shared/icons.js";

/** @param {HTMLElement} root */
export function mountOffline(root) {
  /** @param {string} words */
  const say = (words) => {
    if (root.dataset.words !== words) reconcile(root, [glyph("reconnecting"), h("span", {}, words)]);
    root.dataset.words = words;
    root.hidden = false;
  };
  return {
    /** @param {number} attempt */
    async show(attempt) {
      if (root.hidden) say("Liminal Builder is not running. Trying again…");
      // A server that is there but lets no socket in has forgotten this browser.
      if (attempt % 3 !== 0) return;
      const health = await fetch("/api/health").catch(() => null);
      if (!root.hidden) say(health?.ok ? "Liminal Builder does not know this browser any more. Open the link it printed when it started." : "Liminal Builder is not running. Trying again…");
    },
    hide() {
      root.hidden = true;
      delete root.dataset.words;
    },
  };
}
