// tree.js: the projects and their sessions, as a tree. Rows are keyed and updated, never rebuilt.
import { isUnseen, mostUrgent } from "../shared/attention.js";
import { closest, h, reconcile } from "../shared/dom.js";
import { parentName } from "../shared/paths.js";
import { load, save, watch } from "../shared/storage.js";
import { addRowActions, projectRow, sessionRow, updateProjectRow, updateSessionRow } from "./tree-rows.js";

/** @typedef {import("./store.js").Store} Store */
/** @typedef {import("../shared/protocol.js").Project} Project */
/** @typedef {import("../shared/protocol.js").SessionSummary} SessionSummary */
/**
 * @typedef {{
 *   group: HTMLElement,
 *   row: HTMLElement,
 *   empty: HTMLElement,
 *   fold: HTMLElement,
 *   sessions: Map<string, HTMLElement>,
 *   unfolded: boolean,
 *   order: string[],
 * }} Branch `order`: the ids of the shown sessions, in order.
 */

/** How many sessions of a project are shown before "Show n more". */
const SHOWN_MAX = 20;
/** After this long, drawing is continued later: within a frame, and in the slices after it. */
const FRAME_MS = 8;
const SLICE_MS = 8;
const ROW_PX = 28;
/** Without hover, every row has its buttons from the start; as in tree.css. */
const noHover = matchMedia("(pointer: coarse), (max-width: 719px)");

/**
 * @param {HTMLElement} root
 * @param {{ store: Store, rowLock: import("./row-lock.js").RowLock, activeSession: () => string | null }} deps
 */
