// review.js: which session the key for "next that needs you" goes to. Each is visited once, in order, however fast the
// key is pressed: one that was only passed by is still unread, but it is not the next one again.
import { sinceOf } from "./needs-you.js";

/** @typedef {import("./needs-you.js").Need} Need */
/** @typedef {import("../shared/protocol.js").SessionSummary} SessionSummary */

export function createReview() {
  /**
   * What was visited in this round, and since when it waited then: what asks again is new.
   * @type {Map<string, string>}
   */
  const visited = new Map();

  /**
   * @param {Need[]} needs Those that wait for the user, then those that are only unread.
   * @param {SessionSummary | undefined} current The session in view.
   * @returns {string | null} The session to open.
   */
  return function next(needs, current) {
    const there = new Set(needs.map(({ key }) => key));
    for (const key of visited.keys()) if (!there.has(key)) visited.delete(key);
    if (current) visited.set(current.id, sinceOf(current));
    const others = needs.filter((need) => sessionOf(need) !== current?.id);
    const isUnread = (/** @type {Need} */ need) => need.kind === "session" && need.session.attention === "finished";
    let found = others.find((need) => visited.get(need.key) !== need.since);
    if (!found) {
      visited.clear();
      // What still waits for an answer is gone through again; what is only unread was seen.
      found = others.find((need) => !isUnread(need));
    }
    if (!found) return null;
    visited.set(found.key, found.since);
    return sessionOf(found);
  };
}

/** An agent that was lost is shown by one of its sessions. @param {Need} need */
const sessionOf = (need) => (need.kind === "session" ? need.session.id : (need.sessions[0]?.id ?? null));
