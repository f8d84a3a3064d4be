// tail.js: changes only the end of a block that is still being written. The block's HTML is the server's, strictly
// spelled; what is not understood is answered with `null`, and the block is drawn anew.

const TOKEN = /<(\/?)([a-z][a-z0-9]*)((?:\s[^<>]*)?)>|[^<]+/gy;
const VOID = new Set(["br", "hr", "img"]);
const ENTITY = /&(?:#\d+|#x[0-9a-f]+|[a-z]+);/gi;

/** @typedef {{ kind: "open" | "close" | "void" | "text", length: number }} Token */

/**
 * How much of the beginning two texts share, cut back to where no tag and no entity is open.
 * @param {string} before
 * @param {string} after
 */
export function sharedLength(before, after) {
  let low = 0;
  let high = Math.min(before.length, after.length);
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (after.startsWith(before.slice(low, middle), low)) low = middle;
    else high = middle - 1;
  }
  const tag = before.lastIndexOf("<", low - 1);
  if (low > 0 && tag > before.lastIndexOf(">", low - 1)) return tag;
  const entity = before.lastIndexOf("&", low - 1);
  return low > 0 && entity >= 0 && entity > before.lastIndexOf(";", low - 1) ? entity : low;
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
 * Takes the end of what `root` shows away again.
 * @param {Element} root
 * @param {string} html The end to take away.
 * @returns {Element | null} The element that was open there.
 */
export function undo(root, html) {
  const all = tokens(html);
  if (!all) return null;
  let at = root;
  for (const { kind, length } of all.reverse()) {
    const last = at.lastChild;
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
    } else if (!(last instanceof Text) || last.length < length) return null;
    else if (last.length === length) last.remove();
    else last.deleteData(last.length - length, length);
  }
  return at;
}

/**
 * The tags that are open from `root` down to `at`, to be put before a new end so that it is read in its place.
 * @param {Element} root
 * @param {Element} at
 */
export function openTags(root, at) {
  let html = "";
  for (let node = at; node !== root; node = /** @type {Element} */ (node.parentElement)) html = `<${node.localName}>${html}`;
  return html;
}

/**
 * Puts what was read after those tags where they are open.
 * @param {Element} root
 * @param {Element} at
 * @param {ParentNode & Node} read
 */
export function graft(root, at, read) {
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
  if (last instanceof Text && nodes[0] instanceof Text) last.appendData(/** @type {Text} */ (nodes.shift()).data);
  target.append(...nodes);
  return true;
}
