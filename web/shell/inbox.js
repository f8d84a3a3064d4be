// inbox.js: the "Needs you" list on top of the sidebar.
import { NAMES } from "../shared/attention.js";
import { closest, h, reconcile, setAttribute, setText } from "../shared/dom.js";
import { glyph, setGlyph } from "../shared/icons.js";
import { mod } from "../shared/keys.js";
import { relativeTime } from "../shared/time.js";
import { reasonOf } from "./needs-you.js";

/** @typedef {import("./needs-you.js").Need} Need */
/** @typedef {import("./store.js").Store} Store */

/** Rows before "Show n more". */
const ROWS_MAX = 5;

/**
 * @param {HTMLElement} root
 * @param {{ store: Store, activeSession: () => string | null, open: (sessionId: string) => void, reconnect: (cliType: string) => void }} deps
 */
export function mountInbox(root, { store, activeSession, open, reconnect }) {
  /** @type {Map<string, HTMLElement>} */
  const rows = new Map();
  let all = false;
  const badge = h("span", { class: "count-badge" });
  const list = h("div", { class: "inbox-list" });
  const more = h("button", { class: "inbox-more", type: "button" });
  root.append(
    h("div", { class: "section-title" }, h("h2", { id: "inbox-title" }, "Needs you"), badge, h("kbd", { class: "kbd", title: "Go to the next one" }, mod("J"))),
    list, more);

  root.addEventListener("click", (event) => {
    if (closest(event, ".inbox-more")) {
      all = true;
      more.hidden = true;
      return store.announce();
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
    const [sign, title, time, reason] = [...row.children];
    const [why, dot, place] = [...(reason?.children ?? [])];
    const attention = need.kind === "agent" ? "disconnected" : need.session.attention;
    const name = need.kind === "agent" ? `${need.agent.name} disconnected` : need.session.title;
    const words = need.kind === "agent" ? lostWords(need.sessions.length) : reasonOf(need.session);
    const project = need.kind === "agent" ? "Reconnect" : (store.project(need.session.projectId)?.name ?? "");
    setAttribute(row, "data-attention", attention);
    setAttribute(row, "aria-current", need.kind === "session" && need.session.id === activeSession() ? "true" : null);
    if (sign instanceof SVGElement) setGlyph(sign, attention, NAMES[attention]);
    if (title) setText(title, name);
    if (title) setAttribute(title, "title", name);
    if (time) setText(time, relativeTime(need.since, Date.now()));
    if (why) setText(why, words);
    if (dot) setAttribute(dot, "hidden", project === "");
    if (place) setText(place, project);
    return row;
  }

  /** @param {Need} need */
  function create(need) {
    const agent = need.kind === "agent" ? need.agent.cliType : null;
    return h("button", { class: "inbox-row", type: "button", "data-session": need.kind === "session" ? need.session.id : null, "data-cli-type": agent },
      glyph("idle", { size: 16 }),
      h("span", { class: "inbox-title truncate", dir: "auto" }),
      h("span", { class: "inbox-time" }),
      h("span", { class: "inbox-reason" },
        h("span", { class: "inbox-why truncate" }), h("span", { "aria-hidden": "true" }, "·"),
        h("span", { class: agent ? "inbox-project link-button" : "inbox-project truncate" })));
  }

  return {
    /** @param {Need[]} needs */
    update(needs) {
      root.hidden = needs.length === 0;
      setText(badge, String(needs.length));
      setAttribute(badge, "aria-label", `${needs.length} waiting`);
      const shown = all ? needs : needs.slice(0, ROWS_MAX);
      if (needs.length <= ROWS_MAX) all = false;
      more.hidden = shown.length === needs.length;
      setText(more, `Show ${needs.length - shown.length} more`);
      reconcile(list, shown.map(draw));
      const keys = new Set(shown.map(({ key }) => key));
      for (const key of rows.keys()) if (!keys.has(key)) rows.delete(key);
    },
  };
}

/** @param {number} count */
const lostWords = (count) => (count === 1 ? "1 session interrupted" : `${count} sessions interrupted`);
