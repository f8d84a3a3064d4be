// notices.js: what the user should know until they say they do: lines above the sheet that stay until dismissed.
import { closest, h } from "../shared/dom.js";
import { icon } from "../shared/icons.js";
import { dismissed } from "../shared/storage.js";
import { redraw } from "./redraw.js";

/** @typedef {{ words: string, action?: { label: string, run: () => void } }} Notice */

/** @param {HTMLElement} root */
export function mountNotices(root) {
  /** By who says it. @type {Map<string, Notice[]>} */
  const told = new Map();
  /** @type {Notice[]} */
  let shown = [];
  /** What was dismissed, also where the browser keeps nothing. */
  const known = new Set(dismissed.read());

  root.addEventListener("click", (event) => {
    const button = closest(event, "[data-do]");
    const notice = shown[Number(button?.dataset.index)];
    if (!button || !notice) return;
    if (button.dataset.do === "act") return notice.action?.run();
    known.add(notice.words);
    dismissed.add(notice.words);
    draw();
    const next = root.querySelector("[data-do]") ?? document.getElementById("sheet");
    if (next instanceof HTMLElement) next.focus();
  });

  function draw() {
    shown = [...told.values()]
      .flat()
      .filter(({ words }, at, all) => !known.has(words) && all.findIndex((other) => other.words === words) === at);
    root.hidden = shown.length === 0;
    redraw(root, shown.map(({ words, action }, index) => h("div", { class: "lasting-notice", "data-key": words },
      icon("info"), h("span", { class: "notice-text" }, words),
      action ? h("button", {
        class: "button",
        type: "button",
        "data-kind": "secondary",
        "data-do": "act",
        "data-index": index,
      }, action.label) : null,
      h("button", {
        class: "icon-button",
        type: "button",
        "data-size": "row",
        "data-do": "dismiss",
        "data-index": index,
        "aria-label": `Dismiss: ${words}`,
        title: "Dismiss",
      }, icon("close")))));
  }

  /**
   * Says what there is to say now, in place of what the same one said before.
   * @param {string} who
   * @param {Notice[]} notices
   */
  return function tell(who, notices) {
    told.set(who, notices);
    draw();
  };
}
