// redraw.js: draws anew without taking away what is there. What stands for the same thing stays the same node, so that
// a press that began on it ends on it, it keeps focus, and what turns goes on turning.
import { reconcile, setAttribute } from "../shared/dom.js";

/** Written by the menu that is open at a button, and nobody else's to take away. */
const OF_MENUS = "aria-expanded";

/**
 * Makes what is in `root` equal to `nodes`. Two nodes stand for the same thing if they have the same `data-key`, or,
 * where they have none, the same name and the same place among those of that name.
 * @param {Element} root
 * @param {Iterable<Node>} nodes
 */
export function redraw(root, nodes) {
  const known = byKey(root.childNodes);
  reconcile(root, [...byKey(nodes)].map(([key, node]) => {
    const old = known.get(key);
    return old ? become(old, node) : node;
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
function become(old, node) {
  if (old === node || old.isEqualNode(node)) return old;
  if (old instanceof Element && node instanceof Element) {
    for (const name of old.getAttributeNames()) {
      if (name !== OF_MENUS && !node.hasAttribute(name)) old.removeAttribute(name);
    }
    for (const { name, value } of node.attributes) if (name !== OF_MENUS) setAttribute(old, name, value);
    redraw(old, [...node.childNodes]);
  } else old.nodeValue = node.nodeValue;
  return old;
}
