// open-in.js: the menu entries that open a directory on the server's machine.

/** @typedef {import("./protocol.js").OpenTarget} OpenTarget */

/** @type {[OpenTarget, string, string][]} */
export const OPEN_TARGETS = [
  ["editor", "Open in editor", "pencil-square"],
  ["terminal", "Open terminal here", "terminal"],
];

/** Why the entries are disabled. */
export const NO_DISPLAY = "Liminal Builder runs without a display";

/**
 * @param {boolean} hasDisplay
 * @param {(target: OpenTarget) => void} open
 * @returns {import("./menu.js").MenuEntry[]}
 */
export const openEntries = (hasDisplay, open) => OPEN_TARGETS.map(([target, label, icon]) => ({
  label, icon, disabled: !hasDisplay, ...(hasDisplay ? {} : { note: NO_DISPLAY }), run: () => open(target),
}));
