// inbox.js: the lists at the top of the sidebar: "Needs you", and below it, less prominent, "Finished".
import { NAMES } from "../shared/attention.js";
import { closest, h, reconcile, setAttribute, setText } from "../shared/dom.js";
import { glyph, setGlyph } from "../shared/icons.js";
import { mod } from "../shared/keys.js";
import { relativeTime } from "../shared/time.js";
import { reasonOf } from "./needs-you.js";

/** @typedef {import("./needs-you.js").Need} Need */
/** @typedef {import("./store.js").Store} Store */
/**
 * @typedef {{
 *   store: Store,
 *   rowLock: import("./row-lock.js").RowLock,
 *   activeSession: () => string | null,
 *   open: (sessionId: string) => void,
 *   reconnect: (cliType: string) => void,
 *   seen: (sessionId: string) => void,
 * }} Deps
 */

/** Rows before "Show n more". */
const ROWS_MAX = 5;

/**
 * @param {{ waiting: HTMLElement, finished: HTMLElement }} roots
 * @param {Deps} deps
 */
export function mountInbox(roots, deps) {
  const badge = h("span", { class: "count-badge" });
  const markRead = h("button", { class: "link-button inbox-read", type: "button" }, "Mark all read");
  const count = h("span", { class: "inbox-count tabular" });
  const heading = h("h2", { id: "inbox-title" }, "Needs you");
  const key = h("kbd", { class: "kbd", title: "Go to the next one" }, mod("J"));
  const waiting = mountList(roots.waiting, deps, heading, badge, key);
  const finished = mountList(roots.finished, deps, h("h2", { id: "finished-title" }, "Finished"), count, markRead);
  /** @type {Need[]} */
  let unread = [];
  /** The user asked to clear the rows, so they need not wait for the pointer to leave. */
  let isClearing = false;
  markRead.addEventListener("click", () => {
    isClearing = true;
    for (const need of unread) if (need.kind === "session") deps.seen(need.session.id);
  });

  return {
    /** @param {Need[]} needs @param {Need[]} done */
    update(needs, done) {
      unread = done;
      setText(badge, String(needs.length));
      setAttribute(badge, "aria-label", `${needs.length} waiting`);
      setText(count, String(done.length));
      waiting(needs);
      finished(done, isClearing);
      isClearing &&= done.length > 0;
    },
  };
}

/**
 * @param {HTMLElement} root
 * @param {Deps} deps
 * @param {...Node} titleNodes
 */
function mountList(root, { store, rowLock, activeSession, open, reconnect }, ...titleNodes) {
  /** @type {Map<string, HTMLElement>} */
  const rows = new Map();
  /** The keys of the shown rows, in order. @type {string[]} */
  let order = [];
  /** @type {Need[]} */
  let known = [];
  let all = false;
  const list = h("div", { class: "inbox-list" });
  const more = h("button", { class: "inbox-more", type: "button" });
  root.append(h("div", { class: "section-title" }, ...titleNodes), list, more);

  root.addEventListener("click", (event) => {
    if (closest(event, ".inbox-more")) {
      all = true;
      return update(known, true);
    }
    const row = closest(event, ".inbox-row");
    if (!row) return;
    if (row.dataset.cliType) reconnect(row.dataset.cliType);
    else open(row.dataset.session ?? "");
  });

  /** @param {Need} need */
  function draw(need) {
    const row = rows.get(need.key) ?? create(need);
    rows.set(need.key, row);
    const [sign, name, time, reason] = [...row.children];
    const [why, dot, place] = [...(reason?.children ?? [])];
    const attention = need.kind === "agent" ? "disconnected" : need.session.attention;
    const title = need.kind === "agent" ? `${need.agent.name} disconnected` : need.session.title;
    const project = need.kind === "agent" ? "Reconnect" : (store.project(need.session.projectId)?.name ?? "");
    setAttribute(row, "data-attention", attention);
    setAttribute(row, "aria-current", need.kind === "session" && need.session.id === activeSession() ? "true" : null);
    if (sign instanceof SVGElement) setGlyph(sign, attention, NAMES[attention]);
    if (name) setText(name, title);
    if (name) setAttribute(name, "title", title);
    if (time) setText(time, relativeTime(need.since, Date.now()));
    if (why) setText(why, need.kind === "agent" ? lostText(need.sessions.length) : reasonOf(need.session));
    if (dot) setAttribute(dot, "hidden", project === "");
    if (place) setText(place, project);
    return row;
  }

  /** @param {Need} need */
  function create(need) {
    const agent = need.kind === "agent" ? need.agent.cliType : null;
    return h("button", {
      class: "inbox-row",
      type: "button",
      "data-session": need.kind === "session" ? need.session.id : null,
      "data-cli-type": agent,
    },
      glyph("idle", { size: 16 }),
      h("span", { class: "inbox-title truncate", dir: "auto" }),
      h("span", { class: "inbox-time" }),
      h("span", { class: "inbox-reason" },
        h("span", { class: "inbox-why truncate" }), h("span", { "aria-hidden": "true" }, "·"),
        h("span", { class: agent ? "inbox-project link-button" : "inbox-project truncate" })));
  }

  /** @param {Need[]} needs @param {boolean} [asked] The user wants these rows now. */
  function update(needs, asked = false) {
    known = needs;
    const byKey = new Map(needs.map((need) => [need.key, need]));
    // While the user may be about to click, no row is added, removed or moved.
    if (rowLock.keepsAll() && !asked) {
      return void order.forEach((key) => byKey.has(key) && draw(/** @type {Need} */ (byKey.get(key))));
    }
    if (needs.length <= ROWS_MAX) all = false;
    const shown = all ? needs : needs.slice(0, ROWS_MAX);
    root.hidden = needs.length === 0;
    more.hidden = shown.length === needs.length;
    setText(more, `Show ${needs.length - shown.length} more`);
    reconcile(list, shown.map(draw));
    order = shown.map(({ key }) => key);
    for (const key of rows.keys()) if (!order.includes(key)) rows.delete(key);
  }
  return update;
}

/** @param {number} count */
const lostText = (count) => (count === 1 ? "1 session interrupted" : `${count} sessions interrupted`);
