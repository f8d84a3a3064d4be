// sheet.js: shows the active session, or a page in its place.
import { closest, find } from "../shared/dom.js";
import { copyText } from "../shared/clipboard.js";
import { drafts } from "../shared/storage.js";
import { isOpen } from "./dialog.js";
import { createFirstRun } from "./first-run.js";
import { failedPage, noSessionPage, startingPage } from "./pages.js";
import { redraw } from "./redraw.js";

/** @typedef {import("./needs-you.js").Need} Need */

/**
 * @param {HTMLElement} root
 * @param {{
 *   store: import("./store.js").Store,
 *   workspace: import("./workspace.js").Workspace,
 *   actions: import("./actions.js").Actions,
 *   show: (sessionId: string | null) => void,
 *   isReady: (sessionId: string) => boolean,
 *   open: (sessionId: string) => void,
 *   newSession: (projectId?: string) => void,
 * }} deps `isReady`: the page of a session is loaded.
 */
export function mountSheet(root, { store, workspace, actions, show, isReady, open, newSession }) {
  const page = find(root, "#page");
  const firstRun = createFirstRun(actions.adding());

  /** The start whose input has had focus: from then on we do not move focus. */
  let entered = "";

  page.addEventListener("input", ({ target }) => {
    const start = workspace.currentStart();
    if (start && target instanceof HTMLTextAreaElement) workspace.setDraft(start.key, target.value);
  });
  page.addEventListener("keydown", (event) => {
    // There is no session to send to yet.
    if (event.key === "Enter" && !event.shiftKey && closest(event, ".start-input")) event.preventDefault();
  });
  // Keys pressed after the picker are meant for the new session, even before its page is drawn.
  addEventListener("keydown", (event) => {
    const start = workspace.currentStart();
    const isTyped = (event.key.length === 1 || event.key === "Enter")
      && !event.ctrlKey
      && !event.metaKey
      && !event.altKey;
    if (!start || !isTyped || isOpen() || document.activeElement?.matches("input, textarea")) return;
    if (entered === start.key && document.activeElement !== document.body) return;
    draw([], []);
    if (!focusStart()) return;
    event.stopPropagation();
    if (event.key === "Enter") event.preventDefault();
  }, { capture: true });

  // Text typed before the page of the active session has loaded is added to its draft, which that page shows.
  addEventListener("keydown", (event) => {
    const id = workspace.current();
    const isText = event.key.length === 1 && !event.ctrlKey && !event.metaKey && !event.altKey && !event.isComposing;
    if (id === null || !isText || isReady(id) || isOpen() || document.activeElement !== document.body) return;
    drafts.write(id, drafts.read(id) + event.key);
    event.stopPropagation();
    event.preventDefault();
  }, { capture: true });

  /** @returns {boolean} Whether a session is being started and its input got focus. */
  function focusStart() {
    const start = workspace.currentStart();
    const field = page.querySelector(".start-input");
    if (!start || !(field instanceof HTMLTextAreaElement)) return false;
    entered = start.key;
    field.focus();
    return true;
  }

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
      case "retry": return void (failure && actions.createSession(failure.projectId, failure.cliType, failure.draft));
      case "dismiss": return workspace.dismiss();
      case "other-agent":
        workspace.dismiss();
        return newSession(failure?.projectId);
    }
  });

  /**
   * The page to show; `null` if a session is shown.
   * @param {Need[]} needs
   * @param {Need[]} finished
   * @param {string | null} current
   * @returns {Node | null}
   */
  function pageOf(needs, finished, current) {
    const start = workspace.currentStart();
    const failure = workspace.failure();
    if (start) return startingPage(store, start);
    if (failure) return failedPage(store, failure);
    if (!store.state.ready || (current !== null && waitsForList())) return null;
    return store.state.projects.length === 0 ? firstRun.root : noSessionPage(store, needs, finished);
  }

  return { update: draw, focusStart };

  /** @param {Need[]} needs @param {Need[]} finished */
  function draw(needs, finished) {
    const current = workspace.current();
    const known = current !== null && store.state.sessions.has(current);
    show(known ? current : null);
    const wanted = known ? null : pageOf(needs, finished, current);
    const fresh = wanted === firstRun.root && !firstRun.root.isConnected;
    if (wanted === firstRun.root) firstRun.update(store.state.agents);
    redraw(page, wanted ? [wanted] : []);
    page.hidden = known;
    const start = workspace.currentStart();
    const field = page.querySelector(".start-input");
    // A fresh page starts with the text already typed for its session.
    if (start && field instanceof HTMLTextAreaElement && field.value !== workspace.draft(start.key)) {
      field.value = workspace.draft(start.key);
    }
    if (start && entered !== start.key && !isOpen()) focusStart();
    if (fresh) firstRun.offer();
    if (fresh && (document.activeElement === document.body || document.activeElement === null)) firstRun.focus();
  }

  /** The session list of a project has not arrived yet. */
  function waitsForList() {
    return store.state.projects.some(({ id }) => !store.state.listed.has(id));
  }
}
