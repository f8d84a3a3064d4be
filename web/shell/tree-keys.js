// tree-keys.js: keyboard and pointer input of the tree. One listener per kind of event, on the tree itself.
import { closest } from "../shared/dom.js";

/**
 * @typedef {{
 *   toggle: (projectId: string) => void,
 *   isExpanded: (projectId: string) => boolean,
 *   unfold: (projectId: string) => void,
 *   open: (sessionId: string) => void,
 *   archive: (sessionId: string) => void,
 *   newSession: (projectId: string) => void,
 *   projectMenu: (at: HTMLElement | { x: number, y: number }, projectId: string) => void,
 *   sessionMenu: (at: HTMLElement | { x: number, y: number }, sessionId: string) => void,
 * }} TreeActions
 */

/** Letters typed within this time are searched together. */
const TYPE_AHEAD_MS = 600;

/**
 * @param {HTMLElement} root
 * @param {TreeActions} actions
 */
export function driveTree(root, actions) {
  let typed = "";
  let typedAt = 0;

  const rows = () => /** @type {HTMLElement[]} */ ([...root.querySelectorAll('[role="treeitem"]')]);

  /** @param {HTMLElement | undefined} row */
  function focus(row) {
    if (!row) return;
    for (const other of root.querySelectorAll('[tabindex="0"]')) {
      if (other !== row) /** @type {HTMLElement} */ (other).tabIndex = -1;
    }
    row.tabIndex = 0;
    row.focus();
  }

  /** @param {HTMLElement} row */
  const projectOf = (row) => row.closest("[data-project-group]")?.getAttribute("data-project-group") ?? "";

  /** @param {HTMLElement} row */
  function activate(row) {
    const { project, session, fold, empty } = row.dataset;
    if (project) actions.toggle(project);
    else if (session) actions.open(session);
    else if (fold) actions.unfold(fold);
    else if (empty) actions.newSession(empty);
  }

  /** @param {HTMLElement} row @param {HTMLElement | { x: number, y: number }} at */
  function menu(row, at) {
    if (row.dataset.session) actions.sessionMenu(at, row.dataset.session);
    else actions.projectMenu(at, projectOf(row));
  }

  root.addEventListener("click", (event) => {
    const row = closest(event, '[role="treeitem"]');
    if (!row) return;
    const button = closest(event, "[data-do]");
    if (button?.dataset.do === "new-session") return actions.newSession(projectOf(row));
    if (button?.dataset.do === "archive") return actions.archive(row.dataset.session ?? "");
    if (button?.dataset.do === "more") return menu(row, button);
    focus(row);
    activate(row);
  });

  root.addEventListener("contextmenu", (event) => {
    const row = closest(event, '[role="treeitem"]');
    if (!row) return;
    event.preventDefault();
    // Ignores the event that follows the menu key: that key has already opened the menu.
    if (/** @type {PointerEvent} */ (event).pointerType === "") return;
    focus(row);
    menu(row, { x: event.clientX, y: event.clientY });
  });

  root.addEventListener("keydown", (event) => {
    const row = closest(event, '[role="treeitem"]');
    if (!row || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target !== row && (event.key === "Enter" || event.key === " ")) return;
    if (!press(event, row)) return;
    event.preventDefault();
  });

  /** @param {KeyboardEvent} event @param {HTMLElement} row @returns {boolean} */
  function press(event, row) {
    const all = rows();
    const at = all.indexOf(row);
    const project = row.dataset.project;
    switch (event.key) {
      case "ArrowDown": focus(all[at + 1]); return true;
      case "ArrowUp": focus(all[at - 1]); return true;
      case "Home": focus(all[0]); return true;
      case "End": focus(all.at(-1)); return true;
      case "ArrowRight":
        if (project && !actions.isExpanded(project)) actions.toggle(project);
        else if (project) focus(all[at + 1]);
        return true;
      case "ArrowLeft":
        if (project && actions.isExpanded(project)) actions.toggle(project);
        else if (!project) focus(all.find((other) => other.dataset.project === projectOf(row)));
        return true;
      case "Enter": case " ": activate(row); return true;
      case "Delete":
        if (!row.dataset.session) return false;
        focus(all[at + 1]?.dataset.session ? all[at + 1] : all[at - 1]);
        actions.archive(row.dataset.session);
        return true;
      case "ContextMenu": menu(row, below(row)); return true;
      case "F10": if (event.shiftKey) menu(row, below(row)); return event.shiftKey;
      default: return event.key.length === 1 && typeAhead(event.key, all, at);
    }
  }

  /** @param {HTMLElement} row */
  function below(row) {
    const { left, bottom } = row.getBoundingClientRect();
    return { x: left + 24, y: bottom };
  }

  /** @param {string} key @param {HTMLElement[]} all @param {number} at */
  function typeAhead(key, all, at) {
    const now = performance.now();
    typed = now - typedAt < TYPE_AHEAD_MS ? typed + key.toLowerCase() : key.toLowerCase();
    typedAt = now;
    const from = typed.length === 1 ? at + 1 : at;
    const order = [...all.slice(from), ...all.slice(0, from)];
    focus(
      order.find((row) => (row.getAttribute("aria-label") ?? row.textContent ?? "").toLowerCase().startsWith(typed)),
    );
    return true;
  }
}
