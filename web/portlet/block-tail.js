// block-tail.js: changes only the end of a block that is still being written. The block's HTML comes from the server in
// a strict form. Where it cannot be parsed, the result is `null` and the block is redrawn.

const TOKEN = /<(\/?)([a-z][a-z0-9]*)((?:\s[^<>]*)?)>|[^<]+/gy;
const VOID = new Set(["br", "hr", "img"]);
const ENTITY = /&(?:#\d+|#x[0-9a-f]+|[a-z]+);/gi;

/** The browser re-measures a text run when it grows, so a run longer than this continues in a new one. */
const RUN_MAX = 1000;
/** A box around lines of code, see content.css. The server never emits this element. */
const LINES = "code-lines";

/** @typedef {{ kind: "open" | "close" | "void" | "text", length: number }} Token */

/**
 * How much of the first `keep` units of a block can stay: cut back to where no tag and no entity is open.
 * @param {string} html
 * @param {number} keep
 */
export function keptLength(html, keep) {
  const length = Math.min(keep, html.length);
  if (length === 0) return 0;
  const tag = html.lastIndexOf("<", length - 1);
  if (tag > html.lastIndexOf(">", length - 1)) return tag;
  const entity = html.lastIndexOf("&", length - 1);
  return entity >= 0 && entity > html.lastIndexOf(";", length - 1) ? entity : length;
}

/**
 * @param {string} html
 * @returns {Token[] | null}
 */
export function tokens(html) {
  /** @type {Token[]} */
  const found = [];
  TOKEN.lastIndex = 0;
  let at = 0;
  for (let match = TOKEN.exec(html); match; match = TOKEN.exec(html)) {
    const [whole, slash, name] = match;
    at += whole.length;
    if (name === undefined) found.push({ kind: "text", length: whole.replace(ENTITY, "&").length });
    else found.push({ kind: VOID.has(name) ? "void" : slash ? "close" : "open", length: 0 });
  }
  return at === html.length ? found : null;
}

/**
 * Removes the end of what `root` shows.
 * @param {Element} root
 * @param {string} html The end to remove.
 * @returns {Element | null} The element that was open there.
 */
export function removeTail(root, html) {
  const all = tokens(html);
  if (!all) return null;
  let at = root;
  for (const { kind, length } of all.reverse()) {
    const last = lastOf(at);
    if (kind === "close") {
      if (!(last instanceof Element)) return null;
      at = last;
    } else if (kind === "void") {
      if (!(last instanceof Element)) return null;
      last.remove();
    } else if (kind === "open") {
      const parent = at.parentElement;
      if (at === root || !parent || at.firstChild) return null;
      at.remove();
      at = parent;
    } else if (!takeText(at, length)) return null;
  }
  return at;
}

/**
 * Removes this many characters at the end; one text of the server may be several nodes here.
 * @param {Element} root
 * @param {number} length
 */
function takeText(root, length) {
  for (let left = length; left > 0;) {
    const last = lastOf(root);
    if (!(last instanceof Text)) return false;
    const taken = Math.min(left, last.length);
    if (taken === last.length) last.remove();
    else last.deleteData(last.length - taken, taken);
    left -= taken;
  }
  return true;
}

/** The last node that came from the server. @param {Element} root */
function lastOf(root) {
  for (let last = root.lastChild; last; last = root.lastChild) {
    if (isBox(last)) last.replaceWith(...last.childNodes);
    else if ((last instanceof Text && last.length === 0) || (last instanceof Element && last.localName === "wbr")) {
      last.remove();
    } else return last;
  }
  return null;
}

/** Joins the text runs of a finished block again. @param {Element} block */
export function joinRuns(block) {
  const joints = block.querySelectorAll("wbr");
  for (const joint of joints) joint.remove();
  if (joints.length) block.normalize();
}

/**
 * A block's HTML without the boxes around lines; the boxes themselves are invisible and stay.
 * @param {Element} block
 */
export const shownHtml = (block) => block.innerHTML.replaceAll(`<${LINES}>`, "").replaceAll(`</${LINES}>`, "");

/**
 * Puts the complete lines of code among these siblings into a box, so that the browser need not lay them out again
 * when more lines follow. The first sibling starts a line.
 * @param {ChildNode[]} nodes
 */
function boxLines(nodes) {
  // The last node may still be removed.
  const lines = nodes.slice(0, -1);
  while (lines.length && !lines.at(-1)?.textContent?.includes("\n")) lines.pop();
  const last = lines.at(-1);
  if (last instanceof Text) last.splitText(last.data.lastIndexOf("\n") + 1);
  else if (!last?.textContent?.endsWith("\n")) return;
  const box = document.createElement(LINES);
  lines[0]?.before(box);
  box.append(...lines);
}

/**
 * Boxes many new lines before they are inserted: moving them later would cost a second layout.
 * @param {string} html Code, from anywhere in a line.
 */
export function boxNewLines(html) {
  let depth = 0;
  let from = 0;
  let to = 0;
  for (const { 0: found, index } of html.matchAll(/<\/?|\n/g)) {
    if (found === "<") depth += 1;
    else if (found === "</") depth -= 1;
    else if (depth === 0) {
      from ||= index + 1;
      to = index + 1;
    }
  }
  return to - from < RUN_MAX
    ? html
    : `${html.slice(0, from)}<${LINES}>${html.slice(from, to)}</${LINES}>${html.slice(to)}`;
}

/** Boxes lines that arrived one by one. @param {Element} code */
function boxOldLines(code) {
  /** @type {ChildNode[]} Everything since the last box. */
  const loose = [];
  let length = 0;
  for (let node = code.lastChild; node && !isBox(node); node = node.previousSibling) {
    loose.unshift(node);
    length += node.textContent?.length ?? 0;
  }
  if (length >= 2 * RUN_MAX) boxLines(loose);
}

/** @param {Node | null} node */
const isBox = (node) => node instanceof Element && node.localName === LINES;

/**
 * The tags that are open from `root` down to `at`. Put before a new end, they make it parse in its place.
 * @param {Element} root
 * @param {Element} at
 */
export function openTags(root, at) {
  let html = "";
  for (let node = at; node !== root; node = /** @type {Element} */ (node.parentElement)) {
    html = `<${node.localName}>${html}`;
  }
  return html;
}

/**
 * Appends what was parsed after those tags at the open elements.
 * @param {Element} root
 * @param {Element} at
 * @param {ParentNode & Node} read
 */
export function appendTail(root, at, read) {
  /** @type {Element[]} */
  const path = [];
  for (let node = at; node !== root; node = /** @type {Element} */ (node.parentElement)) path.unshift(node);
  /** @type {Node} */
  let source = read;
  let target = root;
  for (const next of path) {
    const [first, ...rest] = [...source.childNodes];
    if (!(first instanceof Element) || first.localName !== next.localName) return false;
    target.append(...rest);
    source = first;
    target = next;
  }
  const nodes = [...source.childNodes];
  const last = target.lastChild;
  if (last instanceof Text && nodes[0] instanceof Text && continueText(last, nodes[0])) nodes.shift();
  target.append(...nodes);
  if (target.localName === "code") boxOldLines(target);
  return true;
}

/**
 * Continues a text run. A long run ends after the next space, where a line may break anyway, so nothing looks
 * different.
 * @param {Text} last
 * @param {Text} more
 * @returns {boolean} Whether all of `more` was used; otherwise it holds the rest.
 */
function continueText(last, more) {
  const end = last.length > RUN_MAX && !last.parentElement?.closest("pre") ? more.data.indexOf(" ") + 1 : 0;
  last.appendData(end ? more.data.slice(0, end) : more.data);
  if (end === 0) return true;
  last.after(document.createElement("wbr"));
  more.deleteData(0, end);
  return more.length === 0;
}
