// actions.js: what the user can have done, each with its failure shown where it belongs.
import { drafts } from "../shared/storage.js";
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
 * @param {{
 *   store: Store,
 *   workspace: Workspace,
 *   toast: Toast,
 *   request: (message: ClientMessage) => Promise<ServerFrame>,
 *   open: (sessionId: string) => void,
 *   focusProject: (projectId: string) => void,
 *   added: (projectId: string) => void,
 *   prepared: () => Promise<void>,
 * }} deps
 */
export function createActions({ store, workspace, toast, request, open, focusProject, added, prepared }) {
  /** @param {unknown} reason */
  function complain(reason) {
    const error = asError(reason);
    toast(error.message, { kind: "error", ...(error.detail ? { detail: error.detail } : {}) });
  }

  /**
   * What nobody asked for by hand: that the server is away is said elsewhere, and that a project has just gone is no
   * news.
   * @param {unknown} reason
   */
  function complainInPassing(reason) {
    if (!["OFFLINE", "PROJECT_NOT_FOUND"].includes(asError(reason).code)) complain(reason);
  }

  /** @param {string} projectId */
  async function listSessions(projectId) {
    await request({ type: "session:list", projectId }).catch(complainInPassing);
  }

  /**
   * Takes a removal back: the project, and the tabs that it closed.
   * @param {import("../shared/protocol.js").Project} project
   * @param {import("./tabs-model.js").Tabs} before
   * @param {Set<string>} owned
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
    /** @type {import("./add-project.js").AddProject} */
    async addProject(path) {
      try {
        const answer = await request({ type: "project:add", path });
        return answer.type === "project:added"
          ? { projectId: answer.project.id }
          : { error: "Unexpected server error." };
      } catch (reason) {
        return { error: asError(reason).message };
      }
    },
    /** All that the forms for a new project need. @returns {import("./add-project.js").Adding} */
    adding: () => ({
      complete: actions.complete,
      recent: actions.recent,
      home: () => store.state.home,
      add: actions.addProject,
      added,
    }),
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
    /** @param {string} projectId @param {string} cliType @param {string} [draft] What was typed for it already. */
    async createSession(projectId, cliType, draft = "") {
      const key = `start-${(starts += 1)}`;
      const connected = store.agent(cliType)?.status === "connected";
      workspace.begin(
        { key, projectId, cliType, startedAt: Date.now(), connectedAt: connected ? Date.now() : null },
        draft,
      );
      try {
        const answer = await request({ type: "session:create", projectId, cliType });
        if (answer.type !== "session:created") return;
        // What is typed goes on into the field of the start until the session can take it.
        await prepared();
        const wasInFront = workspace.currentStart()?.key === key;
        // Kept, not sent: who typed ahead has not seen what it would be sent to.
        drafts.write(answer.sessionId, workspace.draft(key));
        if (!workspace.end(key)) {
          // Given up meanwhile: nobody asked for this session any more.
          await request({ type: "session:archive", sessionId: answer.sessionId }).catch(() => {});
        } else if (wasInFront) open(answer.sessionId);
        else toast(
          `${store.agent(cliType)?.name ?? cliType} is ready`,
          { action: { label: "Open", run: () => open(answer.sessionId) } },
        );
      } catch (reason) {
        const typed = workspace.draft(key);
        if (workspace.end(key)) workspace.fail({ projectId, cliType, error: asError(reason), draft: typed });
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
      if (sessionId !== null && (attention === "working" || attention === "needs_permission")) {
        request({ type: "session:cancel", sessionId }).catch(complain);
      }
    },
    /** Directories that may become projects. @returns {Promise<import("../shared/protocol.js").RecentDirectory[]>} */
    async recent() {
      const answer = await request({ type: "path:recent" });
      return answer.type === "path:recents" ? answer.directories : [];
    },
    /**
     * @param {string} projectId
     * @param {import("../shared/protocol.js").ProjectDefaults | undefined} defaults
     * @returns {Promise<boolean>}
     */
    async setDefaults(projectId, defaults) {
      try {
        await request({ type: "project:set-defaults", projectId, ...(defaults ? { defaults } : {}) });
        return true;
      } catch (reason) {
        complain(reason);
        return false;
      }
    },
    /** @param {string} sessionId @param {import("../shared/protocol.js").OpenTarget} target */
    openSessionIn: (sessionId, target) => void request({ type: "session:open-in", sessionId, target }).catch(complain),
    /** @param {string} projectId @param {import("../shared/protocol.js").OpenTarget} target */
    openProjectIn: (projectId, target) => void request({ type: "project:open-in", projectId, target }).catch(complain),
    /** @param {string} sessionId @param {string} title */
    rename: (sessionId, title) => void request({ type: "session:rename", sessionId, title }).catch(complain),
    /** @param {string} sessionId */
    seen: (sessionId) => void request({ type: "session:seen", sessionId }).catch(() => {}),
    /** @param {string} cliType */
    reconnect(cliType) {
      const own = [...store.state.sessionStatuses.values()].filter((status) =>
        status.cliType === cliType && status.status === "disconnected");
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