export function mountTree(root, { store, rowLock, activeSession }) {
  /** @type {Map<string, Branch>} */
  const branches = new Map();
  /** The collapsed projects, shared by all windows. @type {Record<string, unknown>} */
  let collapsed = {};
  /** Projects that need to be redrawn. @type {Set<string>} */
  const waiting = new Set();
  /**
   * Projects whose rows are out of order for now, because the user points at them.
   * @type {Set<string>}
   */
  const deferred = new Set();
  /** Another slice is scheduled. */
  let later = false;
  /** A project to focus as soon as it is drawn. @type {string | null} */
  let awaited = null;
  /**
   * A project whose New session button gets focus once its sessions are known; `focused` had focus before.
   * @type {{ projectId: string, focused: Element | null } | null}
   */
  let awaitedNew = null;

  /** If nothing is stored, this window's own state stays. */
  function readCollapsed() {
    const stored = load("collapsed");
    if (stored && typeof stored === "object" && !Array.isArray(stored)) {
      collapsed = { .../** @type {Record<string, unknown>} */ (stored) };
    }
  }
  readCollapsed();
  watch("collapsed", () => {
    const before = collapsed;
    collapsed = {};
    readCollapsed();
    for (const project of store.state.projects) {
      if (Boolean(before[project.id]) !== Boolean(collapsed[project.id])) drawProject(project);
    }
    keepOneTabStop();
  });

  /** @param {Project} project @returns {Branch} */
  function branch(project) {
    const known = branches.get(project.id);
    if (known) return known;
    const row = projectRow(project);
    const empty = h("div", {
      class: "no-sessions",
      role: "treeitem",
      "aria-level": 2,
      tabindex: -1,
      "data-empty": project.id,
    },
      h("span", {}, "No sessions yet"),
      h("button", { class: "link-button", type: "button", "data-do": "new-session", tabindex: -1 }, "New Session"));
    const fold = h("div", {
      class: "row fold-row",
      role: "treeitem",
      "aria-level": 2,
      tabindex: -1,
      "data-fold": project.id,
    });
    const group = h("div", { class: "project", role: "group", "data-project-group": project.id }, row);
    const made = { group, row, empty, fold, sessions: new Map(), unfolded: false, order: [] };
    branches.set(project.id, made);
    return made;
  }

  /** @param {SessionSummary[]} list @param {Branch} own */
  function shown(list, own) {
    if (own.unfolded || list.length <= SHOWN_MAX + 1) return list;
    return list.filter((session, at) =>
      at < SHOWN_MAX || isUnseen(session.attention) || session.id === activeSession());
  }

  /**
   * Rows stay in place while the user points at them; meanwhile new ones go below them.
   * @param {SessionSummary[]} wanted
   * @param {Branch} own
   * @param {string} projectId
   */
  function inPlace(wanted, own, projectId) {
    deferred.delete(projectId);
    if (own.order.length === 0 || !rowLock.keepsOrder()) return wanted;
    const before = own.order.flatMap((id) => store.state.sessions.get(id) ?? []);
    const known = new Set(own.order);
    const kept = [...before, ...wanted.filter(({ id }) => !known.has(id))];
    if (kept.some(({ id }, at) => id !== wanted[at]?.id)) deferred.add(projectId);
    return kept;
  }

  /** A project's own row. @param {Project} project */
  function drawHeader(project) {
    const own = branch(project);
    const list = store.sessionsOf(project.id);
    const expanded = !collapsed[project.id];
    const isAmbiguous = store.state.projects.filter(({ name }) => name === project.name).length > 1;
    updateProjectRow(own.row, {
      project, expanded, hint: isAmbiguous ? parentName(project.path) : "", count: list.length,
      attention: mostUrgent(list.map(({ attention }) => attention)),
    });
    return { own, list, expanded };
  }

  /** @param {Project} project @returns {number} How many rows it has. */
  function drawProject(project) {
    const { own, list, expanded } = drawHeader(project);
    /** @type {Node[]} */
    const nodes = [own.row];
    if (!expanded) own.order = [];
    else {
      const visible = inPlace(shown(list, own), own, project.id);
      own.order = visible.map(({ id }) => id);
      const now = Date.now();
      for (const session of visible) nodes.push(drawSession(own, session, now));
      if (visible.length < list.length) {
        own.fold.textContent = `Show ${list.length - visible.length} more`;
        nodes.push(own.fold);
      }
      if (list.length === 0 && store.state.listed.has(project.id)) nodes.push(own.empty);
    }
    for (const id of own.sessions.keys()) if (!store.state.sessions.has(id)) own.sessions.delete(id);
    reconcile(own.group, nodes);
    if (awaitedNew?.projectId === project.id) focusAwaitedNew(awaitedNew);
    return nodes.length;
  }

  /**
   * Focuses New session, unless the user moved focus while the list was loading.
   * @param {{ projectId: string, focused: Element | null }} awaited
   */
  function focusAwaitedNew({ projectId, focused }) {
    const now = document.activeElement;
    // The sheet gets focus when the focused element is removed; the user did not choose it.
    if (now === focused || now === null || now === document.body || now.id === "sheet") {
      return focusNewSession(projectId);
    }
    if (store.state.listed.has(projectId)) awaitedNew = null;
  }

  /** @param {string} projectId */
  function focusNewSession(projectId) {
    const own = branches.get(projectId);
    const isKnown = own?.group.isConnected && store.state.listed.has(projectId);
    awaitedNew = isKnown ? null : { projectId, focused: document.activeElement };
    if (!own || !isKnown) return;
    const row = own.empty.isConnected ? own.empty : own.row;
    makeTabStop(row);
    const button = row.querySelector('[data-do="new-session"]');
    if (button instanceof HTMLElement) button.focus();
  }

  /** @param {Branch} own @param {SessionSummary} session @param {number} now */
  function drawSession(own, session, now) {
    const row = own.sessions.get(session.id) ?? sessionRow(session);
    own.sessions.set(session.id, row);
    if (noHover.matches) addRowActions(row);
    updateSessionRow(row, {
      session,
      now,
      agentName: store.agent(session.cliType)?.name ?? session.cliType,
      current: session.id === activeSession(),
    });
    return row;
  }

  for (const kind of ["pointerover", "focusin"]) {
    root.addEventListener(kind, (event) => {
      const row = closest(event, ".session-row");
      if (row) addRowActions(row);
    }, { passive: true });
  }
  noHover.addEventListener("change", () => store.state.projects.forEach(drawProject));

  /**
   * Draws waiting projects, that of the session in view first.
   * @param {number} rowsMax
   * @param {number} ms
   */
  function drawSome(rowsMax, ms) {
    const start = performance.now();
    const first = store.state.sessions.get(activeSession() ?? "")?.projectId;
    let rows = 0;
    for (const id of first !== undefined && waiting.has(first) ? [first, ...waiting] : waiting) {
      if (!waiting.delete(id)) continue;
      const project = store.project(id);
      if (project) rows += drawProject(project);
      if (rows > rowsMax || performance.now() - start > ms) break;
    }
    keepOneTabStop();
    if (waiting.size === 0 || later) return;
    later = true;
    // In slices, so that frames and keys can run in between; an idle callback would wait for everything that is
    // loading.
    setTimeout(() => {
      later = false;
      drawSome(Infinity, SLICE_MS);
    });
  }

  /** In a frame, draws only as many rows as fill the window: the rest is below the fold and needs no layout. */
  const drawWithFrame = () => drawSome(innerHeight / ROW_PX, FRAME_MS);

  /** Keeps exactly one row reachable by Tab. */
  function keepOneTabStop() {
    const stop = root.querySelector('[tabindex="0"]');
    if (stop) return;
    const first = root.querySelector('[role="treeitem"]');
    if (first instanceof HTMLElement) first.tabIndex = 0;
  }

  /**
   * The index of the focused group if it is about to be removed, or -1.
   * @param {HTMLElement[]} groups Those that stay.
   */
  function removedFocusIndex(groups) {
    const holder = document.activeElement?.closest(".project");
    return holder instanceof HTMLElement && root.contains(holder) && !groups.includes(holder)
      ? [...root.children].indexOf(holder)
      : -1;
  }

  /** @param {HTMLElement | undefined} group */
  function focusRow(group) {
    const row = group?.firstElementChild;
    if (!(row instanceof HTMLElement)) return;
    makeTabStop(row);
    row.focus();
  }

  /** @param {HTMLElement} row */
  function makeTabStop(row) {
    for (const other of root.querySelectorAll('[tabindex="0"]')) {
      if (other !== row) /** @type {HTMLElement} */ (other).tabIndex = -1;
    }
    row.tabIndex = 0;
  }

  return {
    /** @param {import("./store.js").Changes} changes */
    update(changes) {
      if (changes.projects) {
        for (const id of branches.keys()) if (!store.project(id)) branches.delete(id);
        // A new project may share its name with an old one, so every header is redrawn.
        for (const project of store.state.projects) {
          if (!branches.has(project.id)) drawHeader(project);
          waiting.add(project.id);
        }
        const groups = store.state.projects.map((project) => branch(project).group);
        const left = removedFocusIndex(groups);
        reconcile(root, groups);
        // Focus goes to what replaced the removed project.
        if (left >= 0) focusRow(groups[left] ?? groups.at(-1));
        if (awaited !== null && branches.has(awaited)) {
          focusRow(branches.get(awaited)?.group);
          awaited = null;
        }
      }
      for (const id of changes.sessions) waiting.add(id);
      drawWithFrame();
    },
    /** Rows may move again. */
    release() {
      if (deferred.size === 0) return;
      for (const id of deferred) waiting.add(id);
      drawWithFrame();
    },
    /** Updates the relative times. */
    redraw() {
      for (const { id } of store.state.projects) waiting.add(id);
      drawWithFrame();
    },
    /** @param {string} projectId */
    toggle(projectId) {
      // Another window may have changed other projects since.
      readCollapsed();
      if (collapsed[projectId]) delete collapsed[projectId];
      else collapsed[projectId] = true;
      save("collapsed", collapsed);
      redrawOne(projectId);
    },
    /** @param {string} projectId */
    isExpanded: (projectId) => !collapsed[projectId],
    /** @param {string} projectId */
    unfold(projectId) {
      const own = branches.get(projectId);
      if (own) Object.assign(own, { unfolded: true, order: [] });
      redrawOne(projectId);
    },
    /** Focuses a project's New session button, now or once it is drawn. */
    focusNewSession,
    /** Focuses a project's row, now or once it is drawn. @param {string} projectId */
    focusProject(projectId) {
      const own = branches.get(projectId);
      if (own?.group.isConnected) focusRow(own.group);
      else awaited = projectId;
    },
    /** Scrolls a session's row into view. @param {string} sessionId */
    reveal(sessionId) {
      const session = store.state.sessions.get(sessionId);
      if (session) branches.get(session.projectId)?.sessions.get(sessionId)?.scrollIntoView({ block: "nearest" });
    },
  };

  /** @param {string} projectId */
  function redrawOne(projectId) {
    const project = store.project(projectId);
    if (project) drawProject(project);
    keepOneTabStop();
  }
}
