// plan.js: the agent's plan and the files it changed: a rail beside the conversation, or a strip above the input.
import { closest, h, reconcile, setAttribute, setText } from "../shared/dom.js";
import { glyph, icon } from "../shared/icons.js";
import { projectPath } from "../shared/paths.js";
import { kindOf, stateOf } from "./tool-labels.js";

/** @typedef {import("./session.js").Session} Session */
/** @typedef {{ path: string, added: number, removed: number, itemId: string }} Change */

/**
 * @param {{ rail: HTMLElement, strip: HTMLElement }} roots
 * @param {{ session: Session, reveal: (itemId: string) => void }} deps
 */
export function mountPlan({ rail, strip }, { session, reveal }) {
  let drawn = "";
  let stripOpen = false;
  /** @type {Change[]} */
  let changes = [];
  let counted = -1;

  function current() {
    if (counted !== session.state.edits) changes = changesOf(session);
    counted = session.state.edits;
    return changes;
  }

  rail.addEventListener("click", (event) => {
    const change = closest(event, "[data-item]");
    if (change?.dataset.item) reveal(change.dataset.item);
  });
  strip.addEventListener("click", (event) => {
    if (!closest(event, ".strip-head")) return;
    stripOpen = !stripOpen;
    drawn = "";
    draw(true, false);
  });

  /** @param {boolean} narrow @param {boolean} wanted The user has not hidden the rail. */
  function draw(narrow, wanted) {
    const plan = session.state.facts.plan ?? [];
    const place = session.state.context?.project?.path ?? "";
    changes = current();
    rail.hidden = narrow || !wanted || (plan.length === 0 && changes.length === 0);
    strip.hidden = !narrow || plan.length === 0;
    const now = JSON.stringify([plan, changes, narrow, wanted, stripOpen]);
    if (now === drawn) return;
    drawn = now;
    const done = plan.filter(({ status }) => status === "completed").length;
    if (!rail.hidden) {
      reconcile(rail, [
        plan.length ? planPart(plan, done) : null,
        changes.length ? changesPart(changes, place, session.state.context?.home ?? "") : null,
      ].filter((part) => part !== null));
    }
    if (!strip.hidden) reconcile(strip, [stripHead(plan, done, stripOpen), ...(stripOpen ? [planList(plan)] : [])]);
  }

  return { draw, offers: () => (session.state.facts.plan ?? []).length > 0 || current().length > 0 };
}

/** @param {import("../shared/protocol.js").PlanEntry[]} plan @param {number} done */
function planPart(plan, done) {
  const bar = h("div", {
    class: "plan-bar",
    role: "progressbar",
    "aria-label": "Plan",
    "aria-valuemin": 0,
    "aria-valuemax": plan.length,
    "aria-valuenow": done,
  }, h("span"));
  bar.style.setProperty("--done", String(done / plan.length));
  const count = h("span", { class: "rail-count tabular" }, `${done} of ${plan.length}`);
  return h("section", {}, h("h2", {}, icon("list"), h("span", {}, "Plan"), count), bar, planList(plan));
}

/** @param {import("../shared/protocol.js").PlanEntry[]} plan */
function planList(plan) {
  return h("ol", { class: "plan-list" }, ...plan.map(({ content, status }) => h("li", { "data-status": status },
    status === "in_progress"
      ? glyph("working", { label: "Current" })
      : icon(status === "completed" ? "circle-check" : "circle"),
    h("span", { dir: "auto" }, content),
    status === "completed" ? h("span", { class: "visually-hidden" }, "done") : null)));
}

/** @param {import("../shared/protocol.js").PlanEntry[]} plan @param {number} done @param {boolean} open */
function stripHead(plan, done, open) {
  const current = plan.find(({ status }) => status === "in_progress")
    ?? plan.find(({ status }) => status === "pending");
  const head = h("button", { class: "strip-head", type: "button", "aria-expanded": String(open) },
    icon("list"),
    h("b", {}, "Plan"),
    h("span", { class: "tabular strip-count" }, `${done} of ${plan.length}`),
    h("span", { class: "truncate strip-now", dir: "auto" }),
    icon(open ? "chevron-down" : "chevron-up"));
  setText(/** @type {Element} */ (head.querySelector(".strip-now")), current?.content ?? "");
  setAttribute(head, "title", current?.content);
  return head;
}

/** @param {Change[]} changes @param {string} root @param {string} home */
function changesPart(changes, root, home) {
  const sum = (/** @type {"added" | "removed"} */ key) => changes.reduce((total, change) => total + change[key], 0);
  return h("section", {}, h("h2", {}, icon("pencil"), h("span", {}, "Changes"), counts(sum("added"), sum("removed"))),
    h("ul", { class: "change-list" },
      ...changes.map((change) => h("li", {},
        h("button", { type: "button", "data-item": change.itemId, title: change.path },
          h("span", { class: "mono truncate" }, projectPath(change.path, root, home)),
          counts(change.added, change.removed))))));
}

/** @param {number} added @param {number} removed */
const counts = (added, removed) => h("span", { class: "rail-count mono" },
  added ? h("span", { class: "tool-added" }, `+${added}`) : null,
  removed ? h("span", { class: "tool-removed" }, `−${removed}`) : null);

/** The changed files, summed over all edits. @param {Session} session @returns {Change[]} */
export function changesOf({ state }) {
  /** @type {Map<string, Change>} */
  const found = new Map();
  for (const item of state.items.values()) {
    if (item.type !== "tool_call" || kindOf(item) !== "edit" || stateOf(item) !== "done") continue;
    for (const section of item.sections ?? []) {
      const path = section.path;
      if (section.kind !== "diff" || !path) continue;
      const before = found.get(path);
      found.set(path, {
        path,
        added: (before?.added ?? 0) + (section.added ?? 0),
        removed: (before?.removed ?? 0) + (section.removed ?? 0),
        itemId: item.itemId,
      });
    }
  }
  return [...found.values()];
}
