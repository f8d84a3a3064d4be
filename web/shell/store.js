// store.js: this window's copy of the server's state. Messages update it; subscribers are notified of changes.
import { oncePerFrame } from "../shared/once-per-frame.js";

/** @typedef {import("../shared/protocol.js").Project} Project */
/** @typedef {import("../shared/protocol.js").SessionSummary} SessionSummary */
/** @typedef {import("../shared/protocol.js").AgentInfo} AgentInfo */
/** @typedef {import("../shared/messages.js").ServerFrame} ServerFrame */
/** @typedef {import("../shared/bus.js").AgentStatusMessage} AgentStatusMessage */
/**
 * What changed since the last call. `projects`: the list itself; `sessions`: the projects whose sessions changed;
 * `turned`: known sessions whose state changed.
 * @typedef {{ projects: boolean, sessions: Set<string>, turned: Set<string>, agents: boolean }} Changes
 */
/** @typedef {ReturnType<typeof createStore>} Store */

/** States that need a running process; how a turn ended stays true without one. @type {Set<string>} */
const ALIVE = new Set(["needs_permission", "working", "starting", "reconnecting"]);

export function createStore() {
  const state = {
    home: "",
    version: "",
    /** The server's machine can show an editor or a terminal. */
    hasDisplay: false,
    /** The server is connected. While it is not, we do not know what is running. */
    online: false,
    /** The list of projects has arrived at least once. */
    ready: false,
    /** @type {Project[]} */
    projects: [],
    /** @type {Map<string, SessionSummary>} */
    sessions: new Map(),
    /** The sessions that are not idle: always few. @type {Map<string, SessionSummary>} */
    busy: new Map(),
    /** Projects whose sessions have arrived. @type {Set<string>} */
    listed: new Set(),
    /** @type {AgentInfo[]} */
    agents: [],
    /** The newest status of each session's own process. @type {Map<string, AgentStatusMessage>} */
    sessionStatuses: new Map(),
    /** The newest status of each agent's shared process. @type {Map<string, AgentStatusMessage>} */
    agentStatuses: new Map(),
  };
  /** @type {Set<(changes: Changes) => void>} */
  const listeners = new Set();
  /** @type {Map<string, Set<string>>} */
  const idsByProject = new Map();
  /** @type {Map<string, SessionSummary[]>} */
  const sorted = new Map();
  let changes = fresh();

  const announce = oncePerFrame(() => {
    const current = changes;
    changes = fresh();
    for (const listener of listeners) listener(current);
  });

  /** @returns {Changes} */
  function fresh() {
    return { projects: false, sessions: new Set(), turned: new Set(), agents: false };
  }

  /** @param {string} projectId */
  function touch(projectId) {
    sorted.delete(projectId);
    changes.sessions.add(projectId);
  }

  /**
   * @param {string} id
   * @param {Partial<SessionSummary>} part
   */
  function patch(id, part) {
    const session = state.sessions.get(id);
    if (!session) return;
    put({ ...session, ...part });
  }

  /** @param {SessionSummary} session */
  function put(session) {
    const ids = idsByProject.get(session.projectId) ?? new Set();
    idsByProject.set(session.projectId, ids.add(session.id));
    const before = state.sessions.get(session.id)?.attention;
    if (before !== undefined && before !== session.attention) changes.turned.add(session.id);
    state.sessions.set(session.id, session);
    if (session.attention === "idle") state.busy.delete(session.id);
    else state.busy.set(session.id, session);
    touch(session.projectId);
  }

  /** @param {string} id */
  function drop(id) {
    const session = state.sessions.get(id);
    if (!session) return;
    state.sessions.delete(id);
    state.busy.delete(id);
    state.sessionStatuses.delete(id);
    idsByProject.get(session.projectId)?.delete(id);
    touch(session.projectId);
  }

  /** Drops the sessions of a removed project. @param {string} projectId */
  function forget(projectId) {
    for (const session of sessionsOf(projectId)) drop(session.id);
    state.listed.delete(projectId);
  }

  /** @param {ServerFrame} frame */
  function apply(frame) {
    switch (frame.type) {
      case "server:hello":
        state.online = true;
        changes.agents = true;
        state.home = frame.home;
        state.version = frame.version;
        state.hasDisplay = frame.hasDisplay;
        state.sessionStatuses.clear();
        state.agentStatuses.clear();
        break;
      case "project:list":
        state.ready = true;
        for (const { id } of state.projects) if (!frame.projects.some((project) => project.id === id)) forget(id);
        state.projects = frame.projects;
        changes.projects = true;
        break;
      case "project:added":
        state.projects = inOrder(state.projects.filter(({ id }) => id !== frame.project.id), frame.project);
        changes.projects = true;
        break;
      case "project:updated":
        state.projects = state.projects.map((project) => (project.id === frame.project.id ? frame.project : project));
        changes.projects = true;
        break;
      case "project:removed":
        state.projects = state.projects.filter(({ id }) => id !== frame.projectId);
        forget(frame.projectId);
        changes.projects = true;
        break;
      case "session:list": {
        const now = new Set(frame.sessions.map(({ id }) => id));
        for (const session of sessionsOf(frame.projectId)) if (!now.has(session.id)) drop(session.id);
        for (const session of frame.sessions) put(session);
        state.listed.add(frame.projectId);
        touch(frame.projectId);
        break;
      }
      case "session:created":
      case "session:restored":
        put(frame.session);
        break;
      case "session:history":
        if (state.sessions.has(frame.sessionId)) patch(frame.sessionId, frame.session);
        break;
      case "session:archived":
        drop(frame.sessionId);
        break;
      case "session:title-updated":
        patch(frame.sessionId, { title: frame.title });
        break;
      case "session:state": {
        const { attention, continuity, hangs, lastActiveAt, reason, since } = frame;
        patch(frame.sessionId, { attention, continuity, hangs, lastActiveAt, reason, since });
        break;
      }
      case "agent:list":
        state.agents = frame.agents;
        changes.agents = true;
        break;
      case "agent:status":
        if (frame.sessionId === undefined) state.agentStatuses.set(frame.cliType, frame);
        else state.sessionStatuses.set(frame.sessionId, frame);
        if (frame.sessionId === undefined) {
          state.agents = state.agents.map((agent) =>
            (agent.cliType === frame.cliType ? { ...agent, status: frame.status } : agent));
        }
        changes.agents = true;
        break;
      default:
        return;
    }
    announce();
  }

  /**
   * A project's sessions, most recent first.
   * @param {string} projectId
   */
  function sessionsOf(projectId) {
    const known = sorted.get(projectId);
    if (known) return known;
    /** @type {SessionSummary[]} */
    const list = [];
    for (const id of idsByProject.get(projectId) ?? []) {
      const session = state.sessions.get(id);
      if (session) list.push(session);
    }
    list.sort(newestFirst);
    sorted.set(projectId, list);
    return list;
  }

  return {
    state,
    apply,
    announce,
    /** The connection is lost: drops every state that only a running server can report. */
    lost() {
      if (!state.online) return;
      state.online = false;
      changes.agents = true;
      for (const session of [...state.busy.values()]) {
        if (ALIVE.has(session.attention)) put({ ...session, attention: "idle" });
      }
      announce();
    },
    sessionsOf,
    /** @param {string | undefined} cliType */
    agent: (cliType) => state.agents.find((agent) => agent.cliType === cliType),
    /** @param {string} projectId */
    project: (projectId) => state.projects.find(({ id }) => id === projectId),
    /**
     * The newest status of the process behind a session.
     * @param {SessionSummary} session
     * @returns {AgentStatusMessage | null}
     */
    statusOf: (session) => state.sessionStatuses.get(session.id) ?? state.agentStatuses.get(session.cliType) ?? null,
    /** @param {(changes: Changes) => void} listener */
    subscribe: (listener) => void listeners.add(listener),
  };
}

/**
 * All timestamps have the same format, so they compare as strings.
 * @param {SessionSummary} a
 * @param {SessionSummary} b
 */
export const newestFirst = (a, b) => compare(b.lastActiveAt, a.lastActiveAt) || compare(b.createdAt, a.createdAt);

/** @param {string} a @param {string} b */
const compare = (a, b) => (a < b ? -1 : Number(a > b));

/**
 * Keeps projects in the order they were added, so that a restored project returns to its place.
 * @param {Project[]} projects
 * @param {Project} project
 */
function inOrder(projects, project) {
  const later = projects.findIndex(({ addedAt }) => addedAt > project.addedAt);
  return later < 0 ? [...projects, project] : projects.toSpliced(later, 0, project);
}
