// workspace.js: what is open and what is shown: tabs, sessions being created, and failures to create one. Each window
// has its own tabs; a new window starts with the tabs of all windows.
import { load, own, save } from "../shared/storage.js";
import { closeTab, fromStored, mergeTabs, moveTab, openTab, restoreTabs, toStored } from "./tabs-model.js";

/** @typedef {import("./pages.js").Start} Start */
/** @typedef {import("./pages.js").Failure} Failure */
/** @typedef {ReturnType<typeof createWorkspace>} Workspace */

/** How many recently used sessions are remembered. */
const USED_MAX = 50;

/** @param {() => void} changed */
export function createWorkspace(changed) {
  let tabs = fromStored(own.load("tabs") ?? load("tabs"));
  /** @type {Start[]} */
  let starts = [];
  /** Text typed while a session starts, by the start's key. @type {Map<string, string>} */
  const typed = new Map();
  /**
   * A start or a failure that is shown instead of the active tab.
   * @type {{ start: string } | { failure: Failure } | null}
   */
  let front = null;

  /** Recently used sessions, newest first. */
  let used = readUsed(tabs.active);

  /** @param {import("./tabs-model.js").Tabs} next */
  function set(next) {
    if (next.active !== null && next.active !== used[0]) {
      used = [next.active, ...used.filter((id) => id !== next.active)].slice(0, USED_MAX);
      own.save("used", used);
    }
    save("tabs", toStored(mergeTabs(fromStored(load("tabs")), tabs, next)));
    own.save("tabs", toStored(next));
    tabs = next;
    changed();
  }

  return {
    order: () => tabs.order,
    /** The session used before the current one. @param {(id: string) => boolean} exists False for archived sessions. */
    previous: (exists) => used.find((id) => (front !== null || id !== tabs.active) && exists(id)) ?? null,
    starts: () => starts,
    /** The session in view. */
    current: () => (front === null ? tabs.active : null),
    /** @returns {Start | undefined} */
    currentStart: () => (front && "start" in front
      ? starts.find(({ key }) => front && "start" in front && key === front.start)
      : undefined),
    /** @returns {Failure | undefined} */
    failure: () => (front && "failure" in front ? front.failure : undefined),
    /** @param {string} id */
    open(id) {
      front = null;
      set(openTab(tabs, id));
    },
    /** @param {string} id */
    close(id) {
      set(closeTab(tabs, id));
    },
    /** @param {string} id @param {number} to */
    move(id, to) {
      set(moveTab(tabs, id, to));
    },
    /** Moves the active tab by one place. @param {number} step */
    moveCurrent(step) {
      if (tabs.active !== null) set(moveTab(tabs, tabs.active, tabs.order.indexOf(tabs.active) + step));
    },
    /** Closes all other tabs. @param {(id: string) => boolean} wanted @returns {number} How many were closed. */
    keepOnly(wanted) {
      let next = tabs;
      for (const id of tabs.order) if (!wanted(id)) next = closeTab(next, id);
      const closed = tabs.order.length - next.order.length;
      if (next !== tabs) set(next);
      return closed;
    },
    /** The current tabs, for `restore`. */
    snapshot: () => tabs,
    /** @param {import("./tabs-model.js").Tabs} before @param {(id: string) => boolean} wanted */
    restore(before, wanted) {
      set(restoreTabs(tabs, before, wanted));
    },
    /** Text typed for a session that is starting. @param {string} key */
    draft: (key) => typed.get(key) ?? "",
    /** @param {string} key @param {string} text */
    setDraft: (key, text) => void typed.set(key, text),
    /** @param {Start} start @param {string} [draft] Text already typed for it. */
    begin(start, draft = "") {
      if (draft) typed.set(start.key, draft);
      starts = [...starts, start];
      front = { start: start.key };
      changed();
    },
    /** @param {string} key */
    showStart(key) {
      front = { start: key };
      changed();
    },
    /** @param {string} key @returns {boolean} Whether it still existed. */
    end(key) {
      const there = starts.some((start) => start.key === key);
      starts = starts.filter((start) => start.key !== key);
      typed.delete(key);
      if (front && "start" in front && front.start === key) front = null;
      changed();
      return there;
    },
    /** @param {Failure} failure */
    fail(failure) {
      front = { failure };
      changed();
    },
    dismiss() {
      front = null;
      changed();
    },
    /** An agent connected: starts that waited for it continue. @param {string} cliType */
    connected(cliType) {
      starts = starts.map((start) =>
        (start.cliType === cliType && start.connectedAt === null ? { ...start, connectedAt: Date.now() } : start));
      changed();
    },
  };
}

/** @param {string | null} active @returns {string[]} */
function readUsed(active) {
  const stored = own.load("used");
  const used = Array.isArray(stored) ? stored.filter((id) => typeof id === "string") : [];
  return active === null || used[0] === active ? used : [active, ...used.filter((id) => id !== active)];
}
