// pages.js: what the sheet shows when no session is active. Each call builds the whole page; the sheet applies the
// differences. `data-key` names the page.
import { NAMES } from "../shared/attention.js";
import { h } from "../shared/dom.js";
import { glyph, icon, mark } from "../shared/icons.js";
import { mod, nav } from "../shared/keys.js";
import { shortPath } from "../shared/paths.js";
import { duration, relativeTime } from "../shared/time.js";
import { commandLine } from "./footer.js";
import { countWorking, reasonOf } from "./needs-you.js";

/** @typedef {import("./needs-you.js").Need} Need */
/** @typedef {import("./store.js").Store} Store */
/**
 * @typedef {{
 *   key: string,
 *   projectId: string,
 *   cliType: string,
 *   startedAt: number,
 *   connectedAt: number | null,
 * }} Start A session being created.
 */
/**
 * @typedef {{
 *   projectId: string,
 *   cliType: string,
 *   error: { code: string, message: string, detail?: string, installHint?: string },
 *   draft: string,
 * }} Failure `draft`: text typed while it started.
 */

/**
 * @param {Store} store
 * @param {Need[]} needs
 * @param {Need[]} finished
 */
export function noSessionPage(store, needs, finished) {
  const working = countWorking(store);
  const rows = [...needs, ...finished].slice(0, 5);
  return h("div", { class: "centered", "data-key": "none" }, h("div", { class: "no-session" },
    h("h2", {}, "No session open"),
    h("p", { class: "lead" }, summary(needs.length, finished.length, working)),
    rows.length ? h("div", { class: "card-list" }, ...rows.map((need) => needRow(need, store))) : null,
    h("div", { class: "button-row" },
      rows.length ? h("button", { class: "button", type: "button", "data-kind": "primary", "data-command": "next" },
        "Review next",
        h("kbd", { class: "kbd" }, mod("J"))) : null,
      h("button", {
        class: "button",
        type: "button",
        "data-key": "new",
        "data-kind": rows.length ? "secondary" : "primary",
        "data-command": "new-session",
      }, icon("plus"), "New session", h("kbd", { class: "kbd" }, nav("N"))),
      h("button", {
        class: "button",
        type: "button",
        "data-key": "search",
        "data-kind": "ghost",
        "data-command": "palette",
      }, icon("search"), "Search", h("kbd", { class: "kbd" }, mod("K"))))));
}

const NUMBERS = ["No", "One", "Two", "Three", "Four", "Five", "Six", "Seven", "Eight", "Nine"];

/** @param {number} waiting @param {number} finished @param {number} working */
function summary(waiting, finished, working) {
  const number = (/** @type {number} */ n) => NUMBERS[n] ?? String(n);
  const more = working ? ` ${number(working)} more ${working === 1 ? "is" : "are"} working.` : "";
  if (waiting) return `${count(number(waiting), waiting)} waiting for you.${more}`;
  if (finished) return `${count(number(finished), finished)} finished and unread.${more}`;
  if (working) return `${count(number(working), working)} working. Nothing needs you.`;
  return "Open one from the sidebar, or start a new one.";
}

/** @param {string} number @param {number} n */
const count = (number, n) => `${number} ${n === 1 ? "session is" : "sessions are"}`;

/** @param {Need} need @param {Store} store */
function needRow(need, store) {
  const agent = need.kind === "agent";
  const attention = agent ? "disconnected" : need.session.attention;
  return h("button", {
    class: "need-row",
    type: "button",
    "data-key": need.key,
    "data-attention": attention,
    "data-open": agent ? null : need.session.id,
    "data-reconnect": agent ? need.agent.cliType : null,
  },
    glyph(attention, { size: 16, label: NAMES[attention] }),
    h("span", { class: "need-title truncate", dir: "auto" },
      agent ? `${need.agent.name} disconnected` : need.session.title),
    h("span", { class: "need-why truncate" }, agent ? "Reconnect" : reasonOf(need.session)),
    h("span", { class: "need-project truncate" }, agent ? "" : (store.project(need.session.projectId)?.name ?? "")),
    mark(agent ? need.agent.cliType : need.session.cliType),
    h("span", { class: "need-time" }, relativeTime(need.since, Date.now())));
}

/**
 * @param {Store} store
 * @param {Start} start
 */
export function startingPage(store, { key, projectId, cliType, startedAt, connectedAt }) {
  const name = store.agent(cliType)?.name ?? cliType;
  const now = Date.now();
  const path = shortPath(store.project(projectId)?.path ?? "", store.state.home);
  return h("div", { class: "start-page", "data-key": key }, h("div", { class: "centered", role: "status" },
    h("span", { class: "state-tile" }, mark(cliType)),
    h("h2", { class: "state-title" }, `Starting ${name}`),
    h("p", { class: "state-text" }, "New session in ", h("code", {}, path)),
    h("ol", { class: "steps" },
      step("Connecting to the agent", connectedAt === null ? "now" : "done", (connectedAt ?? now) - startedAt),
      connectedAt === null
        ? step("Creating the session", "later", null)
        : step("Creating the session", "now", now - connectedAt)),
    h("button", { class: "button", type: "button", "data-kind": "ghost", "data-do": "cancel-start" },
      "Cancel",
      h("kbd", { class: "kbd" }, "Esc"))),
    h("div", { class: "start-dock" },
      h("textarea", {
        class: "start-input",
        dir: "auto",
        rows: 2,
        "aria-label": `Message ${name}`,
        "aria-describedby": "start-note",
        placeholder: `Message ${name}…`,
      }),
      h("p", { class: "start-note", id: "start-note" },
        "You can start typing. Nothing is sent until the session is ready.")));
}

/** @param {string} text @param {"done" | "now" | "later"} state @param {number | null} ms */
function step(text, state, ms) {
  const sign = state === "now" ? glyph("working") : icon(state === "done" ? "circle-check" : "circle");
  return h("li", { "data-step": state },
    sign,
    h("span", {}, text),
    ms === null ? null : h("span", { class: "step-time", "aria-live": "off" }, duration(ms)));
}

/**
 * @param {Store} store
 * @param {Failure} failure
 */
export function failedPage(store, { cliType, error }) {
  const agent = store.agent(cliType);
  const missing = error.code === "AGENT_NOT_INSTALLED";
  const install = missing ? (error.installHint ?? agent?.installHint) : undefined;
  const others = store.state.agents.some((other) => other.cliType !== cliType && other.installed);
  return h("div", { class: "centered", "data-key": "failed" },
    h("span", { class: "state-tile", "data-kind": "error" }, icon("unplug")),
    h("div", { role: "alert" }, h("h2", { class: "state-title" }, error.message)),
    missing && agent?.program
      ? h("p", { class: "state-text" },
        "The program ",
        h("code", {}, agent.program),
        " was not found on your PATH. No session was created.")
      : h("p", { class: "state-text" }, "No session was created."),
    install ? h("div", { class: "failed-command" }, commandLine(install, true)) : null,
    error.detail && !missing ? h("pre", { class: "failed-detail", tabindex: 0 }, error.detail) : null,
    h("div", { class: "button-row" },
      h("button", { class: "button", type: "button", "data-kind": "primary", "data-do": "retry" },
        icon("refresh"),
        "Retry"),
      others ? h("button", {
        class: "button",
        type: "button",
        "data-key": "other",
        "data-kind": "secondary",
        "data-do": "other-agent",
      }, "Use another agent") : null,
      h("button", {
        class: "button",
        type: "button",
        "data-key": "dismiss",
        "data-kind": "ghost",
        "data-do": "dismiss",
      }, "Dismiss")));
}
