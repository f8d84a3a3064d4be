// needs-you.js: who waits for the user, most pressing first. Pure.
import { needsYou, urgency } from "../shared/attention.js";

/** @typedef {import("../shared/protocol.js").SessionSummary} SessionSummary */
/** @typedef {import("../shared/protocol.js").AgentInfo} AgentInfo */
/**
 * @typedef {{ kind: "agent", key: string, agent: AgentInfo, sessions: SessionSummary[], since: string }
 *   | { kind: "session", key: string, session: SessionSummary, since: string }} Need
 */

/**
 * Agents that were lost with sessions on them, then permission, error, finished; oldest first within a kind.
 * @param {Iterable<SessionSummary>} sessions
 * @param {AgentInfo[]} agents
 * @param {string | null} [watched] The session before the user's eyes: how its turn ended is seen as it happens, and a
 *   row that comes and goes again would only make the sidebar jump.
 * @returns {Need[]}
 */
export function listNeeds(sessions, agents, watched = null) {
  /** @type {Need[]} */
  const waiting = [];
  /** @type {Map<string, SessionSummary[]>} */
  const lost = new Map();
  for (const session of sessions) {
    const since = session.since ?? session.lastActiveAt;
    const isSeen = session.id === watched && session.attention !== "needs_permission";
    if (needsYou(session.attention) && !isSeen) waiting.push({ kind: "session", key: session.id, session, since });
    if (session.attention === "disconnected") lost.set(session.cliType, [...(lost.get(session.cliType) ?? []), session]);
  }
  waiting.sort((a, b) => rank(a) - rank(b) || a.since.localeCompare(b.since));
  /** @type {Need[]} */
  const gone = [];
  for (const agent of agents) {
    const theirs = lost.get(agent.cliType);
    if (!theirs) continue;
    const since = theirs.map((session) => session.since ?? session.lastActiveAt).sort()[0] ?? "";
    gone.push({ kind: "agent", key: `agent ${agent.cliType}`, agent, sessions: theirs, since });
  }
  return [...gone, ...waiting];
}

/** @param {Need} need */
const rank = (need) => (need.kind === "session" ? urgency(need.session.attention) : -1);

/**
 * What a session asks, in a few words.
 * @param {SessionSummary} session
 */
export function reasonOf({ attention, reason }) {
  if (reason) return reason;
  return { needs_permission: "Waits for your decision", error: "Turn failed", finished: "Finished" }[/** @type {string} */ (attention)] ?? "";
}

/** @param {import("./store.js").Store} store */
export function countWorking({ state }) {
  let working = 0;
  for (const { attention } of state.busy.values()) if (attention === "working") working += 1;
  return working;
}
