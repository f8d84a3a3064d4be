// commands.js: every command, whether it comes from a key, a button, a menu or the palette.
import { NAMES } from "../shared/attention.js";
import { copyText } from "../shared/clipboard.js";
import { h } from "../shared/dom.js";
import { mod, nav } from "../shared/keys.js";
import { openMenu } from "../shared/menu.js";
import { OPEN_TARGETS, openEntries } from "../shared/open-in.js";
import { shortPath } from "../shared/paths.js";
import { openAddProject } from "./add-project.js";
import { openDefaults } from "./defaults.js";
import { isOpen, openDialog } from "./dialog.js";
import { openExport } from "./export.js";
import { openPalette } from "./palette.js";
import { openPicker } from "./picker.js";
import { removeProject } from "./remove-project.js";
import { createReview } from "./review.js";
import { openShortcuts } from "./shortcuts.js";
import { openUsage } from "./usage.js";

/** @typedef {import("../shared/menu.js").MenuEntry} MenuEntry */
/** @typedef {HTMLElement | { x: number, y: number }} Place */

/**
 * @param {{
 *   store: import("./store.js").Store,
 *   workspace: import("./workspace.js").Workspace,
 *   actions: import("./actions.js").Actions,
 *   portlets: ReturnType<typeof import("./portlets.js").mountPortlets>,
 *   focus: import("./focus.js").Focus,
 *   drawer: ReturnType<typeof import("./drawer.js").mountDrawer>,
 *   resize: ReturnType<typeof import("./resize.js").mountResize>,
 *   toast: import("./toasts.js").Toast,
 *   changeTheme: () => void,
 *   settings: (addAgent?: boolean) => void,
 *   unseen: () => import("./needs-you.js").Need[],
 *   focusProject: (projectId: string) => void,
 *   focusNewSession: (projectId: string) => void,
 * }} deps
 */
