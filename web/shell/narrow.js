// narrow.js: what replaces the sidebar in narrow windows: a rail at the side, or a top bar on a phone.
import { isUnseen, mostUrgent, NAMES } from "../shared/attention.js";
import { listMark } from "../shared/continuity.js";
import { h } from "../shared/dom.js";
import { glyph, icon, mark } from "../shared/icons.js";
import { agentState } from "./footer.js";
import { redraw } from "./redraw.js";

/** @typedef {import("./needs-you.js").Need} Need */
/** @typedef {import("../shared/protocol.js").Attention} Attention */

/** The widths of narrow.css. */
const narrow = matchMedia("(max-width: 1023px)");
const phone = matchMedia("(max-width: 719px)");

/**
 * @param {{ rail: HTMLElement, topBar: HTMLElement }} roots
 * @param {{ store: import("./store.js").Store, current: () => string | null, openCount: () => number }} deps
 */
export function mountNarrow({ rail, topBar }, { store, current, openCount }) {
  return {
    /** @param {Need[]} needs @param {Need[]} finished */
    update(needs, finished) {
      if (phone.matches) drawTopBar(needs);
      else if (narrow.matches) drawRail([...needs, ...finished]);
    },
  };

  /** @param {import("../shared/protocol.js").SessionSummary} session */
  function stateOf(session) {
    const agent = store.agent(session.cliType);
    if (!store.state.online) return "unknown";
    return store.statusOf(session)?.status ?? (agent ? agentState(agent, store) : "idle");
  }

  /** @param {Need[]} needs */
  function drawRail(needs) {
    const project = store.state.sessions.get(current() ?? "")?.projectId;
    redraw(rail, [
      command("menu", "sidebar", "Show projects and sessions"),
      ...counts(needs).map(([attention, count]) => h("button", {
        class: "rail-count",
        type: "button",
        "data-key": attention,
        "data-command": "next-of",
        "data-attention": attention,
        "aria-label": `${NAMES[attention]}: ${count}`,
      },
        glyph(attention), h("span", {}, String(count)))),
      h("hr"),
      ...store.state.projects.map((own) => {
        const attention = mostUrgent(store.sessionsOf(own.id).map((session) => session.attention));
        return h("button", {
          class: "rail-project",
          type: "button",
          "data-key": own.id,
          "data-command": "sidebar",
          "aria-current": own.id === project ? "true" : null,
          title: own.name,
          "aria-label": `${own.name}${attention === "idle" ? "" : `, ${NAMES[attention]}`}`,
        },
          h("span", { class: "initials", "data-initials": initials(own.name) }), glyph(attention, { size: 12 }));
      }),
      command("plus", "add-project", "Add project"),
      h("span", { class: "rail-space" }),
      command("search", "palette", "Search"),
      command("gear", "settings", "Settings"),
    ]);
  }

  /** @param {Need[]} needs */
  function drawTopBar(needs) {
    const session = store.state.sessions.get(current() ?? "");
    const agent = store.agent(session?.cliType);
    const continuity = session && listMark(session);
    const menu = command(
      "menu",
      "sidebar",
      needs.length ? `Projects and sessions, ${needs.length} waiting` : "Projects and sessions",
    );
    if (needs.length) menu.append(h("span", { class: "count-badge" }, String(needs.length)));
    redraw(topBar, [
      menu,
      h("div", { class: "top-title" },
        h("strong", { class: "truncate", dir: "auto" }, session?.title ?? "Liminal Builder"),
        session ? h("span", { class: "top-meta truncate" },
          mark(session.cliType),
          `${agent?.name ?? session.cliType} · ${store.project(session.projectId)?.name ?? ""}`,
          h("span", { class: "dot", "data-state": stateOf(session) }),
          continuity?.icon
            ? h("span", { class: "top-continuity", role: "img", "aria-label": continuity.label }, icon(continuity.icon))
            : null) : null),
      ...(openCount() > 0 ? [command("layers", "open-sessions", "Open sessions")] : []),
    ]);
  }
}

/** @param {Need[]} needs @returns {[Attention, number][]} */
function counts(needs) {
  /** @type {Map<Attention, number>} */
  const found = new Map();
  for (const need of needs) if (need.kind === "session" && isUnseen(need.session.attention)) {
    found.set(need.session.attention, (found.get(need.session.attention) ?? 0) + 1);
  }
  return [...found];
}

/** @param {string} picture @param {string} name @param {string} label */
const command = (picture, name, label) => h("button", {
  class: "icon-button",
  type: "button",
  "data-key": name,
  "data-command": name,
  "aria-label": label,
  title: label,
}, icon(picture));

/** Two letters for a name: "aa" for atlas-api, "fe" for ferry. @param {string} name */
export function initials(name) {
  const [first = "", second] = name.split(/[^\p{L}\p{N}]+/u).filter(Boolean);
  return (second
    ? [...first].slice(0, 1).join("") + [...second].slice(0, 1).join("")
    : [...first].slice(0, 2).join("")).toLowerCase();
}
