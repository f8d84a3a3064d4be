// status-line.js: the line above the input: what is going on, or how the last turn ended.
import { closest, h, reconcile, setAttribute, setText } from "../shared/dom.js";
import { glyph, icon, setGlyph } from "../shared/icons.js";
import { money } from "../shared/money.js";
import { compact, elapsed } from "../shared/time.js";
import { agentName, connectionOf } from "./connection.js";
import { kindOf } from "./tool-labels.js";

/** @typedef {import("./session.js").Session} Session */
/** @typedef {import("../shared/protocol.js").Attention} Attention */
/**
 * @typedef {{ attention: Attention, text: string, meta: string, actions: ("cancel" | "restart" | "retry")[] }} Status
 */

const LABELS = { cancel: "Cancel", restart: "Restart", retry: "Retry" };

/**
 * @param {HTMLElement} root
 * @param {{
 *   session: Session,
 *   isAway: () => boolean,
 *   toEnd: () => void,
 *   act: (what: "cancel" | "restart" | "retry") => void,
 *   note: () => string,
 * }} deps
 */
export function mountStatusLine(root, { session, isAway, toEnd, act, note }) {
  const sign = glyph("idle");
  const text = h("span", { class: "status-text" });
  const meta = h("span", { class: "status-meta tabular truncate" });
  const actions = h("span", { class: "status-actions" });
  const down = h("button", { class: "to-bottom", type: "button", hidden: true },
    icon("arrow-down"),
    "Scroll to bottom");
  root.append(sign, text, meta, actions, down);
  down.addEventListener("click", toEnd);
  actions.addEventListener("click", (event) => {
    const what = closest(event, "[data-act]")?.dataset.act;
    if (what === "cancel" || what === "restart" || what === "retry") act(what);
  });

  return function draw() {
    const now = statusOf(session, Date.now());
    const hint = note();
    setGlyph(sign, now.attention, "");
    setAttribute(sign, "data-gone", now.attention === "idle");
    setText(text, now.text);
    setText(meta, hint ? `${now.meta} · ${hint}` : now.meta);
    if (actions.dataset.now !== now.actions.join()) {
      actions.dataset.now = now.actions.join();
      reconcile(
        actions,
        now.actions.map((what) => h("button", {
          class: "button",
          type: "button",
          "data-kind": "ghost",
          "data-act": what,
        }, what === "retry" ? icon("refresh") : null, LABELS[what])),
      );
    }
    down.hidden = !isAway();
  };
}

/** @param {Session} session @param {number} now @returns {Status} */
export function statusOf(session, now) {
  const { state } = session;
  const { context, facts } = state;
  const running = session.running();
  const quiet = { attention: /** @type {Attention} */ ("idle"), text: "", meta: "", actions: [] };
  if (!context) return quiet;
  const connection = connectionOf(state);
  if (connection === "unknown") return {
    ...quiet,
    attention: "disconnected",
    text: "Liminal Builder is not answering",
    meta: state.turns.some(({ record }) => record?.status === "running") ? "A turn was running" : "",
  };
  if (connection === "disconnected" || connection === "reconnecting") return quiet;
  if (running?.record) {
    if (context.session.attention === "needs_permission") return {
      attention: "needs_permission",
      text: "Waiting for your decision",
      meta: elapsed(now - Date.parse(context.session.since ?? running.record.startedAt ?? "")),
      actions: [],
    };
    if (facts.silentMs) return {
      attention: "working",
      text: `No output for ${Math.round(facts.silentMs / 1000)} s`,
      meta: "",
      actions: ["cancel", "restart"],
    };
    const activity = facts.activity || doing(session);
    return {
      attention: "working",
      text: "Working",
      meta: elapsed(now - Date.parse(running.record.startedAt ?? "")) + (activity ? ` · ${activity}` : ""),
      actions: [],
    };
  }
  if (state.stale && !state.failed) return { ...quiet, meta: "Loading the conversation" };
  if (connection === "starting" || (state.pending !== null && connection === "idle")) {
    return { attention: "starting", text: `Starting ${agentName(context)}`, meta: "", actions: [] };
  }
  if (state.pending !== null) return { ...quiet, meta: "Sending" };
  // A notice between turns belongs to no turn.
  const last = state.turns.findLast((turn) => turn.record);
  const record = last?.record;
  if (!last || !record) return quiet;
  // The reason is shown once, in the conversation.
  if (record.status === "error") return { attention: "error", text: "Turn failed", meta: "", actions: ["retry"] };
  if (record.status === "cancelled") return { ...quiet, meta: "Stopped" };
  if (!record.endedAt || !record.startedAt) return quiet;
  const calls = last.items.filter((id) => state.items.get(id)?.type === "tool_call").length;
  const tokens = record.usage ? record.usage.inputTokens
    + record.usage.outputTokens
    + (record.usage.cacheReadInputTokens ?? 0)
    + (record.usage.cacheCreationInputTokens ?? 0) : 0;
  const parts = [
    `Finished in ${elapsed(Date.parse(record.endedAt) - Date.parse(record.startedAt))}`,
    calls ? `${calls} tool ${calls === 1 ? "call" : "calls"}` : "",
    tokens ? `${compact(tokens)} tokens` : "",
    record.usage?.costUsd ? money(record.usage.costUsd) : "",
  ];
  return { ...quiet, meta: parts.filter(Boolean).join(" · ") };
}

/** What the agent is doing, judging by its newest item. @param {Session} session */
function doing(session) {
  const item = session.lastItem();
  if (!item || item.status === "complete" || item.status === "error") return "";
  if (item.type === "thinking") return "thinking";
  if (item.type === "message") return item.origin === "agent" ? "writing" : "";
  return {
    read: "reading",
    edit: "editing",
    search: "searching",
    execute: "running a command",
    fetch: "fetching",
  }[/** @type {string} */ (kindOf(item))] ?? item.toolName;
}
