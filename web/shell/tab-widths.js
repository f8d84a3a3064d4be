// tab-widths.js: how wide each tab is. Pure. A tab is as wide as its title needs, up to a maximum. If they do not all
// fit, the widest shrink first.

/** As in UI.md. No tab is narrower than the minimum; the bar scrolls instead. */
export const TAB_MIN_PX = 112;
export const TAB_MAX_PX = 256;
/** Between two tabs; as in tabs.css. */
export const TAB_GAP_PX = 2;

/**
 * @param {number[]} needed What each tab needs for its whole title.
 * @param {number} room The width for all tabs and the gaps between them.
 * @returns {{ widths: number[], fits: boolean }} `fits`: all tabs can be seen at once.
 */
export function tabWidths(needed, room) {
  const wanted = needed.map((width) => Math.min(TAB_MAX_PX, Math.max(TAB_MIN_PX, Math.ceil(width))));
  const free = room - TAB_GAP_PX * Math.max(0, wanted.length - 1);
  const sum = wanted.reduce((total, width) => total + width, 0);
  if (sum <= free) return { widths: wanted, fits: true };
  const cap = Math.max(TAB_MIN_PX, capFor(wanted, free));
  return { widths: wanted.map((width) => Math.min(width, cap)), fits: TAB_MIN_PX * wanted.length <= free };
}

/** The largest maximum width with which all tabs fit. @param {number[]} wanted @param {number} free */
function capFor(wanted, free) {
  const sorted = [...wanted].sort((a, b) => a - b);
  let left = free;
  for (const [at, width] of sorted.entries()) {
    const share = left / (sorted.length - at);
    if (width > share) return Math.floor(share);
    left -= width;
  }
  return TAB_MAX_PX;
}
