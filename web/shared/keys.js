// keys.js: the product's keys, as pressed and as printed on this platform.

/** @typedef {{ name: string, index?: number }} Shortcut */

export const isMac = /mac/i.test(/** @type {any} */ (navigator).userAgentData?.platform ?? navigator.platform ?? "");

const MOD = isMac ? "⌘" : "Ctrl ";
const NAV = isMac ? "⌃" : "Alt ";

/** Printed form: `mod("K")` is "⌘K" on a Mac and "Ctrl K" elsewhere. @param {string} key */
export const mod = (key) => MOD + key;
/** @param {string} key */
export const nav = (key) => NAV + key;

/** @type {Record<string, string>} */
const MOD_KEYS = { k: "palette", j: "next", b: "sidebar", ".": "rail" };
/** @type {Record<string, string>} */
const NAV_KEYS = { KeyN: "new-session", KeyW: "close-tab", BracketLeft: "previous-tab", BracketRight: "next-tab" };

/**
 * Which shortcut an event is, if any.
 * @param {KeyboardEvent} event
 * @returns {Shortcut | null}
 */
export function shortcutOf(event) {
  const modDown = isMac ? event.metaKey && !event.ctrlKey : event.ctrlKey && !event.metaKey;
  const navDown = isMac ? event.ctrlKey && !event.metaKey : event.altKey && !event.ctrlKey && !event.metaKey;
  if (event.key === "F6") return { name: "region", index: event.shiftKey ? -1 : 1 };
  if (event.key === "?" && !event.ctrlKey && !event.metaKey && !event.altKey && !isTyping(event)) {
    return { name: "shortcuts" };
  }
  // Anywhere else these keys select words.
  if (
    modDown
    && event.shiftKey
    && !event.altKey
    && event.target instanceof Element
    && event.target.closest('[role="tab"]')
  ) {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (step) return { name: "move-tab", index: step };
  }
  if (modDown && !event.shiftKey && !event.altKey) {
    const name = MOD_KEYS[event.key.toLowerCase()];
    if (name) return { name };
  }
  if (navDown && !event.shiftKey) {
    const name = NAV_KEYS[event.code];
    if (name) return { name };
    const digit = /^Digit([1-9])$/.exec(event.code);
    if (digit) return { name: "tab", index: Number(digit[1]) - 1 };
  }
  return null;
}

/** @param {KeyboardEvent} event */
const isTyping = ({ target }) => target instanceof Element && target.matches("input, textarea, select");
