// sheet.js: shows the session in front, or the page that stands for it.
import { closest, find, reconcile } from "../shared/dom.js";
import { copyText } from "../shared/clipboard.js";
import { createFirstRun } from "./first-run.js";
import { countWorking } from "./needs-you.js";
import { failedPage, noSessionPage, startingPage } from "./pages.js";

/** @typedef {import("./needs-you.js").Need} Need */

/**
 * @param {HTMLElement} root
 * @param {{
 *   store: import("./store.js").Store, workspace: import("./workspace.js").Workspace, actions: import("./actions.js").Actions,
 *   show: (sessionId: string | null) => void, newSession: (projectId?: string) => void,
 * }} deps
 */
export function mountSheet(root, { store, workspace, actions, show, newSession }) {
  const page = find(root, "#page");
  const firstRun = createFirstRun({ complete: actions.complete, add: actions.addProject });
  /** What is drawn, so that the same is not drawn again. */
  let drawn = "";

  page.addEventListener("click", (event) => {
    const button = closest(event, "[data-do], [data-open], [data-reconnect]");
    if (!button) return;
    const failure = workspace.failure();
    const start = workspace.currentStart();
    if (button.dataset.open) workspace.open(button.dataset.open);
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

  /** @param {string} key @param {() => Node} make */
  function draw(key, make) {
    page.hidden = false;
    if (drawn === key) return;
    drawn = key;
    const focused = document.activeElement;
    const inside = focused instanceof HTMLElement && page.contains(focused) ? focused.dataset : null;
    reconcile(page, [make()]);
    const again = inside?.do ? page.querySelector(`[data-do="${inside.do}"]`) : inside?.command ? page.querySelector(`[data-command="${inside.command}"]`) : null;
    if (again instanceof HTMLElement) again.focus();
  }

  return {
    /** @param {Need[]} needs */
    update(needs) {
      const current = workspace.current();
      const known = current !== null && store.state.sessions.has(current);
      show(known ? current : null);
      const start = workspace.currentStart();
      const failure = workspace.failure();
      if (start) draw(`start ${start.key} ${start.connectedAt} ${Math.floor((Date.now() - start.startedAt) / 100)}`, () => startingPage(store, start));
      else if (failure) draw(`failed ${failure.cliType} ${failure.error.code} ${failure.error.message}`, () => failedPage(store, failure));
      else if (known || !store.state.ready || (current !== null && waitsForList(current))) {
        page.hidden = known;
        if (!known) reconcile(page, []);
        drawn = "";
      } else if (store.state.projects.length === 0) {
        firstRun.update(store.state.agents);
        const fresh = drawn !== "first";
        draw("first", () => firstRun.root);
        if (fresh && (document.activeElement === document.body || document.activeElement === null)) firstRun.focus();
      } else draw(`none ${JSON.stringify(needs.map((need) => [need.key, need.since, need.kind === "session" && [need.session.title, need.session.attention, need.session.reason]]))} ${countWorking(store)}`, () => noSessionPage(store, needs));
    },
  };

  /** A restored tab whose project's list has not come yet. @param {string} _id */
  function waitsForList(_id) {
    return store.state.projects.some(({ id }) => !store.state.listed.has(id));
  }
}
