// match-items.js: which items of a fresh history are already shown. Another run of the server may give the same items
// other ids. Pure.

/** @typedef {import("../shared/patch.js").Item} Item */
/** @typedef {{ id: string, items: string[] }} Turn */
/** What is shown, or is to be. @typedef {{ items: Map<string, Item>, turns: Turn[] }} Conversation */
/**
 * Ids as they are now → as they were.
 * @typedef {{ items: Map<string, string>, turns: Map<string, string> }} Renamed
 */

/**
 * Matches from the end, since a fresh history may begin later than what is shown.
 * @param {Conversation} before
 * @param {Conversation} after
 * @returns {Renamed}
 */
export function renamedOf(before, after) {
  /** The ids of the shown items by content, the newest last. @type {Map<string, string[]>} */
  const places = new Map();
  /** @type {Map<string, string>} */
  const turnOf = new Map();
  for (const turn of before.turns) {
    for (const id of turn.items) {
      turnOf.set(id, turn.id);
      const item = before.items.get(id);
      if (!item || after.items.has(id)) continue;
      const ids = places.get(contentKey(item));
      if (ids) ids.push(id);
      else places.set(contentKey(item), [id]);
    }
  }
  const renamed = { items: new Map(), turns: new Map() };
  const taken = new Set();
  for (const turn of [...after.turns].reverse()) {
    for (const id of [...turn.items].reverse()) {
      const item = after.items.get(id);
      const was = before.items.has(id) ? id : item && places.get(contentKey(item))?.pop();
      if (was === undefined) continue;
      if (was !== id) renamed.items.set(id, was);
      const turnWas = turnOf.get(was) ?? "";
      if (renamed.turns.has(turn.id) || taken.has(turnWas)) continue;
      taken.add(turnWas);
      renamed.turns.set(turn.id, turnWas);
    }
  }
  return renamed;
}

/** @param {Item} item */
const contentKey = (item) => JSON.stringify(item.type === "tool_call"
  ? [item.type, item.toolName, item.toolArguments]
  : [item.type, item.type === "message" ? item.origin : "", item.text.trim()]);
