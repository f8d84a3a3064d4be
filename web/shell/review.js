// review.js: which session the "next that needs you" key opens. Each is visited once per round, in order, however fast
// the key is pressed: a session that was only passed stays unread but is not visited again.
import { sinceOf } from "./needs-you.js";

/** @typedef {import("./needs-you.js").Need} Need */
/** @typedef {import("../shared/protocol.js").SessionSummary} SessionSummary */

export function createReview() {
  /**
   * What was visited in this round, and since when it had been waiting: a later request counts as new.
   * @type {Map<string, string>}
   */
  const visited = new Map();
  /** The session this key opened last. @type {string | null} */
  let last = null;

  /**
   * @param {Need[]} needs Those that need the user, then those that are only unread.
   * @param {SessionSummary | undefined} current The session in view.
   * @returns {string | null} The session to open.
   */
  return function next(needs, current) {
    // If the user opened another session in a different way, a new round starts.
    if (current?.id !== last) visited.clear();
    // A session that is not listed now stays in the round: lists are drawn once per frame, and keys can come faster.
    if (current) visited.set(current.id, sinceOf(current));
    const others = needs.filter((need) => sessionOf(need) !== current?.id);
    const isUnread = (/** @type {Need} */ need) => need.kind === "session" && need.session.attention === "finished";
    let found = others.find((need) => visited.get(need.key) !== need.since);
    if (!found) {
      // Sessions that still need an answer are visited again; unread ones have been seen in this round.
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

/** A disconnected agent is represented by one of its sessions. @param {Need} need */
const sessionOf = (need) => (need.kind === "session" ? need.session.id : (need.sessions[0]?.id ?? null));
