// patch.js: how an upsert of the `view` encoding changes what is known of an item. Pure.

/** @typedef {import("./protocol.js").Upsert} Upsert */
/** @typedef {import("./protocol.js").BlockPatch} BlockPatch */
/**
 * An item as the page keeps it: the newest upsert with its whole text and all its rendered blocks.
 * @typedef {Upsert & { html: string[], text: string }} Item
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
 * @param {Item | undefined} known
 * @param {Upsert} upsert
 * @returns {Item}
 */
export function mergeUpsert(known, upsert) {
  const added = upsert.type === "tool_call" ? upsert.toolOutput : upsert.content;
  const before = known?.text ?? "";
  const text = added === undefined ? before : before.slice(0, upsert.contentFrom ?? 0) + added;
  const html = upsert.blocks ? applyBlocks(known?.html ?? [], upsert.blocks) : (known?.html ?? []);
  const sections = upsert.sections ?? known?.sections;
  return { ...upsert, text, html, ...(sections ? { sections } : {}) };
}
