// tool.js: one tool call: a quiet row or a box, with a body that is built when it is first opened.
import { closest, h, setAttribute, setText } from "../shared/dom.js";
import { glyph, icon, setGlyph, setIcon } from "../shared/icons.js";
import { duration, elapsed } from "../shared/time.js";
import { drawBody } from "./tool-body.js";
import { isQuiet, kindOf, linesRead, permissionLabel, stateOf, timeOf, labelOf } from "./tool-labels.js";

/** @typedef {import("./session.js").Item} Item */
/** @typedef {Extract<Item, { type: "tool_call" }>} ToolItem */
/** @typedef {{ root: string, home: string }} Place */
/** Whether the user opened or closed a call, overriding the default. @type {WeakMap<HTMLElement, boolean>} */
const userToggled = new WeakMap();
/** Diffs up to this many lines are open by default. */
const DIFF_LINES_MAX = 24;

/** @param {string} itemId */
export function createTool(itemId) {
  const chevron = icon("chevron-right");
  chevron.classList.add("chevron");
  return h("div", { class: "tool", "data-item": itemId },
    h("button", { class: "tool-head", type: "button", "aria-expanded": "false", "data-do": "toggle-tool" },
      icon("wrench"),
      h("span", { class: "tool-verb" }),
      h("span", { class: "tool-target truncate" }),
      h("span", { class: "tool-detail" }),
      h("span", { class: "tool-end" },
        h("span", { class: "tool-added" }), h("span", { class: "tool-removed" }), h("span", { class: "tool-time" }),
        glyph("working"), icon("check"), h("span", { class: "tool-failure" })),
      chevron),
    h("div", { class: "tool-nested" }),
    h("div", { class: "tool-body", hidden: true }));
}

/**
 * @param {HTMLElement} node
 * @param {ToolItem} item
 * @param {{ place: Place, cliType: string, isLast: boolean, now: number }} view `isLast`: nothing came after it.
 */
export function updateTool(node, item, { place, cliType, isLast, now }) {
  const state = stateOf(item);
  const label = labelOf(item, place);
  const head = /** @type {HTMLElement} */ (node.firstElementChild);
  const [picture, verb, target, detail, end] = [...head.children];
  setAttribute(node, "data-form", isQuiet(item) ? "row" : "box");
  setAttribute(node, "data-state", state);
  setAttribute(node, "data-kind", kindOf(item));
  if (picture instanceof SVGElement) setIcon(picture, label.icon);
  if (verb) setText(verb, label.verb);
  if (target) {
    setText(target, label.target);
    setAttribute(target, "title", label.target);
    target.classList.toggle("mono", label.isCode);
  }
  if (detail) setText(detail, [linesRead(item), permissionLabel(item)].filter(Boolean).join(" · "));
  if (end) drawEnd(end, item, now);
  const open = userToggled.get(node) ?? opensByItself(item, isLast);
  setAttribute(head, "aria-expanded", String(open));
  setAttribute(node, "data-toggled", userToggled.get(node));
  const body = /** @type {HTMLElement} */ (node.lastElementChild);
  body.hidden = !open;
  if (open) drawBody(body, item, cliType);
}

/** @param {Element} end @param {ToolItem} item @param {number} now */
function drawEnd(end, item, now) {
  const state = stateOf(item);
  const [added, removed, time, ring, check, failure] = [...end.children];
  const plus = item.sections?.reduce((sum, section) => sum + (section.added ?? 0), 0) ?? 0;
  const minus = item.sections?.reduce((sum, section) => sum + (section.removed ?? 0), 0) ?? 0;
  const took = timeOf(item, now);
  const exit = item.tool?.exitCode;
  if (added) setText(added, plus ? `+${plus}` : "");
  if (removed) setText(removed, minus ? `−${minus}` : "");
  if (time) {
    setText(time, [
      exit === undefined || exit === null || state === "failed" ? "" : `exit ${exit}`,
      state === "running" ? elapsed(took) : took >= 50 ? duration(took) : "",
    ].filter(Boolean).join(" · "));
  }
  if (ring instanceof SVGElement) setGlyph(
    ring,
    state === "running" ? "working" : state === "done" ? "idle" : "error",
    state === "running" ? "Running" : "",
  );
  ring?.classList.toggle("gone", state === "done");
  check?.classList.toggle("gone", state !== "done");
  if (check && state === "done") {
    setAttribute(check, "role", "img");
    setAttribute(check, "aria-label", "Succeeded");
    setAttribute(check, "aria-hidden", null);
  }
  if (failure) {
    const isRejected = item.tool?.permission?.decision === "rejected";
    const reason = exit ? `exit ${exit}` : isRejected ? "Rejected" : "Failed";
    setText(failure, state === "interrupted" ? "Interrupted" : state === "failed" ? reason : "");
  }
}

/** @param {ToolItem} item @param {boolean} isLast */
function opensByItself(item, isLast) {
  const state = stateOf(item);
  if (state === "failed") return true;
  if (state === "interrupted" || isQuiet(item)) return false;
  if (kindOf(item) === "execute") return state === "running" || isLast;
  if (kindOf(item) === "agent") return false;
  return diffLines(item) <= DIFF_LINES_MAX && (item.sections?.length ?? 0) > 0;
}

/** @param {ToolItem} item */
const diffLines = (item) =>
  (item.sections ?? []).reduce((sum, { html }) => sum + html.split('class="line').length - 1, 0);

/** Updates the elapsed time of a running call. @param {HTMLElement} node @param {ToolItem} item @param {number} now */
export function tickTool(node, item, now) {
  const end = node.querySelector(".tool-end");
  if (end && stateOf(item) === "running") drawEnd(end, item, now);
}

/**
 * @param {Event} event
 * @returns {string | null} The call that was toggled.
 */
export function toggleTool(event) {
  const head = closest(event, '[data-do="toggle-tool"]');
  const node = head?.parentElement;
  if (!head || !node?.dataset.item) return null;
  userToggled.set(node, head.getAttribute("aria-expanded") !== "true");
  return node.dataset.item;
}
