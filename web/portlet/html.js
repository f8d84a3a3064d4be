// html.js: the only place that sets innerHTML, with HTML that the server rendered and sanitized, and nothing else.
import { h, setAttribute } from "../shared/dom.js";
import { icon } from "../shared/icons.js";
import { createPolicy } from "../shared/trusted-types.js";
import { boxNew, graft, joinRuns, openTags, sharedLength, shownHtml, undo } from "./block-tail.js";

/** The server has sanitized it; this says so to the browser, and nobody else can. */
const rendered = createPolicy("liminal-rendered", { html: (text) => text });

/** How many blocks of each text are finished. @type {WeakMap<HTMLElement, number>} */
const settled = new WeakMap();

/** Blocks whose direction is known. @type {WeakSet<Element>} */
const directed = new WeakSet();
const RIGHT_TO_LEFT = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\u{10800}-\u{10fff}\u{1e800}-\u{1efff}]/u;
/** Where a block has no letter up to here, it has none that says how it reads. */
const HEAD_MAX = 2000;

/**
 * Makes the children of `root` show `blocks`: finished ones are never touched again, only what differs is replaced.
 * @param {HTMLElement} root
 * @param {string[]} blocks From `blocks` of an upsert.
 * @param {string[]} shown What the children show now; brought up to date.
 */
export function showBlocks(root, blocks, shown) {
  for (let at = 0; at < blocks.length; at += 1) {
    const html = blocks[at] ?? "";
    if (shown[at] === html) continue;
    let block = root.children[at];
    if (!block) {
      block = h("div", { class: "block" });
      root.append(block);
    }
    // A block that was taken for finished is as new again.
    const reopened = at < (settled.get(root) ?? 0);
    if (reopened) settled.set(root, at);
    if (reopened || !continueBlock(block, shown[at] ?? "", html)) {
      block.innerHTML = rendered.html(html);
      directed.delete(block);
    }
    if (!directed.has(block)) direct(block, html);
    shown[at] = html;
  }
  while (root.children.length > blocks.length) root.lastElementChild?.remove();
  shown.length = blocks.length;
}

/**
 * A block reads as its first letter does. `dir="auto"` says the same, but has it looked for at every node that comes
 * in.
 * @param {Element} block
 * @param {string} html
 */
function direct(block, html) {
  const letter = html.slice(0, HEAD_MAX).replace(/<[^>]*>?|&[^;]*;/g, "").match(/\p{L}/u)?.[0];
  if (letter === undefined && html.length < HEAD_MAX) return;
  directed.add(block);
  setAttribute(block, "dir", letter !== undefined && RIGHT_TO_LEFT.test(letter) ? "rtl" : null);
}

/**
 * Changes only the end of a block that grew.
 * @param {Element} block
 * @param {string} before
 * @param {string} after
 */
function continueBlock(block, before, after) {
  const shared = sharedLength(before, after);
  if (shared < before.length / 2) return false;
  const at = undo(block, before.slice(shared));
  if (!at) return false;
  const end = document.createElement("template");
  const more = after.slice(shared);
  end.innerHTML = rendered.html(openTags(block, at) + (at.localName === "code" ? boxNew(more) : more));
  return graft(block, at, end.content);
}

/**
 * Makes sure that finished blocks show exactly what one render of the whole gives, once, and gives them their buttons.
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
 * The server spells its HTML as browsers do; only where it does not, it has to be read to be compared.
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
