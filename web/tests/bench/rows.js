// rows.js: one figure with its target and its floor, printed in the same form as the figures of the server.

/** @typedef {{ name: string, value: number, unit: string, most?: number, floor?: number }} Row `most`: the target. */

/** @param {Row} row */
const ratio = ({ value, floor }) => (floor ? value / floor : null);
/** @param {Row} row */
const isMet = ({ value, most }) => (most === undefined ? null : value <= most);
/** @param {Row} row */
const target = ({ most, unit }) => (most === undefined ? "" : `≤ ${figure(most, unit)}`);

/** @param {Row[]} rows */
export function table(rows) {
  return rows.map((row) => {
    const floor = row.floor === undefined ? "" : figure(row.floor, row.unit);
    const met = isMet(row);
    const cells = [
      row.name.padEnd(60),
      figure(row.value, row.unit).padStart(14),
      target(row).padStart(15),
      floor.padStart(14),
      (ratio(row)?.toFixed(2) ?? "").padStart(7),
    ];
    return `${cells.join(" ")}  ${met === null ? "" : met ? "ok" : "MISSED"}`.trimEnd();
  }).join("\n");
}

/** @param {Row[]} rows */
export const json = (rows) =>
  rows.map((row) => ({
    name: row.name,
    value: row.value,
    unit: row.unit,
    target: target(row),
    floor: row.floor ?? null,
    ratio: ratio(row),
    met: isMet(row),
  }));

/** @param {number} value @param {string} unit */
function figure(value, unit) {
  if (value >= 1000) return `${value.toFixed(0)} ${unit}`;
  return `${value !== 0 && value < 1 ? value.toFixed(3) : value.toFixed(2)} ${unit}`;
}

/** The value below which this part of the samples lies. @param {number[]} samples @param {number} part */
export function quantile(samples, part) {
  const sorted = [...samples].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? Number.NaN;
}
