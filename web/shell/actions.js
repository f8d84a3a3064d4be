// actions.js: the actions a user can take. Each shows its failure where it belongs.
import { drafts } from "../shared/storage.js";
import { RequestError } from "./socket.js";

/** @typedef {import("../shared/protocol.js").ClientMessage} ClientMessage */
/** @typedef {import("../shared/messages.js").ServerFrame} ServerFrame */
/** @typedef {import("./store.js").Store} Store */
/** @typedef {import("./workspace.js").Workspace} Workspace */
/** @typedef {import("./toasts.js").Toast} Toast */
/** @typedef {ReturnType<typeof createActions>} Actions */

let starts = 0;
/** How many session lists are requested at a time. */
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
  function reportError(reason) {
    const error = asError(reason);
    toast(error.message, { kind: "error", ...(error.detail ? { detail: error.detail } : {}) });
  }

  /**
   * For requests that the user did not make. A lost server is reported elsewhere, and a project that was just removed
   * needs no error.
   * @param {unknown} reason
   */
  function reportUnrequested(reason) {
    if (!["OFFLINE", "PROJECT_NOT_FOUND"].includes(asError(reason).code)) reportError(reason);
  }

  /** @param {string} projectId */
  async function listSessions(projectId) {
    await request({ type: "session:list", projectId }).catch(reportUnrequested);
  }

  /**
   * Undoes a removal: restores the project and the tabs that it closed.
   * @param {import("../shared/protocol.js").Project} project
   * @param {import("./tabs-model.js").Tabs} before
   * @param {Set<string>} owned
   */
  async function undoRemove({ id, path }, before, owned) {
    try {
      // A server that was restarted since has forgotten the removal, but can still add the directory.
      await request({ type: "project:restore", projectId: id }).catch(() => request({ type: "project:add", path }));
      focusProject(id);
      await request({ type: "session:list", projectId: id });
      workspace.restore(before, (sessionId) => owned.has(sessionId) && store.state.sessions.has(sessionId));
    } catch (reason) {
      reportError(reason);
    }
  }

  const actions = {
    reportError,
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
    /** What the forms for a new project need. @returns {import("./add-project.js").Adding} */
    adding: () => ({
      complete: actions.complete,
      recent: actions.recent,
      home: () => store.state.home,
      add: actions.addProject,
      added,
    }),
    /** Removing deletes nothing, so it happens at once and can be undone. @param {string} projectId */
    async removeProject(projectId) {
      const project = store.project(projectId);
      if (!project) return;
      const before = workspace.snapshot();
      const owned = new Set(store.sessionsOf(projectId).map(({ id }) => id));
      try {
        await request({ type: "project:remove", projectId });
        const undo = { label: "Undo", run: () => void undoRemove(project, before, owned) };
        toast(`Removed ${project.name} from the sidebar`, { action: undo });
      } catch (reason) {
        reportError(reason);
      }
    },
    /** @param {string} projectId @param {string} cliType @param {string} [draft] Text already typed for it. */
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
        // Until the session is ready, typed text goes into the input of the starting page.
        await prepared();
        const wasInFront = workspace.currentStart()?.key === key;
        // Kept, not sent: the user has not seen the session yet.
        drafts.write(answer.sessionId, workspace.draft(key));
        if (!workspace.end(key)) {
          // The user cancelled the start meanwhile.
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
        toast("Session archived", { action: { label: "Undo", run: () => void undo().catch(reportError) } });
      } catch (reason) {
        reportError(reason);
      }
    },
    /** Stops a session's turn, if one is running. @param {string | null} sessionId */
    stop(sessionId) {
      const attention = store.state.sessions.get(sessionId ?? "")?.attention;
      if (sessionId !== null && (attention === "working" || attention === "needs_permission")) {
        request({ type: "session:cancel", sessionId }).catch(reportError);
      }
    },
    /** Directories to suggest as projects. @returns {Promise<import("../shared/protocol.js").RecentDirectory[]>} */
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
        reportError(reason);
        return false;
      }
    },
    /** @param {string} sessionId @param {import("../shared/protocol.js").OpenTarget} target */
    openSessionIn: (sessionId, target) =>
      void request({ type: "session:open-in", sessionId, target }).catch(reportError),
    /** @param {string} projectId @param {import("../shared/protocol.js").OpenTarget} target */
    openProjectIn: (projectId, target) =>
      void request({ type: "project:open-in", projectId, target }).catch(reportError),
    /** @param {string} sessionId @param {string} title */
    rename: (sessionId, title) => void request({ type: "session:rename", sessionId, title }).catch(reportError),
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
      for (const ask of asks) request(ask).catch(reportError);
    },
    refreshAgents: () => void request({ type: "agent:list" }).catch(reportUnrequested),
    /** Requests everything this window shows again. */
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
