// review.js: which session the key for "next that needs you" goes to. Each is visited once, in order, however fast the key is
// pressed: one that was only passed by is still unread, but it is not the next one again.
import { sinceOf } from "./needs-you.js";

/** @typedef {import("./needs-you.js").Need} Need */
/** @typedef {import("../shared/protocol.js").SessionSummary} SessionSummary */

export function createReview() {
  /** What was visited in this round, and since when it waited then: what asks again is new. @type {Map<string, string>} */
  const visited = new Map();
  /** Where this key led last. @type {string | null} */
  let last = null;

  /**
   * @param {Need[]} needs Those that wait for the user, then those that are only unread.
   * @param {SessionSummary | undefined} current The session in view.
   * @returns {string | null} The session to open.
   */
  return function next(needs, current) {
    // Who went elsewhere by other means begins a new round.
    if (current?.id !== last) visited.clear();
    // One that is not listed now stays in the round: lists are drawn once per frame, and keys may come faster.
    if (current) visited.set(current.id, sinceOf(current));
    const others = needs.filter((need) => sessionOf(need) !== current?.id);
    const isUnread = (/** @type {Need} */ need) => need.kind === "session" && need.session.attention === "finished";
    let found = others.find((need) => visited.get(need.key) !== need.since);
    if (!found) {
      // What still waits for an answer is gone through again; what is only unread was seen in this round.
      const waiting = others.filter((need) => !isUnread(need));
      for (const { key } of waiting) visited.delete(key);
      found = waiting[0];
    }
    if (!found) {
      visited.clear();
      return null;
    }
    visited.set(found.key, found.since);
    last = sessionOf(found);
    return last;
  };
}

/** An agent that was lost is shown by one of its sessions. @param {Need} need */
const sessionOf = (need) => (need.kind === "session" ? need.session.id : (need.sessions[0]?.id ?? null));
