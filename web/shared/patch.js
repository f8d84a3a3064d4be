// patch.js: how an upsert of the `view` encoding changes what is known of an item. Pure.

/** @typedef {import("./protocol.js").Upsert} Upsert */
/** @typedef {import("./protocol.js").BlockPatch} BlockPatch */
/**
 * An item as the page keeps it: the newest upsert with its whole text and all its rendered blocks.
 * `startedAt` is when it was first heard of, `changedAt` when it was last said to have changed: growth tells no time.
 * @typedef {Upsert & { readonly html: string[], text: string, startedAt: string, changedAt: string }} Item
 */

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
 * Two patches in a row as one, where the second goes on in the block the first ended in. So a block of any length is
 * put together once per reading, not once per message.
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
 * Two upserts of one text in a row as one, where the second goes on where the first ended. To apply it is to apply
 * both.
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

/** The rendered blocks of an item; patches wait until somebody reads. */
class Blocks {
  /** @type {string[]} */
  #list = [];
  /** @type {BlockPatch | null} */
  #waiting = null;

  /** @param {BlockPatch} patch */
  add(patch) {
    const joined = this.#waiting && joinPatches(this.#waiting, patch);
    if (!joined) this.read();
    this.#waiting = joined ?? patch;
  }

  read() {
    if (this.#waiting) this.#list = applyBlocks(this.#list, this.#waiting);
    this.#waiting = null;
    return this.#list;
  }
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
