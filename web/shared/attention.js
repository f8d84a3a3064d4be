// attention.js: what each attention state is called and which of two is more urgent. Pure.

/** @typedef {import("./protocol.js").Attention} Attention */

/** Most urgent first. @type {Attention[]} */
export const URGENCY = [
  "needs_permission",
  "error",
  "finished",
  "working",
  "starting",
  "reconnecting",
  "disconnected",
  "idle",
];

/** @type {Record<Attention, string>} */
export const NAMES = {
  needs_permission: "Needs permission",
  error: "Error",
  finished: "Finished, unread",
  working: "Working",
  starting: "Starting",
  reconnecting: "Reconnecting",
  disconnected: "Disconnected",
  idle: "Idle",
};

/** @param {Attention} attention */
export const urgency = (attention) => URGENCY.indexOf(attention);

/** States that need the user. @param {Attention} attention */
export const needsYou = (attention) => attention === "needs_permission" || attention === "error";

/** States the user has yet to see. @param {Attention} attention */
export const isUnseen = (attention) => needsYou(attention) || attention === "finished";

/**
 * @param {Iterable<Attention>} all
 * @returns {Attention}
 */
export function mostUrgent(all) {
  /** @type {Attention} */
  let first = "idle";
  for (const attention of all) if (urgency(attention) < urgency(first)) first = attention;
  return first;
}
