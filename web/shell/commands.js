// commands.js: everything the user can ask for by a key, a button, a menu or the palette.
import { copyText } from "../shared/clipboard.js";
import { h } from "../shared/dom.js";
import { mod, nav } from "../shared/keys.js";
import { openMenu } from "../shared/menu.js";
import { openAddProject } from "./add-project.js";
import { isOpen, openDialog } from "./dialog.js";
import { openPalette } from "./palette.js";
import { openPicker } from "./picker.js";
import { removeProject } from "./remove-project.js";

/** @typedef {import("../shared/menu.js").MenuEntry} MenuEntry */
/** @typedef {HTMLElement | { x: number, y: number }} Place */

/**
 * @param {{
 *   store: import("./store.js").Store, workspace: import("./workspace.js").Workspace, actions: import("./actions.js").Actions,
 *   portlets: ReturnType<typeof import("./portlets.js").mountPortlets>, focus: import("./focus.js").Focus, drawer: ReturnType<typeof import("./drawer.js").mountDrawer>,
 *   resize: ReturnType<typeof import("./resize.js").mountResize>, toast: import("./toasts.js").Toast, changeTheme: () => void, settings: () => void,
 *   needs: () => import("./needs-you.js").Need[],
 * }} deps
 */
export function createCommands({ store, workspace, actions, portlets, focus, drawer, resize, toast, changeTheme, settings, needs }) {
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
    portlets.tellCurrent({ kind: "focus", target: "input" });
  }

  /** @param {string} sessionId */
  function close(sessionId) {
    if (workspace.starts().some(({ key }) => key === sessionId)) return void workspace.end(sessionId);
    workspace.close(sessionId);
  }

  /** @param {string} [projectId] */
  function newSession(projectId) {
    const own = projectId ?? store.state.sessions.get(workspace.current() ?? "")?.projectId ?? store.state.projects[0]?.id;
    if (!own) return openAddProject({ complete: actions.complete, add: actions.addProject });
    actions.refreshAgents();
    picker = openPicker({ store, projectId: own, create: (project, cliType) => {
      drawer.close();
      void actions.createSession(project, cliType);
    } });
  }

  /** The next one that waits: after the one in view, else the first. @param {string} [attention] */
  function next(attention) {
    const waiting = needs().flatMap((need) => (need.kind === "session" && (!attention || need.session.attention === attention) ? [need.session.id] : []));
    if (waiting.length === 0) return void toast("Nothing needs you");
    const at = waiting.indexOf(workspace.current() ?? "");
    open(waiting[(at + 1) % waiting.length] ?? "");
  }

  /** @param {number} step */
  function stepTab(step) {
    const all = workspace.order();
    const at = all.indexOf(workspace.current() ?? "");
    const id = all[(at + step + all.length) % all.length];
    if (id) open(id);
  }

  function toggleSidebar() {
    if (drawer.isNeeded()) drawer.toggle();
    else focus.keep(resize.toggle);
  }

  /** @param {string} sessionId */
  function renameDialog(sessionId) {
    const input = h("input", { type: "text", name: "title", "aria-label": "Title", value: store.state.sessions.get(sessionId)?.title ?? "", maxlength: 200 });
    const form = h("form", { method: "dialog" }, h("h2", {}, "Rename session"), input,
      h("div", { class: "dialog-actions" }, h("button", { class: "button", type: "button", "data-kind": "ghost", "data-do": "cancel" }, "Cancel"), h("button", { class: "button", type: "submit", "data-kind": "primary" }, "Rename")));
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
      "line",
      { label: "Remove from sidebar", icon: "close", run: () => remove(projectId) },
    ]);
  }

  /** @param {string} projectId */
  const remove = (projectId) => removeProject({ store, projectId, remove: () => void actions.removeProject(projectId) });

  const chooseProjectToRemove = () => openMenu({ x: innerWidth / 2 - 110, y: 104 }, "Remove project", store.state.projects.map(({ name, id }) => ({ label: name, icon: "folder", run: () => remove(id) })));

  /** @param {string} sessionId @returns {MenuEntry[]} */
  function sessionEntries(sessionId) {
    const isTab = workspace.order().includes(sessionId);
    return [
      { label: "Rename", icon: "pencil", run: () => renameDialog(sessionId) },
      { label: "Copy session id", icon: "copy", run: () => void copy(sessionId, "Session id copied") },
      { label: "Archive", icon: "archive", run: () => void actions.archive(sessionId) },
      ...(isTab ? /** @type {MenuEntry[]} */ (["line", { label: "Close tab", icon: "close", hint: nav("W"), run: () => close(sessionId) }]) : []),
    ];
  }

  /** @param {string} text @param {string} words */
  const copy = async (text, words) => void toast((await copyText(text)) ? words : "Could not copy");

  /** @returns {import("./palette.js").PaletteCommand[]} */
  const paletteCommands = () => [
    { label: "New session", icon: "plus", keys: nav("N"), run: () => newSession() },
    { label: "Add project…", icon: "folder", run: () => openAddProject({ complete: actions.complete, add: actions.addProject }) },
    { label: "Review next session that needs you", icon: "arrow-down", keys: mod("J"), run: () => next() },
    ...store.state.agents.filter(({ status }) => status === "disconnected").map(({ name, cliType }) => ({ label: `Reconnect ${name}`, icon: "refresh", run: () => actions.reconnect(cliType) })),
    ...(store.state.projects.length ? [{ label: "Remove project…", icon: "close", run: chooseProjectToRemove }] : []),
    ...(workspace.current() ? [{ label: "Close tab", icon: "close", keys: nav("W"), run: () => void run("close-tab") }] : []),
    { label: "Show or hide the sidebar", icon: "sidebar", keys: mod("B"), run: toggleSidebar },
    { label: "Show or hide plan and changes", icon: "rail", keys: mod("."), run: () => void run("rail") },
    { label: "Change theme", icon: "moon", run: changeTheme },
    { label: "Settings", icon: "gear", run: settings },
  ];

  /** @type {Record<string, (index: number, from?: HTMLElement) => void>} */
  const table = {
    palette: () => openPalette({ store, commands: paletteCommands(), open }),
    next: () => next(),
    "next-of": (_, from) => next(from?.dataset.attention),
    sidebar: toggleSidebar,
    rail: () => portlets.tellCurrent({ kind: "command", name: "rail" }),
    theme: changeTheme,
    settings,
    "new-session": () => newSession(),
    "add-project": () => openAddProject({ complete: actions.complete, add: actions.addProject }),
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
    "open-sessions": (_, from) => openMenu(from ?? { x: innerWidth - 240, y: 56 }, "Open sessions", workspace.order().map((id) => ({
      label: store.state.sessions.get(id)?.title ?? id, checked: id === workspace.current(), run: () => open(id),
    }))),
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
    /** What lies over the page goes first. @param {boolean} held The key was not let go since. */
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
      else if (message.kind === "say") toast(message.text, { kind: "error", ...(message.detail ? { detail: message.detail } : {}) });
      else if (message.kind === "command") {
        if (message.name === "rename") renameDialog(sessionId);
        if (message.name === "archive") void actions.archive(sessionId);
        if (message.name === "close") close(sessionId);
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
      menu: (id, at) => openMenu(at, "Session", sessionEntries(id)),
    },
    treeActions: {
      open, newSession, projectMenu,
      archive: (/** @type {string} */ id) => void actions.archive(id),
      sessionMenu: (/** @type {Place} */ at, /** @type {string} */ id) => openMenu(at, store.state.sessions.get(id)?.title ?? "Session", sessionEntries(id)),
    },
  };
}
