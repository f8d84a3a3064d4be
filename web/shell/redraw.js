// redraw.js: updates a subtree without replacing its nodes. A node for the same thing stays the same node, so that it
// keeps focus, a press that began on it ends on it, and animations continue.
import { reconcile, setAttribute } from "../shared/dom.js";

/** Set by the menu that is open at a button; only the menu removes it. */
const MENU_ATTRIBUTE = "aria-expanded";

/**
 * Makes the children of `root` equal to `nodes`. Two nodes stand for the same thing if they have the same `data-key`,
 * or, without keys, the same tag name and the same position among nodes of that name.
 * @param {Element} root
 * @param {Iterable<Node>} nodes
 */
export function redraw(root, nodes) {
  const known = byKey(root.childNodes);
  reconcile(root, [...byKey(nodes)].map(([key, node]) => {
    const old = known.get(key);
    return old ? update(old, node) : node;
  }));
}

/** @param {Iterable<Node>} nodes */
function byKey(nodes) {
  /** @type {Map<string, Node>} */
  const found = new Map();
  /** @type {Map<string, number>} */
  const counts = new Map();
  for (const node of nodes) {
    const count = counts.get(node.nodeName) ?? 0;
    const own = node instanceof Element ? node.getAttribute("data-key") : null;
    if (own === null) counts.set(node.nodeName, count + 1);
    found.set(own === null ? `${node.nodeName} ${count}` : `${node.nodeName} =${own}`, node);
  }
  return found;
}

/** @param {Node} old @param {Node} node */
function update(old, node) {
  if (old === node || old.isEqualNode(node)) return old;
  if (old instanceof Element && node instanceof Element) {
    for (const name of old.getAttributeNames()) {
      if (name !== MENU_ATTRIBUTE && !node.hasAttribute(name)) old.removeAttribute(name);
    }
    for (const { name, value } of node.attributes) if (name !== MENU_ATTRIBUTE) setAttribute(old, name, value);
    redraw(old, [...node.childNodes]);
  } else old.nodeValue = node.nodeValue;
  return old;
}
