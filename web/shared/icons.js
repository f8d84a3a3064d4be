// icons.js: pictures from the sprite, as elements.
import "./sprite.js";

const SVG = "http://www.w3.org/2000/svg";

/**
 * @param {string} name
 * @param {string} className
 */
function svg(name, className) {
  const node = document.createElementNS(SVG, "svg");
  node.setAttribute("class", className);
  node.setAttribute("aria-hidden", "true");
  const use = document.createElementNS(SVG, "use");
  use.setAttribute("href", `#i-${name}`);
  node.append(use);
  return node;
}

/** @param {string} name */
export const icon = (name) => svg(name, "icon");

/**
 * @param {SVGElement} node
 * @param {string} name
 */
export function setIcon(node, name) {
  const href = `#i-${name}`;
  const use = node.firstElementChild;
  if (use && use.getAttribute("href") !== href) use.setAttribute("href", href);
}

/** Marks of known agents, whatever the case of their name; any other agent gets one of three shapes by its name. */
const MARKS = /** @type {Record<string, string>} */ ({
  "claude-code": "agent-claude-code",
  codex: "agent-codex",
  gemini: "agent-gemini",
  opencode: "agent-opencode",
  demo: "agent-demo",
});

/** @param {string} cliType */
export function markName(cliType) {
  const name = cliType.toLowerCase();
  const known = MARKS[name] ?? MARKS[name.split(/[^a-z]/)[0] ?? ""];
  if (known) return known;
  let sum = 0;
  for (const letter of cliType) sum += letter.codePointAt(0) ?? 0;
  return `agent-other-${sum % 3}`;
}

/** @param {string} cliType */
export function mark(cliType) {
  const node = icon(markName(cliType));
  node.classList.add("mark");
  return node;
}

/**
 * The sign of a state. An idle session has an empty slot of the same size.
 * @param {import("./protocol.js").Attention} attention
 * @param {{ size?: 12 | 14 | 16, label?: string }} [options]
 */
export function glyph(attention, { size = 14, label } = {}) {
  const node = svg(`state-${attention}`, "glyph");
  node.dataset.size = String(size);
  setGlyph(node, attention, label);
  return node;
}

/**
 * @param {SVGElement} node
 * @param {import("./protocol.js").Attention} attention
 * @param {string} [label]
 */
export function setGlyph(node, attention, label) {
  if (node.dataset.attention !== attention) {
    node.dataset.attention = attention;
    if (attention === "idle") node.firstElementChild?.removeAttribute("href");
    else setIcon(node, `state-${attention}`);
  }
  if (label && attention !== "idle") {
    node.setAttribute("role", "img");
    node.setAttribute("aria-label", label);
    node.removeAttribute("aria-hidden");
  } else {
    node.removeAttribute("role");
    node.removeAttribute("aria-label");
    node.setAttribute("aria-hidden", "true");
  }
}