export function createCommands({
  store,
  workspace,
  actions,
  portlets,
  focus,
  drawer,
  resize,
  toast,
  changeTheme,
  settings,
  unseen,
  focusProject,
  focusNewSession,
}) {
  /** @type {ReturnType<typeof openPicker> | null} */
  let picker = null;
  store.subscribe((changes) => {
    if (picker && !picker.closed() && (changes.agents || changes.projects)) picker.update();
  });

  /** @param {string} sessionId */
  function open(sessionId) {
    drawer.close({ giveBack: false });
    workspace.open(sessionId);
    portlets.show(sessionId);
    portlets.sendToCurrent({ kind: "focus", target: "input" });
  }

  /** @param {string} sessionId */
  function close(sessionId) {
    if (workspace.starts().some(({ key }) => key === sessionId)) return void workspace.end(sessionId);
    workspace.close(sessionId);
  }

  /** The project most recently added in this window. @type {string | null} */
  let lastAdded = null;

  /** The project to use when none is given. */
  function defaultProject() {
    const added = lastAdded !== null && store.project(lastAdded) ? lastAdded : undefined;
    return store.state.sessions.get(workspace.current() ?? "")?.projectId ?? added ?? store.state.projects[0]?.id;
  }

  /** @param {string} [projectId] @param {string} [agent] The agent to offer first. */
  function newSession(projectId, agent) {
    const own = projectId ?? defaultProject();
    if (!own) return openAddProject(actions.adding());
    actions.refreshAgents();
    picker = openPicker({ store, projectId: own, ...(agent ? { agent } : {}), create: (project, cliType) => {
      drawer.close();
      void actions.createSession(project, cliType);
    } });
  }

  const review = createReview();

  /** Opens the next session that needs the user or is unread. @param {string} [attention] */
  function next(attention) {
    const all = unseen().filter((need) =>
      !attention || (need.kind === "session" && need.session.attention === attention));
    const current = store.state.sessions.get(workspace.current() ?? "");
    const id = review(all, current);
    if (id) return open(id);
    toast(all.length ? "Nothing else needs you" : "Nothing needs you");
    // The current session has the request: focus it.
    if (current?.attention === "needs_permission") open(current.id);
  }

  /** @param {number} step */
  function stepTab(step) {
    const all = workspace.order();
    const at = all.indexOf(workspace.current() ?? "");
    const id = all[(at + step + all.length) % all.length];
    if (id) open(id);
  }

  /** Focuses a project's row, showing the sidebar if needed. @param {string} projectId */
  function goToProject(projectId) {
    if (drawer.isNeeded() ? !drawer.isOpen() : resize.isHidden()) toggleSidebar();
    focusProject(projectId);
  }

  /** @returns {import("./palette.js").Findable} */
  const findable = () => ({
    commands: paletteCommands(),
    previous: workspace.previous((id) => store.state.sessions.has(id)),
    projects: store.state.projects.map(({ id, name, path }) => ({
      label: name,
      icon: "folder",
      meta: shortPath(path, store.state.home),
      run: () => goToProject(id),
    })),
    agents: store.state.agents.filter(({ installed }) => installed).map(({ cliType, name }) => ({
      label: name,
      icon: "bot",
      mark: cliType,
      meta: "New session",
      run: () => newSession(undefined, cliType),
    })),
  });

  function toggleSidebar() {
    if (drawer.isNeeded()) drawer.toggle();
    else focus.keep(resize.toggle);
  }

  /** @param {string} sessionId */
  function renameDialog(sessionId) {
    const input = h("input", {
      type: "text",
      name: "title",
      "aria-label": "Title",
      value: store.state.sessions.get(sessionId)?.title ?? "",
      maxlength: 200,
    });
    const form = h("form", { method: "dialog" }, h("h2", {}, "Rename session"), input,
      h("div", { class: "dialog-actions" },
        h("button", { class: "button", type: "button", "data-kind": "ghost", "data-do": "cancel" }, "Cancel"),
        h("button", { class: "button", type: "submit", "data-kind": "primary" }, "Rename")));
    const dialog = openDialog({ label: "Rename session", className: "text-dialog" }, form);
    form.addEventListener("submit", () => input.value.trim() && actions.rename(sessionId, input.value.trim()));
    form.querySelector('[data-do="cancel"]')?.addEventListener("click", () => dialog.close());
    input.select();
  }

  /** @param {Place} at @param {string} projectId */
  function projectMenu(at, projectId) {
    const project = store.project(projectId);
    if (!project) return;
    openMenu(at, project.name, [
      { label: "New session", icon: "plus", hint: nav("N"), run: () => newSession(projectId) },
      { label: "Copy path", icon: "copy", run: () => void copy(project.path, "Path copied") },
      ...openEntries(store.state.hasDisplay, (target) => actions.openProjectIn(projectId, target)),
      {
        label: "Defaults…",
        icon: "gear",
        run: () => openDefaults({ store, project, save: (defaults) => void actions.setDefaults(projectId, defaults) }),
      },
      "line",
      { label: "Remove from sidebar", icon: "close", run: () => remove(projectId) },
    ]);
  }

  /** @param {string} projectId */
  const remove = (projectId) =>
    removeProject({ store, projectId, remove: () => void actions.removeProject(projectId) });

  const chooseProjectToRemove = () => openMenu(
    { x: innerWidth / 2 - 110, y: 104 },
    "Remove project",
    store.state.projects.map(({ name, id }) => ({ label: name, icon: "folder", run: () => remove(id) })),
  );

  /** @param {string} sessionId */
  function exportSession(sessionId) {
    const session = store.state.sessions.get(sessionId);
    if (session) openExport({ session, exported: (name) => toast(`Exported as ${name}`) });
  }

  /** @param {string} sessionId @returns {MenuEntry[]} */
  function sessionEntries(sessionId) {
    const isTab = workspace.order().includes(sessionId);
    return [
      { label: "Rename", icon: "pencil", run: () => renameDialog(sessionId) },
      { label: "Export…", icon: "export", run: () => exportSession(sessionId) },
      { label: "Copy session id", icon: "copy", run: () => void copy(sessionId, "Session id copied") },
      ...openEntries(store.state.hasDisplay, (target) => actions.openSessionIn(sessionId, target)),
      { label: "Archive", icon: "archive", run: () => void actions.archive(sessionId) },
      ...(isTab ? /** @type {MenuEntry[]} */ ([
        "line",
        { label: "Close tab", icon: "close", hint: nav("W"), run: () => close(sessionId) },
      ]) : []),
    ];
  }

  /** Closes tabs, with Undo. @param {(id: string) => boolean} wanted Those that stay. */
  function closeTabs(wanted) {
    const before = workspace.snapshot();
    const closed = workspace.keepOnly(wanted);
    const undo = { label: "Undo", run: () => workspace.restore(before, () => true) };
    if (closed) toast(closed === 1 ? "1 tab closed" : `${closed} tabs closed`, { action: undo });
  }

  /** Nothing is running in it, and it does not wait for the user. @param {string} id */
  const isFinished = (id) => ["finished", "idle"].includes(store.state.sessions.get(id)?.attention ?? "");

  /** @param {string | null} id */
  const closeOthers = (id) => closeTabs((other) => other === id);
  /** @param {string | null} id The tab that stays, whatever its state. */
  const closeFinished = (id) => closeTabs((other) => other === id || !isFinished(other));

  /** Menu entries for closing several tabs. @param {string | null} id The tab that stays. @returns {MenuEntry[]} */
  const manyTabsEntries = (id) => [
    {
      label: "Close others",
      icon: "close",
      disabled: id === null || workspace.order().length < 2,
      run: () => closeOthers(id),
    },
    {
      label: "Close finished",
      icon: "check",
      disabled: !workspace.order().some((other) => other !== id && isFinished(other)),
      run: () => closeFinished(id),
    },
  ];

  /** Every tab with its project and its state. @param {Place} at */
  const allTabsMenu = (at) => openMenu(at, "Open sessions", [
    ...manyTabsEntries(workspace.current()),
    ...workspace.order().map((id) => {
      const session = store.state.sessions.get(id);
      const project = store.project(session?.projectId ?? "")?.name ?? "";
      const attention = session?.attention ?? "idle";
      return {
        label: session?.title ?? id,
        attention,
        note: [project, attention === "idle" ? "" : NAMES[attention]].filter(Boolean).join(" · "),
        checked: id === workspace.current(),
        run: () => open(id),
      };
    }),
  ], { wide: true, pinned: 2 });

  /**
   * Makes a session's options the defaults for new sessions of its project.
   * @param {string} sessionId
   * @param {Record<string, string>} options
   */
  async function makeDefaults(sessionId, options) {
    const session = store.state.sessions.get(sessionId);
    const project = session && store.project(session.projectId);
    if (!project) return;
    if (await actions.setDefaults(project.id, { cliType: session.cliType, options })) {
      toast(`New sessions in ${project.name} will start with these options`);
    }
  }

  /** @param {string} text @param {string} confirmation */
  const copy = async (text, confirmation) => void toast((await copyText(text)) ? confirmation : "Could not copy");

  const usage = () => void openUsage({ open, isOpenable: (id) => store.state.sessions.has(id) });

  /** @returns {import("./palette.js").PaletteCommand[]} */
  const paletteCommands = () => [
    { label: "New session", icon: "plus", keys: nav("N"), run: () => newSession() },
    { label: "Add project…", icon: "folder", run: () => openAddProject(actions.adding()) },
    { label: "Review next session that needs you", icon: "arrow-down", keys: mod("J"), run: () => next() },
    ...store.state.agents.filter(({ status }) => status === "disconnected").map(({ name, cliType }) => ({
      label: `Reconnect ${name}`,
      icon: "refresh",
      run: () => actions.reconnect(cliType),
    })),
    ...(store.state.projects.length ? [{ label: "Remove project…", icon: "close", run: chooseProjectToRemove }] : []),
    ...(workspace.current()
      ? [{ label: "Close tab", icon: "close", keys: nav("W"), run: () => void run("close-tab") }]
      : []),
    ...(workspace.order().length > 1 ? [
      { label: "All tabs…", icon: "layers", run: () => allTabsMenu({ x: innerWidth / 2 - 140, y: 104 }) },
      { label: "Close other tabs", icon: "close", run: () => closeOthers(workspace.current()) },
      { label: "Close finished tabs", icon: "check", run: () => closeFinished(workspace.current()) },
    ] : []),
    ...(workspace.current() ? [{
      label: "Copy conversation",
      icon: "copy",
      run: () => portlets.sendToCurrent({ kind: "command", name: "copy-conversation" }),
    }, {
      label: "Export conversation…",
      icon: "export",
      run: () => exportSession(workspace.current() ?? ""),
    }] : []),
    ...(workspace.current() && store.state.hasDisplay
      ? OPEN_TARGETS.map(([target, label, icon]) => ({
        label,
        icon,
        run: () => actions.openSessionIn(workspace.current() ?? "", target),
      }))
      : []),
    { label: "Show or hide the sidebar", icon: "sidebar", keys: mod("B"), run: toggleSidebar },
    { label: "Show or hide plan and changes", icon: "rail", keys: mod("."), run: () => void run("rail") },
    { label: "Change theme", icon: "moon", run: changeTheme },
    { label: "Keyboard shortcuts", icon: "list", keys: "?", run: openShortcuts },
    { label: "Usage: tokens and cost", icon: "list", run: usage },
    { label: "Settings", icon: "gear", run: () => settings() },
    { label: "Add agent…", icon: "bot", run: () => settings(true) },
  ];

  /** @type {Record<string, (index: number, from?: HTMLElement) => void>} */
  const table = {
    palette: () => openPalette({ store, findable: findable(), open }),
    shortcuts: openShortcuts,
    next: () => next(),
    "next-of": (_, from) => next(from?.dataset.attention),
    sidebar: toggleSidebar,
    rail: () => portlets.sendToCurrent({ kind: "command", name: "rail" }),
    theme: changeTheme,
    settings: () => settings(),
    "add-agent": () => settings(true),
    usage,
    "new-session": () => newSession(),
    "add-project": () => openAddProject(actions.adding()),
    "close-tab": () => {
      const id = workspace.currentStart()?.key ?? workspace.current();
      if (id) close(id);
    },
    "previous-tab": () => stepTab(-1),
    "next-tab": () => stepTab(1),
    "move-tab": (step) => workspace.moveCurrent(step),
    tab: (index) => {
      const id = workspace.order()[index];
      if (id) open(id);
    },
    region: (step) => focus.step(step),
    "region-from-log": (step) => focus.step(step, "log"),
    "region-from-input": (step) => focus.step(step, "input"),
    "open-sessions": (_, from) => allTabsMenu(from ?? { x: innerWidth - 300, y: 56 }),
  };

  /** @param {string} name @param {number} [index] @param {HTMLElement} [from] @returns {boolean} */
  function run(name, index = 0, from) {
    const command = table[name];
    if (!command || isOpen()) return false;
    command(index, from);
    return true;
  }

  return {
    open, close, newSession, run,
    /** Focuses New session: it is the next step in a new project. @param {string} projectId */
    projectAdded(projectId) {
      lastAdded = projectId;
      if (drawer.isNeeded() ? drawer.isOpen() : !resize.isHidden()) return focusNewSession(projectId);
      const button = document.querySelector('#page [data-command="new-session"]');
      if (button instanceof HTMLElement) button.focus();
    },
    /** Closes overlays first. @param {boolean} held The key is repeating: it is still held down. */
    escape(held) {
      const start = workspace.currentStart();
      if (isOpen()) return;
      if (drawer.isOpen()) drawer.close();
      else if (start) workspace.end(start.key);
      else if (!held) actions.stop(workspace.current());
    },
    /** @param {string} sessionId @param {import("../shared/bus.js").ToShell} message */
    fromPortlet(sessionId, message) {
      if (message.kind === "shortcut") run(message.name, message.index ?? 0);
      else if (message.kind === "report") {
        toast(message.text, { kind: "error", ...(message.detail ? { detail: message.detail } : {}) });
      } else if (message.kind === "defaults") void makeDefaults(sessionId, message.options);
      else if (message.kind === "command") {
        if (message.name === "rename") renameDialog(sessionId);
        if (message.name === "export") exportSession(sessionId);
        if (message.name === "archive") void actions.archive(sessionId);
        if (message.name === "close") close(sessionId);
        if (message.name === "conversation-copied") toast("Conversation copied");
        if (message.name === "open-editor") actions.openSessionIn(sessionId, "editor");
        if (message.name === "open-terminal") actions.openSessionIn(sessionId, "terminal");
        if (message.name === "copy-id") void copy(sessionId, "Session id copied");
      }
    },
    tabActions: {
      /** @param {string} id */
      activate: (id) => {
        if (workspace.starts().some(({ key }) => key === id)) return workspace.showStart(id);
        workspace.open(id);
        portlets.show(id);
      },
      close,
      move: workspace.move,
      /** @param {string} id @param {{ x: number, y: number }} at */
      menu: (id, at) => openMenu(at, "Session", [...sessionEntries(id), ...manyTabsEntries(id)]),
    },
    treeActions: {
      open, newSession, projectMenu,
      archive: (/** @type {string} */ id) => void actions.archive(id),
      sessionMenu: (/** @type {Place} */ at, /** @type {string} */ id) =>
        openMenu(at, store.state.sessions.get(id)?.title ?? "Session", sessionEntries(id)),
    },
  };
}
