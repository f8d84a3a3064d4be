// continuity-mark.js: the button beside the connection that says how this conversation goes on, and what it opens.
import { CONTINUITY, meaningOf } from "../shared/continuity.js";
import { h, setAttribute, setText } from "../shared/dom.js";
import { icon, setIcon } from "../shared/icons.js";

/** @typedef {import("../shared/continuity.js").Mark} Mark */

export function createContinuityMark() {
  const picture = icon("refresh");
  const label = h("span");
  const button = h("button", {
    class: "continuity",
    type: "button",
    "aria-haspopup": "dialog",
    "aria-expanded": "false",
    hidden: true,
  }, picture, label);
  /** @type {Mark | null} */
  let shown = null;
  let forgotten = false;
  /** @type {(() => void) | null} */
  let close = null;
  button.addEventListener("click", () => {
    if (close) close();
    else if (shown) close = openPopover(button, shown, forgotten, () => (close = null));
  });

  return {
    button,
    /** @param {Mark | null} mark @param {boolean} hasForgotten */
    draw(mark, hasForgotten) {
      if (mark !== shown || hasForgotten !== forgotten) close?.();
      shown = mark;
      forgotten = hasForgotten;
      button.hidden = mark === null;
      if (!mark) return;
      const own = CONTINUITY[mark];
      setAttribute(button, "data-continuity", mark);
      setAttribute(picture, "hidden", own.icon === null);
      if (own.icon) setIcon(picture, own.icon);
      setText(label, own.label);
      setAttribute(button, "title", meaningOf(mark, hasForgotten));
    },
  };
}

/**
 * @param {HTMLElement} button
 * @param {Mark} current
 * @param {boolean} forgotten
 * @param {() => void} closed
 * @returns {() => void} Closes it.
 */
function openPopover(button, current, forgotten, closed) {
  const heading = "How this conversation goes on";
  const popover = h("div", { class: "popover", role: "dialog", "aria-label": heading, tabindex: -1 },
    h("h2", {}, heading),
    h("ul", {}, .../** @type {Mark[]} */ (Object.keys(CONTINUITY)).map((mark) => {
      const own = CONTINUITY[mark];
      return h("li", { "data-continuity": mark, "aria-current": mark === current ? "true" : null },
        h("span", { class: "popover-icon" },
          own.icon ? icon(own.icon) : h("span", { class: "dot", "data-state": "connected" })),
        h("strong", {}, own.label),
        mark === current ? h("span", { class: "popover-note" }, "this session") : null,
        h("p", {}, mark === current ? meaningOf(mark, forgotten) : own.meaning));
    })));
  document.body.append(popover);
  const box = button.getBoundingClientRect();
  popover.style.setProperty("top", `${box.bottom + 6}px`);
  popover.style.setProperty("right", `${Math.max(8, innerWidth - box.right)}px`);
  button.setAttribute("aria-expanded", "true");
  popover.focus();

  const stop = new AbortController();
  const close = () => {
    if (stop.signal.aborted) return;
    stop.abort();
    const hadFocus = popover.contains(document.activeElement);
    popover.remove();
    button.setAttribute("aria-expanded", "false");
    if (hadFocus) button.focus();
    closed();
  };
  popover.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" && event.key !== "Tab") return;
    event.preventDefault();
    event.stopPropagation();
    close();
  });
  addEventListener("pointerdown", ({ target }) => {
    if (target instanceof Node && !popover.contains(target) && !button.contains(target)) close();
  }, { capture: true, signal: stop.signal });
  for (const kind of ["blur", "resize"]) addEventListener(kind, close, { signal: stop.signal });
  return close;
}
