// html.js: the only place that sets innerHTML, with HTML that the server rendered and sanitized, and nothing else.
import { h, setAttribute } from "../shared/dom.js";
import { icon } from "../shared/icons.js";
import { createPolicy } from "../shared/trusted-types.js";
import { boxNewLines, appendTail, joinRuns, openTags, keptLength, shownHtml, removeTail } from "./block-tail.js";

/** Marks HTML as trusted for the browser: the server has sanitized it. No other module can. */
const rendered = createPolicy("liminal-rendered", { html: (text) => text });

/** How many blocks of each text are finished. @type {WeakMap<HTMLElement, number>} */
const settled = new WeakMap();

/** Blocks whose direction is known. @type {WeakSet<Element>} */
const withDirection = new WeakSet();
const RIGHT_TO_LEFT = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\u{10800}-\u{10fff}\u{1e800}-\u{1efff}]/u;
/** A block without a letter up to here gets no direction of its own. */
const HEAD_MAX = 2000;

/**
 * Makes the children of `root` show `blocks`. Only blocks from the first change on are looked at; of those, equal ones
 * stay as they are.
 * @param {HTMLElement} root
 * @param {string[]} blocks From `blocks` of an upsert.
 * @param {string[]} shown The HTML of the children now; this function updates it.
 * @param {import("../shared/patch.js").BlockStart} change Where `blocks` first differ from what was last drawn.
 */
export function showBlocks(root, blocks, shown, { from, keep }) {
  for (let at = Math.min(from, shown.length); at < blocks.length; at += 1) {
    const html = blocks[at] ?? "";
    if (shown[at] === html) continue;
    let block = root.children[at];
    if (!block) {
      block = h("div", { class: "block" });
      root.append(block);
    }
    // A finished block changed after all: it is redrawn.
    const reopened = at < (settled.get(root) ?? 0);
    if (reopened) settled.set(root, at);
    if (reopened || !continueBlock(block, shown[at] ?? "", html, at === from ? keep : 0)) {
      block.innerHTML = rendered.html(html);
      withDirection.delete(block);
    }
    if (!withDirection.has(block)) setDirection(block, html);
    shown[at] = html;
  }
  while (root.children.length > blocks.length) root.lastElementChild?.remove();
  shown.length = blocks.length;
}

/**
 * Sets a block's direction by its first letter. `dir="auto"` would do the same, but searches again at every new node.
 * @param {Element} block
 * @param {string} html
 */
function setDirection(block, html) {
  const letter = html.slice(0, HEAD_MAX).replace(/<[^>]*>?|&[^;]*;/g, "").match(/\p{L}/u)?.[0];
  if (letter === undefined && html.length < HEAD_MAX) return;
  withDirection.add(block);
  setAttribute(block, "dir", letter !== undefined && RIGHT_TO_LEFT.test(letter) ? "rtl" : null);
}

/**
 * Changes only the end of a block that grew.
 * @param {Element} block
 * @param {string} before
 * @param {string} after
 * @param {number} keep How many units of `before` are unchanged.
 */
function continueBlock(block, before, after, keep) {
  const kept = keptLength(before, keep);
  if (kept < before.length / 2) return false;
  const at = removeTail(block, before.slice(kept));
  if (!at) return false;
  const end = document.createElement("template");
  const more = after.slice(kept);
  end.innerHTML = rendered.html(openTags(block, at) + (at.localName === "code" ? boxNewLines(more) : more));
  return appendTail(block, at, end.content);
}

/**
 * Makes sure, once, that finished blocks show exactly what one render of the whole text gives, and adds their buttons.
 * @param {HTMLElement} root
 * @param {string[]} blocks
 * @param {number} count How many of them are finished.
 */
export function settleBlocks(root, blocks, count) {
  for (let at = settled.get(root) ?? 0; at < count; at += 1) {
    const block = root.children[at];
    if (!(block instanceof HTMLElement)) continue;
    joinRuns(block);
    if (!shows(block, blocks[at] ?? "")) block.innerHTML = rendered.html(blocks[at] ?? "");
    addCopyButtons(block);
  }
  settled.set(root, Math.max(count, settled.get(root) ?? 0));
}

/**
 * The server serializes HTML as browsers do. Where it differs, the HTML is parsed before it is compared.
 * @param {Element} block
 * @param {string} html
 */
function shows(block, html) {
  const shown = shownHtml(block);
  if (shown === html) return true;
  const whole = document.createElement("template");
  whole.innerHTML = rendered.html(html);
  return shown === whole.innerHTML;
}

/**
 * @param {HTMLElement} root
 * @param {string} html From a section of a tool call, or from `session:output`.
 */
export function showSection(root, html) {
  root.innerHTML = rendered.html(html);
}

/** Gives every code block its Copy button. @param {HTMLElement} root */
export function addCopyButtons(root) {
  for (const caption of root.querySelectorAll("figure.code > figcaption")) {
    if (caption.querySelector(".copy-code")) continue;
    caption.append(h("button", { class: "copy-code", type: "button" },
      icon("copy"),
      h("span", { "data-copy-label": true }, "Copy")));
  }
  for (const scrolls of root.querySelectorAll("figure.code > pre, div.table")) scrolls.setAttribute("tabindex", "0");
}
