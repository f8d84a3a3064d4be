// needs-you.js: what needs the user, most urgent first, and what is finished and unread. Pure.
import { needsYou, urgency } from "../shared/attention.js";

/** @typedef {import("../shared/protocol.js").SessionSummary} SessionSummary */
/** @typedef {import("../shared/protocol.js").AgentInfo} AgentInfo */
/**
 * @typedef {{ kind: "agent", key: string, agent: AgentInfo, sessions: SessionSummary[], since: string }
 *   | { kind: "session", key: string, session: SessionSummary, since: string }} Need
 */

/** @param {SessionSummary} session */
export const sinceOf = (session) => session.since ?? session.lastActiveAt;

/**
 * What needs the user: disconnected agents that have sessions, then requests, then errors; oldest first within a kind.
 * @param {Iterable<SessionSummary>} sessions
 * @param {AgentInfo[]} agents
 * @param {string | null} [watched] The session in view: the user sees its turn end, and a row that appears and
 *   disappears again would only make the sidebar jump.
 * @returns {Need[]}
 */
export function listNeeds(sessions, agents, watched = null) {
  /** @type {Need[]} */
  const waiting = [];
  /** @type {Map<string, SessionSummary[]>} */
  const lost = new Map();
  for (const session of sessions) {
    const isSeen = session.id === watched && session.attention !== "needs_permission";
    // Its agent runs and serves other sessions: only this session needs a restart.
    const hangs = session.attention === "disconnected" && session.hangs;
    if ((needsYou(session.attention) || hangs) && !isSeen) waiting.push(needOf(session));
    if (session.attention === "disconnected" && !hangs) {
      lost.set(session.cliType, [...(lost.get(session.cliType) ?? []), session]);
    }
  }
  waiting.sort((a, b) => rank(a) - rank(b) || oldestFirst(a, b));
  /** @type {Need[]} */
  const gone = [];
  for (const agent of agents) {
    const theirs = lost.get(agent.cliType);
    if (!theirs) continue;
    const since = theirs.map(sinceOf).sort()[0] ?? "";
    gone.push({ kind: "agent", key: `agent ${agent.cliType}`, agent, sessions: theirs, since });
  }
  return [...gone, ...waiting];
}

/**
 * Sessions that are finished and unread, oldest first.
 * @param {Iterable<SessionSummary>} sessions
 * @param {string | null} [watched] As above.
 * @returns {Need[]}
 */
export function listFinished(sessions, watched = null) {
  const finished = [];
  for (const session of sessions) {
    if (session.attention === "finished" && session.id !== watched) finished.push(needOf(session));
  }
  return finished.sort(oldestFirst);
}

/** @param {SessionSummary} session @returns {Need} */
const needOf = (session) => ({ kind: "session", key: session.id, session, since: sinceOf(session) });

/** @param {Need} need */
const rank = (need) => (need.kind === "session" ? urgency(need.session.attention) : -1);

/** @param {Need} a @param {Need} b */
const oldestFirst = (a, b) => a.since.localeCompare(b.since);

/**
 * Why a session is listed, in short.
 * @param {SessionSummary} session
 */
export function reasonOf({ attention, reason }) {
  if (reason) return reason;
  return {
    needs_permission: "Waiting for your decision",
    error: "Turn failed",
    finished: "Finished",
  }[/** @type {string} */ (attention)] ?? "";
}

/** @param {import("./store.js").Store} store */
export function countWorking({ state }) {
  let working = 0;
  for (const { attention } of state.busy.values()) if (attention === "working") working += 1;
  return working;
}
