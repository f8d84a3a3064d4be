// workspace.js: what is open and what is in front: tabs, sessions being made, and failures to make one. Each window has tabs
// of its own; one that is new begins with those of all.
import { load, own, save } from "../shared/storage.js";
import { closeTab, fromStored, mergeTabs, moveTab, openTab, renameTab, restoreTabs, toStored } from "./tabs-model.js";

/** @typedef {import("./pages.js").Start} Start */
/** @typedef {import("./pages.js").Failure} Failure */
/** @typedef {ReturnType<typeof createWorkspace>} Workspace */

/** @param {() => void} changed */
export function createWorkspace(changed) {
  let tabs = fromStored(own.load("tabs") ?? load("tabs"));
  /** @type {Start[]} */
  let starts = [];
  /** A start or a failure that is in front of the active tab. @type {{ start: string } | { failure: Failure } | null} */
  let front = null;

  /** @param {import("./tabs-model.js").Tabs} next */
  function set(next) {
    save("tabs", toStored(mergeTabs(fromStored(load("tabs")), tabs, next)));
    own.save("tabs", toStored(next));
    tabs = next;
    changed();
  }

  return {
    order: () => tabs.order,
    starts: () => starts,
    /** The session in view. */
    current: () => (front === null ? tabs.active : null),
    /** @returns {Start | undefined} */
    currentStart: () => (front && "start" in front ? starts.find(({ key }) => front && "start" in front && key === front.start) : undefined),
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
    /** Moves the tab in front by one place. @param {number} step */
    moveCurrent(step) {
      if (tabs.active !== null) set(moveTab(tabs, tabs.active, tabs.order.indexOf(tabs.active) + step));
    },
    /** @param {string} from @param {string} to */
    rename(from, to) {
      set(renameTab(tabs, from, to));
    },
    /** Forgets tabs whose session is gone. @param {(id: string) => boolean} exists */
    keepOnly(exists) {
      let next = tabs;
      for (const id of tabs.order) if (!exists(id)) next = closeTab(next, id);
      if (next !== tabs) set(next);
    },
    /** How the tabs are now, for `restore`. */
    snapshot: () => tabs,
    /** @param {import("./tabs-model.js").Tabs} before @param {(id: string) => boolean} wanted */
    restore(before, wanted) {
      set(restoreTabs(tabs, before, wanted));
    },
    /** @param {Start} start */
    begin(start) {
      starts = [...starts, start];
      front = { start: start.key };
      changed();
    },
    /** @param {string} key */
    showStart(key) {
      front = { start: key };
      changed();
    },
    /** @param {string} key @returns {boolean} It was still there. */
    end(key) {
      const there = starts.some((start) => start.key === key);
      starts = starts.filter((start) => start.key !== key);
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
    /** An agent got connected: starts that waited for it go on. @param {string} cliType */
    connected(cliType) {
      starts = starts.map((start) => (start.cliType === cliType && start.connectedAt === null ? { ...start, connectedAt: Date.now() } : start));
      changed();
    },
  };
}
