// items.js: the nodes of items other than tool calls: user messages, the agent's text and thinking, notices.
import { closest, h, setAttribute, setText } from "../shared/dom.js";
import { glyph, icon, setGlyph } from "../shared/icons.js";
import { takeBlockChange } from "../shared/patch.js";
import { clock, duration } from "../shared/time.js";
import { settleBlocks, showBlocks } from "./html.js";
import { MEMORY } from "./memory-marks.js";

/** @typedef {import("./session.js").Item} Item */
/** @typedef {Exclude<Item, { type: "tool_call" }>} TextItem */
/** The HTML of each node's blocks. @type {WeakMap<HTMLElement, string[]>} */
const shown = new WeakMap();
/** A user's message longer than this folds. */
const LINES_MAX = 12;
const UNRECORDED = "The disk refused this message. It is kept in memory and is written when the disk accepts it again. "
  + "If Liminal Builder stops before that, it is lost.";

/** @param {TextItem} item */
export function createText(item) {
  if (item.type === "thinking") {
    const chevron = icon("chevron-right");
    chevron.classList.add("chevron");
    return h("div", { class: "thinking", "data-item": item.itemId },
      h("button", { class: "tool-head", type: "button", "aria-expanded": "false", "data-do": "toggle-thinking" },
        icon("bulb"),
        h("span", { class: "tool-verb" }),
        h("span", { class: "thinking-start truncate", dir: "auto" }),
        glyph("working"),
        chevron),
      h("div", { class: "thinking-text prose", hidden: true }));
  }
  if (item.origin === "user") {
    return h("article", { class: "user-turn", "data-item": item.itemId },
      h("span", { class: "visually-hidden" }, "You: "),
      h("div", { class: "user-text", dir: "auto" }),
      h("time", { class: "user-time" }),
      h("button", { class: "link-button user-more", type: "button", "data-do": "unfold-user", hidden: true },
        "Show all"),
      h("span", { class: "user-unrecorded", title: UNRECORDED, hidden: true },
        icon("info"),
        "Not recorded",
        h("span", { class: "visually-hidden" }, `. ${UNRECORDED}`)));
  }
  if (item.origin === "system") return notice("info", "");
  return h("div", { class: "message prose", "data-item": item.itemId });
}

/** @param {HTMLElement} node @param {TextItem} item */
export function updateText(node, item) {
  const live = item.status === "create" || item.status === "update";
  if (item.type === "thinking") return updateThinking(node, item, live);
  if (item.origin === "system") return setText(/** @type {Element} */ (node.lastElementChild), item.text);
  if (item.origin === "user") return updateUser(node, item);
  setAttribute(node, "aria-busy", live ? "true" : null);
  const blocks = shown.get(node) ?? [];
  shown.set(node, blocks);
  if (item.html.length || !item.text) showBlocks(node, item.html, blocks, takeBlockChange(item));
  else setText(node, item.text);
  // While the agent writes, the last block is still open.
  settleBlocks(node, item.html, item.html.length - (live ? 1 : 0));
  if (item.status === "error" && item.errorMessage) node.dataset.error = item.errorMessage;
}

/** @param {HTMLElement} node @param {Extract<TextItem, { type: "message" }>} item */
function updateUser(node, item) {
  const [, text, time, more] = /** @type {HTMLElement[]} */ ([...node.children]);
  if (!text || !time || !more) return;
  setText(text, item.text.trimEnd());
  setText(time, clock(item.startedAt));
  setAttribute(time, "datetime", item.startedAt);
  const long = item.text.split("\n").length > LINES_MAX || item.text.length > 1200;
  if (long && node.dataset.folded === undefined) node.dataset.folded = "true";
  more.hidden = node.dataset.folded !== "true";
}

/**
 * What is known of a user's message beside its text.
 * @param {HTMLElement} node
 * @param {{ forgotten: boolean, unrecorded: boolean }} turn
 */
export function markUser(node, { forgotten, unrecorded }) {
  const [speaker] = node.children;
  if (speaker) setText(speaker, forgotten ? "You (no longer in the agent’s memory): " : "You: ");
  const mark = node.lastElementChild;
  if (mark instanceof HTMLElement) mark.hidden = !unrecorded;
}

/** @param {HTMLElement} node @param {Extract<TextItem, { type: "thinking" }>} item @param {boolean} live */
function updateThinking(node, item, live) {
  const [head, body] = /** @type {HTMLElement[]} */ ([...node.children]);
  if (!head || !body) return;
  const [, verb, start, ring] = [...head.children];
  const took = Date.parse(item.changedAt) - Date.parse(item.startedAt);
  if (verb) setText(
    verb,
    live ? "Thinking" : took >= 1000 ? `Thought for ${duration(took).replace(/\.\ds$/, "s")}` : "Thought",
  );
  if (start) setText(start, live ? "" : item.text.replace(/\s+/g, " ").replace(/[*_`#]/g, "").trim().slice(0, 160));
  if (ring instanceof SVGElement) setGlyph(ring, live ? "working" : "idle", live ? "Running" : "");
  const open = node.dataset.open === "true";
  setAttribute(head, "aria-expanded", String(open));
  body.hidden = !open;
  if (!open) return;
  const blocks = shown.get(body) ?? [];
  shown.set(body, blocks);
  if (item.html.length) showBlocks(body, item.html, blocks, takeBlockChange(item));
  else setText(body, item.text);
}

/** A line between items. @param {string} picture @param {string} text @param {string} [kind] */
export function notice(picture, text, kind = "note") {
  return h("div", { class: "notice", "data-kind": kind },
    kind === "error" ? glyph("error") : icon(picture),
    h("span", {}, text));
}

/** A line between turns: the agent remembers what is below, or does not. @param {keyof typeof MEMORY} kind */
export function memoryMark(kind) {
  const { text, meaning } = MEMORY[kind];
  return h("div", { class: "memory-mark", role: "note", title: meaning, "data-memory": kind },
    icon(kind === "forgotten" ? "archive" : "bulb"),
    h("span", {}, text));
}

/** @param {Event} event @returns {string | null} The item that was opened or closed. */
export function toggleText(event) {
  const thought = closest(event, '[data-do="toggle-thinking"]')?.parentElement;
  if (thought) thought.dataset.open = String(thought.dataset.open !== "true");
  const user = closest(event, '[data-do="unfold-user"]')?.parentElement;
  if (user) user.dataset.folded = "false";
  return (thought ?? user)?.dataset.item ?? null;
}
