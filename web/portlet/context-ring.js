// context-ring.js: how full the agent's context is, as a ring.

const SVG = "http://www.w3.org/2000/svg";
const RADIUS = 5.5;
const ROUND = 2 * Math.PI * RADIUS;

export function contextRing() {
  const node = document.createElementNS(SVG, "svg");
  node.setAttribute("class", "context-ring");
  node.setAttribute("viewBox", "0 0 14 14");
  node.setAttribute("aria-hidden", "true");
  const [, arc] = ["context-track", "context-arc"].map((name) => {
    const circle = document.createElementNS(SVG, "circle");
    circle.setAttribute("class", name);
    for (const [key, value] of Object.entries({ cx: "7", cy: "7", r: String(RADIUS) })) circle.setAttribute(key, value);
    node.append(circle);
    return circle;
  });
  return {
    node,
    /** @param {number} share 0 to 1. */
    draw(share) {
      arc?.setAttribute("stroke-dasharray", `${Math.min(1, Math.max(0, share)) * ROUND} ${ROUND}`);
    },
  };
}
