// tab-drag.js: reorders tabs by dragging. A line shows where the tab will go.
import { closest } from "../shared/dom.js";

/**
 * @param {HTMLElement} strip
 * @param {(id: string, to: number) => void} move
 */
export function driveTabDrag(strip, move) {
  /** @type {HTMLElement | null} */
  let dragged = null;
  /** @type {{ tab: HTMLElement, after: boolean } | null} */
  let target = null;

  const clear = () => {
    for (const tab of strip.querySelectorAll("[data-drop]")) tab.removeAttribute("data-drop");
    target = null;
  };

  strip.addEventListener("dragstart", (event) => {
    dragged = closest(event, ".tab");
    if (!dragged || !event.dataTransfer) return;
    event.dataTransfer.effectAllowed = "move";
    event.dataTransfer.setData("text/plain", dragged.dataset.id ?? "");
    dragged.dataset.dragged = "";
  });
  /** Marks where the tab would go if dropped now. @param {DragEvent} event */
  function aim(event) {
    if (!dragged) return;
    event.preventDefault();
    const tab = closest(event, ".tab") ?? /** @type {HTMLElement | null} */ (strip.lastElementChild);
    if (!tab) return;
    const box = tab.getBoundingClientRect();
    const after = event.clientX > box.left + box.width / 2;
    if (target?.tab === tab && target.after === after) return;
    clear();
    target = { tab, after };
    tab.dataset.drop = after ? "after" : "before";
  }
  strip.addEventListener("dragenter", aim);
  strip.addEventListener("dragover", aim);
  strip.addEventListener("drop", (event) => {
    // The browser may not have fired dragover for the last movement.
    aim(event);
    if (!dragged || !target) return;
    const others = [...strip.children].filter((tab) => tab !== dragged);
    const at = others.indexOf(target.tab);
    // Dropped on itself: nothing moves.
    if (at >= 0) move(dragged.dataset.id ?? "", target.after ? at + 1 : at);
  });
  strip.addEventListener("dragend", () => {
    if (dragged) delete dragged.dataset.dragged;
    dragged = null;
    clear();
  });
}
