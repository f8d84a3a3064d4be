// html.js: the only place that sets innerHTML, with HTML that the server rendered and sanitized, and nothing else.
import { h } from "../shared/dom.js";
import { icon } from "../shared/icons.js";

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
    block.innerHTML = html;
    shown[at] = html;
  }
  while (root.children.length > blocks.length) root.lastElementChild?.remove();
  shown.length = blocks.length;
}

/**
 * @param {HTMLElement} root
 * @param {string} html From a section of a tool call, or from `session:output`.
 */
export function showSection(root, html) {
  root.innerHTML = html;
}

/** Gives every code block its Copy button. @param {HTMLElement} root */
export function addCopyButtons(root) {
  for (const caption of root.querySelectorAll("figure.code > figcaption")) {
    if (caption.querySelector(".copy-code")) continue;
    caption.append(h("button", { class: "copy-code", type: "button" }, icon("copy"), h("span", { "data-copy-label": true }, "Copy")));
  }
  for (const scrolls of root.querySelectorAll("figure.code > pre, div.table")) scrolls.setAttribute("tabindex", "0");
}
