// actions.js: what the user can have done, each with its failure shown where it belongs.
import { RequestError } from "./socket.js";

/** @typedef {import("../shared/protocol.js").ClientMessage} ClientMessage */
/** @typedef {import("../shared/messages.js").ServerFrame} ServerFrame */
/** @typedef {import("./store.js").Store} Store */
/** @typedef {import("./workspace.js").Workspace} Workspace */
/** @typedef {import("./toasts.js").Toast} Toast */
/** @typedef {ReturnType<typeof createActions>} Actions */

let starts = 0;
/** Lists of sessions that may be on their way. */
const LISTS_AT_ONCE = 16;

/**
 * @param {{ store: Store, workspace: Workspace, toast: Toast, request: (message: ClientMessage) => Promise<ServerFrame>, open: (sessionId: string) => void, focusProject: (projectId: string) => void }} deps
 */
export function createActions({ store, workspace, toast, request, open, focusProject }) {
  /** @param {unknown} reason */
  function complain(reason) {
    const error = asError(reason);
    toast(error.message, { kind: "error", ...(error.detail ? { detail: error.detail } : {}) });
  }

  /** What nobody asked for by hand: that the server is away is said elsewhere, and that a project has just gone is no news. @param {unknown} reason */
  function complainInPassing(reason) {
    if (!["OFFLINE", "PROJECT_NOT_FOUND"].includes(asError(reason).code)) complain(reason);
  }

  /** @param {string} projectId */
  async function listSessions(projectId) {
    await request({ type: "session:list", projectId }).catch(complainInPassing);
  }

  /**
   * Takes a removal back: the project, and the tabs that it closed.
   * @param {import("../shared/protocol.js").Project} project @param {import("./tabs-model.js").Tabs} before @param {Set<string>} owned
   */
  async function putBack({ id, path }, before, owned) {
    try {
      // A server that was restarted in between has forgotten the removal, but not how to add a directory.
      await request({ type: "project:restore", projectId: id }).catch(() => request({ type: "project:add", path }));
      focusProject(id);
      await request({ type: "session:list", projectId: id });
      workspace.restore(before, (sessionId) => owned.has(sessionId) && store.state.sessions.has(sessionId));
    } catch (reason) {
      complain(reason);
    }
  }

  const actions = {
    complain,
    listSessions,
    /** @param {string} prefix */
    async complete(prefix) {
      const answer = await request({ type: "path:complete", prefix });
      return answer.type === "path:completions" ? answer.paths : [];
    },
    /** @param {string} path @returns {Promise<string | null>} Why not, or `null`. */
    async addProject(path) {
      try {
        await request({ type: "project:add", path });
        return null;
      } catch (reason) {
        return asError(reason).message;
      }
    },
    /** Removing deletes nothing, so it is done at once and can be taken back. @param {string} projectId */
    async removeProject(projectId) {
      const project = store.project(projectId);
      if (!project) return;
      const before = workspace.snapshot();
      const owned = new Set(store.sessionsOf(projectId).map(({ id }) => id));
      try {
        await request({ type: "project:remove", projectId });
        const undo = { label: "Undo", run: () => void putBack(project, before, owned) };
        toast(`Removed ${project.name} from the sidebar`, { action: undo });
      } catch (reason) {
        complain(reason);
      }
    },
    /** @param {string} projectId @param {string} cliType */
    async createSession(projectId, cliType) {
      const key = `start-${(starts += 1)}`;
      const connected = store.agent(cliType)?.status === "connected";
      workspace.begin({ key, projectId, cliType, startedAt: Date.now(), connectedAt: connected ? Date.now() : null });
      try {
        const answer = await request({ type: "session:create", projectId, cliType });
        if (answer.type !== "session:created") return;
        const wasInFront = workspace.currentStart()?.key === key;
        if (!workspace.end(key)) {
          // Given up meanwhile: nobody asked for this session any more.
          await request({ type: "session:archive", sessionId: answer.sessionId }).catch(() => {});
        } else if (wasInFront) open(answer.sessionId);
        else toast(`${store.agent(cliType)?.name ?? cliType} is ready`, { action: { label: "Open", run: () => open(answer.sessionId) } });
      } catch (reason) {
        if (workspace.end(key)) workspace.fail({ projectId, cliType, error: asError(reason) });
      }
    },
    /** @param {string} sessionId */
    async archive(sessionId) {
      const before = workspace.snapshot();
      const undo = async () => {
        await request({ type: "session:restore", sessionId });
        workspace.restore(before, (id) => id === sessionId);
      };
      try {
        await request({ type: "session:archive", sessionId });
        toast("Session archived", { action: { label: "Undo", run: () => void undo().catch(complain) } });
      } catch (reason) {
        complain(reason);
      }
    },
    /** Stops what a session is doing, if it does anything. @param {string | null} sessionId */
    stop(sessionId) {
      const attention = store.state.sessions.get(sessionId ?? "")?.attention;
      if (sessionId !== null && (attention === "working" || attention === "needs_permission")) request({ type: "session:cancel", sessionId }).catch(complain);
    },
    /** @param {string} sessionId @param {string} title */
    rename: (sessionId, title) => void request({ type: "session:rename", sessionId, title }).catch(complain),
    /** @param {string} sessionId */
    seen: (sessionId) => void request({ type: "session:seen", sessionId }).catch(() => {}),
    /** @param {string} cliType */
    reconnect(cliType) {
      const own = [...store.state.sessionStatuses.values()].filter((status) => status.cliType === cliType && status.status === "disconnected");
      /** @type {ClientMessage[]} */
      const asks = own.length
        ? own.map(({ sessionId }) => ({ type: "session:reconnect", cliType, ...(sessionId ? { sessionId } : {}) }))
        : [{ type: "session:reconnect", cliType }];
      for (const ask of asks) request(ask).catch(complain);
    },
    refreshAgents: () => void request({ type: "agent:list" }).catch(complainInPassing),
    /** Everything this window shows, asked anew. */
    async resync() {
      await Promise.all([request({ type: "project:list" }), request({ type: "agent:list" })]);
      const waiting = store.state.projects.map(({ id }) => id);
      const take = async () => {
        for (let id = waiting.shift(); id !== undefined; id = waiting.shift()) await listSessions(id);
      };
      await Promise.all(Array.from({ length: LISTS_AT_ONCE }, take));
    },
  };
  return actions;
}

/**
 * @param {unknown} reason
 * @returns {{ code: string, message: string, detail?: string, installHint?: string }}
 */
export function asError(reason) {
  if (reason instanceof RequestError) return reason.error;
  return { code: "INTERNAL_ERROR", message: reason instanceof Error ? reason.message : String(reason) };
}
