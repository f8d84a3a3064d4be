// search.js: fuzzy matching for the palette. Pure.

/**
 * Finds the letters of `query` in `text`, in order; runs and word starts score higher.
 * @param {string} query
 * @param {string} text
 * @returns {{ score: number, ranges: [number, number][] } | null}
 */
export function fuzzy(query, text) {
  const needle = query.trim().toLowerCase();
  if (!needle) return { score: 0, ranges: [] };
  const hay = text.toLowerCase();
  const at = wordStart(hay, needle);
  if (at >= 0) return { score: 100 - at / 100, ranges: [[at, at + needle.length]] };
  const inside = hay.indexOf(needle);
  if (inside >= 0) return { score: 60 - inside / 100, ranges: [[inside, inside + needle.length]] };
  return needle.length < 3 ? null : scattered(needle, hay);
}

/**
 * @param {string} hay
 * @param {string} needle
 */
function wordStart(hay, needle) {
  for (let at = hay.indexOf(needle); at >= 0; at = hay.indexOf(needle, at + 1)) {
    if (at === 0 || !/[\p{L}\p{N}]/u.test(hay[at - 1] ?? "")) return at;
  }
  return -1;
}

/**
 * @param {string} needle
 * @param {string} hay
 * @returns {{ score: number, ranges: [number, number][] } | null}
 */
function scattered(needle, hay) {
  /** @type {[number, number][]} */
  const ranges = [];
  let from = 0;
  for (const letter of needle) {
    const at = hay.indexOf(letter, from);
    if (at < 0) return null;
    const last = ranges.at(-1);
    if (last && last[1] === at) last[1] = at + letter.length;
    else ranges.push([at, at + letter.length]);
    from = at + letter.length;
  }
  // A reader would not recognize widely scattered letters as a match.
  return ranges.length > Math.max(2, needle.length / 2) ? null : { score: 30 - ranges.length, ranges };
}
