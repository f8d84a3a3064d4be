// patch.js: applies upserts of the `view` encoding to items. Pure.

/** @typedef {import("./protocol.js").Upsert} Upsert */
/** @typedef {import("./protocol.js").BlockPatch} BlockPatch */
/**
 * An item as the page keeps it: the newest upsert with its whole text and all its rendered blocks.
 * `startedAt` is the time of its first upsert, `changedAt` that of the newest one with a timestamp: growth has none.
 * @typedef {Upsert & { readonly html: string[], text: string, startedAt: string, changedAt: string }} Item
 */

/** Where blocks first differ: before `from` they are equal, and so are the first `keep` units of that block. */
/** @typedef {{ from: number, keep: number }} BlockStart */

/** @type {BlockStart} */
export const WHOLE = { from: 0, keep: 0 };
/** @type {BlockStart} */
const NO_CHANGE = { from: Infinity, keep: 0 };

/**
 * Keeps the first `from` blocks, continues block `from` after its first `keep` units, appends the rest.
 * Applying a patch twice is the same as applying it once.
 * @param {string[]} blocks
 * @param {BlockPatch} patch
 * @returns {string[]}
 */
export function applyBlocks(blocks, { from, keep, html }) {
  const kept = blocks.slice(0, from);
  if (html.length === 0) return kept;
  const [first = "", ...rest] = html;
  return [...kept, (blocks[from] ?? "").slice(0, keep) + first, ...rest];
}

/**
 * Joins two consecutive patches if the second continues the block in which the first ended. So a block of any length
 * is assembled once per read, not once per message.
 * @param {BlockPatch} first
 * @param {BlockPatch} second
 * @returns {BlockPatch | null}
 */
export function joinPatches(first, second) {
  const at = second.from - first.from;
  if (at < 0 || at !== first.html.length - 1) return null;
  const kept = at === 0 ? second.keep - first.keep : second.keep;
  if (kept < 0 || second.html.length === 0) return null;
  const [head = "", ...rest] = second.html;
  return { ...first, html: [...first.html.slice(0, at), (first.html[at] ?? "").slice(0, kept) + head, ...rest] };
}

/**
 * Joins two consecutive upserts of one text if the second continues where the first ended. Applying the result equals
 * applying both.
 * @param {Upsert} first
 * @param {Upsert} second
 * @returns {Upsert | null}
 */
export function joinUpserts(first, second) {
  if (
    first.type === "tool_call"
    || second.type === "tool_call"
    || first.itemId !== second.itemId
    || first.status !== "update"
    || second.status !== "update"
  ) return null;
  if (
    !first.blocks
    || !second.blocks
    || first.contentFrom === undefined
    || second.contentFrom !== first.contentFrom + first.content.length
  ) return null;
  const blocks = joinPatches(first.blocks, second.blocks);
  return blocks && { ...second, content: first.content + second.content, contentFrom: first.contentFrom, blocks };
}

/** The rendered blocks of an item; patches are applied on read. */
class Blocks {
  /** @type {string[]} */
  #list = [];
  /** @type {BlockPatch | null} */
  #waiting = null;
  #change = NO_CHANGE;

  /** @param {BlockPatch} patch */
  add(patch) {
    const joined = this.#waiting && joinPatches(this.#waiting, patch);
    if (!joined) this.read();
    this.#waiting = joined ?? patch;
    this.#change = earlier(this.#change, patch);
  }

  /** The first change since the last call. */
  takeChange() {
    const change = this.#change;
    this.#change = NO_CHANGE;
    return change;
  }

  read() {
    if (this.#waiting) this.#list = applyBlocks(this.#list, this.#waiting);
    this.#waiting = null;
    return this.#list;
  }
}

/** @param {BlockStart} a @param {BlockStart} b @returns {BlockStart} */
function earlier(a, b) {
  const first = a.from < b.from || (a.from === b.from && a.keep <= b.keep) ? a : b;
  return { from: first.from, keep: first.keep };
}

/** @type {WeakMap<Item, Blocks>} */
const blocksOf = new WeakMap();

/**
 * @param {Item | undefined} known
 * @param {Upsert} upsert
 * @returns {Item}
 */
export function mergeUpsert(known, upsert) {
  const added = upsert.type === "tool_call" ? upsert.toolOutput : upsert.content;
  const before = known?.text ?? "";
  const text = added === undefined ? before : before.slice(0, upsert.contentFrom ?? 0) + added;
  const blocks = (known && blocksOf.get(known)) ?? new Blocks();
  if (upsert.blocks) blocks.add(upsert.blocks);
  const sections = upsert.sections ?? known?.sections;
  const item = {
    ...upsert, text, ...(sections ? { sections } : {}),
    startedAt: known?.startedAt ?? upsert.sourceTimestamp ?? "",
    changedAt: upsert.sourceTimestamp ?? known?.changedAt ?? "",
    get html() {
      return blocks.read();
    },
  };
  blocksOf.set(item, blocks);
  return item;
}

/**
 * Where an item's blocks first changed since this was last called. Only the one place that draws the item may call it.
 * @param {Item} item
 * @returns {BlockStart}
 */
export const takeBlockChange = (item) => blocksOf.get(item)?.takeChange() ?? WHOLE;
