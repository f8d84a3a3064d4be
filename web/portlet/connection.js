// connection.js: the state of the agent process behind a session. Pure.

/** @typedef {import("../shared/bus.js").Context} Context */
/**
 * `unknown`: our own server is not reachable.
 * @typedef {"connected" | "starting" | "reconnecting" | "disconnected" | "idle" | "unknown"} Connection
 */
/** The header also shows `login`: the agent runs but is not logged in. @typedef {Connection | "login"} Shown */

/** @type {Record<Shown, string>} */
export const CONNECTION_LABELS = {
  login: "Not logged in",
  connected: "Connected",
  starting: "Starting",
  reconnecting: "Reconnecting",
  disconnected: "Disconnected",
  idle: "Not running",
  unknown: "Unknown",
};

/** @param {{ context: Context | null, online: boolean }} state @returns {Connection} */
export function connectionOf({ context, online }) {
  if (!context || !online) return "unknown";
  const { session, status, agent } = context;
  const { attention, continuity } = session;
  if (attention === "starting" || attention === "reconnecting" || attention === "disconnected") return attention;
  if (status && status.status !== "idle") return status.status;
  if (
    attention === "working"
    || attention === "needs_permission"
    || continuity === "live"
    || continuity === "resumed"
  ) return "connected";
  // A session without a process is resumed by its next message.
  return agent?.status === "connected" && status === null && continuity !== "dormant" ? "connected" : "idle";
}

/** @param {{ context: Context | null, online: boolean }} state @returns {Shown} */
export function shownConnection(state) {
  const connection = connectionOf(state);
  return state.context?.agent?.loggedIn === false && (connection === "connected" || connection === "idle")
    ? "login"
    : connection;
}

/** @param {Context} context */
export const agentName = ({ agent, session }) => agent?.name ?? session.cliType;
