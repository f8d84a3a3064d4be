// usage-sums.js: sums the usage of sessions by day, project or session. Pure.

/**
 * @typedef {{
 *   day: string, sessionId: string, title: string, projectId: string, projectName?: string, turns: number,
 *   inputTokens: number, outputTokens: number, cacheReadInputTokens: number, cacheCreationInputTokens: number,
 *   costUsd?: number,
 * }} UsageRow
 */
/** @typedef {"day" | "project" | "session"} Grouping */
/** @typedef {{ key: string, name: string, turns: number, tokens: number, costUsd: number | null }} UsageSum */

/**
 * Days newest first; projects and sessions by tokens.
 * @param {UsageRow[]} rows
 * @param {Grouping} grouping
 * @returns {{ sums: UsageSum[], total: UsageSum }}
 */
export function sumUsage(rows, grouping) {
  /** @type {Map<string, UsageSum>} */
  const byKey = new Map();
  const total = emptySum("", "Total");
  for (const row of rows) {
    const [key, name] = keyOf(row, grouping);
    const sum = byKey.get(key) ?? emptySum(key, name);
    byKey.set(key, sum);
    add(sum, row);
    add(total, row);
  }
  const sums = [...byKey.values()];
  if (grouping === "day") sums.sort((one, other) => other.key.localeCompare(one.key));
  else sums.sort((one, other) => other.tokens - one.tokens);
  return { sums, total };
}

/** @param {UsageRow} row @param {Grouping} grouping @returns {[string, string]} */
function keyOf(row, grouping) {
  if (grouping === "day") return [row.day, row.day];
  if (grouping === "project") return [row.projectId, row.projectName ?? "Removed project"];
  return [row.sessionId, row.title];
}

/** @param {string} key @param {string} name @returns {UsageSum} */
function emptySum(key, name) {
  return { key, name, turns: 0, tokens: 0, costUsd: null };
}

/** @param {UsageSum} sum @param {UsageRow} row */
function add(sum, row) {
  sum.turns += row.turns;
  sum.tokens += row.inputTokens + row.outputTokens + row.cacheReadInputTokens + row.cacheCreationInputTokens;
  if (row.costUsd !== undefined) sum.costUsd = (sum.costUsd ?? 0) + row.costUsd;
}
