// sheet.js: shows the session in front, or the page that stands for it.
import { closest, find } from "../shared/dom.js";
import { copyText } from "../shared/clipboard.js";
import { createFirstRun } from "./first-run.js";
import { failedPage, noSessionPage, startingPage } from "./pages.js";
import { redraw } from "./redraw.js";

/** @typedef {import("./needs-you.js").Need} Need */

/**
 * @param {HTMLElement} root
 * @param {{
 *   store: import("./store.js").Store, workspace: import("./workspace.js").Workspace, actions: import("./actions.js").Actions,
 *   show: (sessionId: string | null) => void, open: (sessionId: string) => void, newSession: (projectId?: string) => void,
 * }} deps
 */
export function mountSheet(root, { store, workspace, actions, show, open, newSession }) {
  const page = find(root, "#page");
  const firstRun = createFirstRun({ complete: actions.complete, add: actions.addProject });

  page.addEventListener("click", (event) => {
    const button = closest(event, "[data-do], [data-open], [data-reconnect]");
    if (!button) return;
    const failure = workspace.failure();
    const start = workspace.currentStart();
    if (button.dataset.open) open(button.dataset.open);
    else if (button.dataset.reconnect) actions.reconnect(button.dataset.reconnect);
    else switch (button.dataset.do) {
      case "copy": return void copyText(button.dataset.text ?? "", button);
      case "check-agents": return actions.refreshAgents();
      case "cancel-start": return void (start && workspace.end(start.key));
      case "retry": return void (failure && actions.createSession(failure.projectId, failure.cliType));
      case "dismiss": return workspace.dismiss();
      case "other-agent":
        workspace.dismiss();
        return newSession(failure?.projectId);
    }
  });

  /** The page that is to be seen; none where the session itself is. @param {Need[]} needs @param {string | null} current @returns {Node | null} */
  function pageOf(needs, current) {
    const start = workspace.currentStart();
    const failure = workspace.failure();
    if (start) return startingPage(store, start);
    if (failure) return failedPage(store, failure);
    if (!store.state.ready || (current !== null && waitsForList())) return null;
    return store.state.projects.length === 0 ? firstRun.root : noSessionPage(store, needs);
  }

  return {
    /** @param {Need[]} needs */
    update(needs) {
      const current = workspace.current();
      const known = current !== null && store.state.sessions.has(current);
      show(known ? current : null);
      const wanted = known ? null : pageOf(needs, current);
      const fresh = wanted === firstRun.root && !firstRun.root.isConnected;
      if (wanted === firstRun.root) firstRun.update(store.state.agents);
      redraw(page, wanted ? [wanted] : []);
      page.hidden = known;
      if (fresh && (document.activeElement === document.body || document.activeElement === null)) firstRun.focus();
    },
  };

  /** A restored tab whose project's list has not come yet. */
  function waitsForList() {
    return store.state.projects.some(({ id }) => !store.state.listed.has(id));
  }
}
