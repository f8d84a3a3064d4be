// notices.js: lines above the sheet that stay until the user dismisses them.
import { closest, h } from "../shared/dom.js";
import { icon } from "../shared/icons.js";
import { dismissed } from "../shared/storage.js";
import { redraw } from "./redraw.js";

/** @typedef {{ text: string, action?: { label: string, run: () => void } }} Notice */

/** @param {HTMLElement} root */
export function mountNotices(root) {
  /** By source. @type {Map<string, Notice[]>} */
  const bySource = new Map();
  /** @type {Notice[]} */
  let shown = [];
  /** Dismissed texts; kept here too, in case the browser stores nothing. */
  const known = new Set(dismissed.read());

  root.addEventListener("click", (event) => {
    const button = closest(event, "[data-do]");
    const notice = shown[Number(button?.dataset.index)];
    if (!button || !notice) return;
    if (button.dataset.do === "act") return notice.action?.run();
    known.add(notice.text);
    dismissed.add(notice.text);
    draw();
    const next = root.querySelector("[data-do]") ?? document.getElementById("sheet");
    if (next instanceof HTMLElement) next.focus();
  });

  function draw() {
    shown = [...bySource.values()]
      .flat()
      .filter(({ text }, at, all) => !known.has(text) && all.findIndex((other) => other.text === text) === at);
    root.hidden = shown.length === 0;
    redraw(root, shown.map(({ text, action }, index) => h("div", { class: "lasting-notice", "data-key": text },
      icon("info"), h("span", { class: "notice-text" }, text),
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
        "aria-label": `Dismiss: ${text}`,
        title: "Dismiss",
      }, icon("close")))));
  }

  /**
   * Replaces the notices of one source.
   * @param {string} source
   * @param {Notice[]} notices
   */
  return function setNotices(source, notices) {
    // A notice that is no longer true and becomes true again is a new one, even if the old one was dismissed.
    for (const { text } of bySource.get(source) ?? []) {
      if (!notices.some((notice) => notice.text === text) && known.delete(text)) dismissed.remove(text);
    }
    bySource.set(source, notices);
    draw();
  };
}
