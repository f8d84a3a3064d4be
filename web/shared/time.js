// time.js: times as people read them. Pure: the present is an argument.

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const WEEK = 7 * DAY;

/**
 * "now", "4m", "2h", "2d", "1w", "1y".
 * @param {string} timestamp
 * @param {number} now
 */
export function relativeTime(timestamp, now) {
  const age = now - Date.parse(timestamp);
  if (!(age >= MINUTE)) return "now";
  if (age < HOUR) return `${Math.floor(age / MINUTE)}m`;
  if (age < DAY) return `${Math.floor(age / HOUR)}h`;
  if (age < WEEK) return `${Math.floor(age / DAY)}d`;
  if (age < 52 * WEEK) return `${Math.floor(age / WEEK)}w`;
  return `${Math.floor(age / (365 * DAY)) || 1}y`;
}

/**
 * How long something took: "0.2s", "12s", "1m 12s", "1h 02m".
 * @param {number} ms
 */
export function duration(ms) {
  if (!(ms >= 0)) return "0s";
  if (ms < 10_000) return `${(Math.floor(ms / 100) / 10).toFixed(1)}s`;
  return elapsed(ms);
}

/**
 * How long something has been going on, in whole seconds: "3s", "1m 12s", "1h 02m".
 * @param {number} ms
 */
export function elapsed(ms) {
  const seconds = Math.max(0, Math.floor(ms / 1000));
  if (seconds < 60) return `${seconds}s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes}m ${String(seconds % 60).padStart(2, "0")}s`;
  return `${Math.floor(minutes / 60)}h ${String(minutes % 60).padStart(2, "0")}m`;
}

/**
 * The time of day, in the reader's zone: "14:02".
 * @param {string} timestamp
 */
export function clock(timestamp) {
  const date = new Date(timestamp);
  if (Number.isNaN(date.getTime())) return "";
  return `${String(date.getHours()).padStart(2, "0")}:${String(date.getMinutes()).padStart(2, "0")}`;
}

/**
 * Counts of tokens: "640", "62k", "1.2M".
 * @param {number} count
 */
export function compact(count) {
  if (count < 1000) return String(count);
  if (count < 999_500) return `${Math.round(count / 1000)}k`;
  return `${(count / 1_000_000).toFixed(1).replace(/\.0$/, "")}M`;
}
