// tabs-model.js: which sessions are open, in what order, and which one is active. Pure: each step returns a new value.

/** @typedef {{ order: string[], active: string | null }} Tabs */

/** @type {Tabs} */
export const NO_TABS = { order: [], active: null };

/**
 * Opens a session, or activates its tab if it has one.
 * @param {Tabs} tabs
 * @param {string} id
 * @returns {Tabs}
 */
export function openTab(tabs, id) {
  return { order: tabs.order.includes(id) ? tabs.order : [...tabs.order, id], active: id };
}

/**
 * Closes a tab. The next one becomes active, or the previous if it was the last.
 * @param {Tabs} tabs
 * @param {string} id
 * @returns {Tabs}
 */
export function closeTab(tabs, id) {
  const at = tabs.order.indexOf(id);
  if (at < 0) return tabs;
  const order = tabs.order.filter((other) => other !== id);
  const active = tabs.active === id ? (order[at] ?? order[at - 1] ?? null) : tabs.active;
  return { order, active };
}

/**
 * Moves a tab among the others.
 * @param {Tabs} tabs
 * @param {string} id
 * @param {number} to Its index afterwards.
 * @returns {Tabs}
 */
export function moveTab(tabs, id, to) {
  if (!tabs.order.includes(id)) return tabs;
  const order = tabs.order.filter((other) => other !== id);
  order.splice(Math.max(0, Math.min(to, order.length)), 0, id);
  return { ...tabs, order };
}

/**
 * Reopens tabs that were closed since, each at its old place among the others.
 * @param {Tabs} tabs
 * @param {Tabs} before The earlier state.
 * @param {(id: string) => boolean} wanted Which of the closed tabs to reopen.
 * @returns {Tabs}
 */
export function restoreTabs(tabs, before, wanted) {
  const order = [...tabs.order];
  before.order.forEach((id, at) => {
    if (order.includes(id) || !wanted(id)) return;
    const left = before.order.slice(0, at).findLast((other) => order.includes(other));
    order.splice(left === undefined ? 0 : order.indexOf(left) + 1, 0, id);
  });
  const active = before.active !== null && wanted(before.active) ? before.active : tabs.active;
  return { order, active };
}

/**
 * What to store for all windows after one changed its tabs: its tabs, plus those that only other windows have open.
 * @param {Tabs} stored
 * @param {Tabs} before This window's tabs before the change.
 * @param {Tabs} after This window's tabs now.
 * @returns {Tabs}
 */
export function mergeTabs(stored, before, after) {
  const others = stored.order.filter((id) => !after.order.includes(id) && !before.order.includes(id));
  return { order: [...after.order, ...others], active: after.active ?? others[0] ?? null };
}

/**
 * The stored form, under `liminal:tabs`.
 * @param {Tabs} tabs
 */
export const toStored = ({ order, active }) => ({ openTabs: order, activeTab: active, tabOrder: order });

/**
 * Reads the stored form and skips what it does not understand.
 * @param {unknown} stored
 * @returns {Tabs}
 */
export function fromStored(stored) {
  if (!stored || typeof stored !== "object") return NO_TABS;
  const { openTabs, tabOrder, activeTab } = /** @type {Record<string, unknown>} */ (stored);
  const strings = (/** @type {unknown} */ value) =>
    (Array.isArray(value) ? value.filter((id) => typeof id === "string") : []);
  const open = strings(openTabs);
  const order = [...new Set([...strings(tabOrder).filter((id) => open.includes(id)), ...open])];
  const active = typeof activeTab === "string" && order.includes(activeTab) ? activeTab : (order[0] ?? null);
  return { order, active };
}
