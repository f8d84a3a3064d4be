// tabs-model.js: which sessions are open, in what order, and which one is in front. Pure: each step makes a new value.

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
 * Closes a tab. In front comes the next one, or the previous if it was the last.
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
 * Puts a tab at a place among the others.
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
 * @param {Tabs} tabs
 * @param {string} from
 * @param {string} to
 * @returns {Tabs}
 */
export function renameTab(tabs, from, to) {
  return { order: tabs.order.map((id) => (id === from ? to : id)), active: tabs.active === from ? to : tabs.active };
}

/**
 * Opens tabs again that were closed since, each at its place among those that stayed.
 * @param {Tabs} tabs
 * @param {Tabs} before How it was.
 * @param {(id: string) => boolean} wanted Which of those closed come back.
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
 * What is kept for all windows after one of them changed its own tabs: these, and what only the others have open.
 * @param {Tabs} stored
 * @param {Tabs} before This window's tabs, as they were.
 * @param {Tabs} after As they are.
 * @returns {Tabs}
 */
export function mergeTabs(stored, before, after) {
  const others = stored.order.filter((id) => !after.order.includes(id) && !before.order.includes(id));
  return { order: [...after.order, ...others], active: after.active ?? others[0] ?? null };
}

/**
 * What is kept under `liminal:tabs`.
 * @param {Tabs} tabs
 */
export const toStored = ({ order, active }) => ({ openTabs: order, activeTab: active, tabOrder: order });

/**
 * Reads the stored form; what is not understood is left out.
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
