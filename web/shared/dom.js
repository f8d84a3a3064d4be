// dom.js: builds elements. Text is always set as text; attributes never hold script or style.

/** @typedef {Node | string | null | undefined | false} Child */

/**
 * @template {keyof HTMLElementTagNameMap} K
 * @param {K} tag
 * @param {Record<string, string | number | boolean | null | undefined>} [attributes] `true` sets an empty one; `false`,
 *   `null` and `undefined` omit it.
 * @param {...Child} children
 * @returns {HTMLElementTagNameMap[K]}
 */
export function h(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) setAttribute(node, name, value);
  for (const child of children) if (child || child === "") node.append(child);
  return node;
}

/**
 * Writes an attribute only if it differs, so that an update that changes nothing costs nothing.
 * @param {Element} node
 * @param {string} name
 * @param {string | number | boolean | null | undefined} value
 */
export function setAttribute(node, name, value) {
  if (value === false || value === null || value === undefined) {
    if (node.hasAttribute(name)) node.removeAttribute(name);
    return;
  }
  const text = value === true ? "" : String(value);
  if (node.getAttribute(name) !== text) node.setAttribute(name, text);
}

/**
 * @param {Node} node
 * @param {string} text
 */
export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

/**
 * Makes `nodes` the children of `root`, in order, moving as few as possible. A node that contains the focus is
 * never moved, since it would lose it: the others move around it.
 * @param {Element} root
 * @param {Node[]} nodes
 */
export function reconcile(root, nodes) {
  const wanted = new Set(nodes);
  for (const child of [...root.childNodes]) if (!wanted.has(child)) child.remove();
  let at = root.firstChild;
  for (const node of nodes) {
    if (node !== at && node.parentNode === root && node.contains(document.activeElement)) {
      for (let next = at; next && next !== node; next = at) {
        at = next.nextSibling;
        root.append(next);
      }
    }
    if (node === at) at = at.nextSibling;
    else root.insertBefore(node, at);
  }
}

/**
 * The nearest ancestor of an event's target that matches.
 * @param {Event} event
 * @param {string} selector
 * @returns {HTMLElement | null}
 */
export function closest(event, selector) {
  const target = event.target;
  return target instanceof Element ? /** @type {HTMLElement | null} */ (target.closest(selector)) : null;
}

/**
 * The one element that must exist.
 * @param {ParentNode} root
 * @param {string} selector
 * @returns {HTMLElement}
 */
export function find(root, selector) {
  const node = root.querySelector(selector);
  if (!(node instanceof HTMLElement)) throw new Error(`missing element ${selector}`);
  return node;
}
