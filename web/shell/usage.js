// usage.js: the dialog that shows tokens and cost by day, project or session, as the agents reported them.
import { h, reconcile } from "../shared/dom.js";
import { money } from "../shared/money.js";
import { compact } from "../shared/time.js";
import { hint, openDialog } from "./dialog.js";
import { sumUsage } from "./usage-sums.js";

/** @typedef {import("./usage-sums.js").UsageRow} UsageRow */
/** @typedef {import("./usage-sums.js").Grouping} Grouping */

/** @type {[Grouping, string][]} */
const GROUPINGS = [["day", "Day"], ["project", "Project"], ["session", "Session"]];
/** @type {[string, string][]} */
const PERIODS = [["1", "Today"], ["7", "7 days"], ["30", "30 days"], ["", "All time"]];
const NOT_RUNNING = "Liminal Builder is not running.";

/** @param {{ open: (sessionId: string) => void, isOpenable: (sessionId: string) => boolean }} deps */
export function openUsage({ open, isOpenable }) {
  /** @type {Grouping} */
  let grouping = "day";
  let period = "30";
  /** @type {UsageRow[]} */
  let rows = [];
  const heading = h("th", { scope: "col" });
  const body = h("tbody", {});
  const foot = h("tfoot", {});
  const table = h("table", { class: "usage-table" },
    h("thead", {}, h("tr", {}, heading, number("th", "Turns"), number("th", "Tokens"), number("th", "Cost"))),
    body,
    foot);
  const note = h("p", { class: "setting-note", role: "status" });
  const form = h("form", { method: "dialog" },
    h("div", { class: "dialog-body" },
      h("h2", {}, "Usage"),
      h("div", { class: "usage-choices" },
        choices("usage-grouping", "Group by", GROUPINGS, grouping),
        choices("usage-period", "Period", PERIODS, period)),
      h("div", { class: "usage-scroll", tabindex: "0", role: "group", "aria-label": "Usage" }, table), note),
    h("div", { class: "dialog-foot" }, h("span", {}, "Tokens include cache reads."),
      h("button", { class: "button push", type: "submit", "data-kind": "ghost" }, hint(["Esc"], "close"))));
  const dialog = openDialog({ label: "Usage", className: "settings usage" }, form);

  form.addEventListener("change", ({ target }) => {
    if (!(target instanceof HTMLInputElement)) return;
    if (target.name === "usage-grouping") {
      grouping = /** @type {Grouping} */ (target.value);
      draw();
    } else {
      period = target.value;
      void load();
    }
  });

  async function load() {
    const requested = period;
    const query = requested ? `?days=${requested}` : "";
    const response = await fetch(`/api/usage${query}`, { cache: "no-store" }).catch(() => null);
    const answer = await response?.json().catch(() => null);
    // The user has selected another period in the meantime.
    if (requested !== period) return;
    rows = response?.ok ? answer.rows : [];
    draw();
    if (!response?.ok) note.textContent = answer?.error?.message ?? NOT_RUNNING;
  }

  function draw() {
    const { sums, total } = sumUsage(rows, grouping);
    heading.textContent = GROUPINGS.find(([value]) => value === grouping)?.[1] ?? "";
    const isLink = (/** @type {string} */ key) => grouping === "session" && isOpenable(key);
    reconcile(body, sums.map((sum) => h("tr", {},
      h("th", { scope: "row", title: sum.name }, isLink(sum.key)
        ? h("button", { class: "usage-link", type: "button", "data-session": sum.key }, sum.name) : sum.name),
      ...figures(sum))));
    reconcile(foot, sums.length > 1 ? [h("tr", {}, h("th", { scope: "row" }, "Total"), ...figures(total))] : []);
    table.hidden = sums.length === 0;
    note.textContent = sums.length ? "" : "No agent reported any usage in this period.";
  }

  body.addEventListener("click", ({ target }) => {
    const session = target instanceof HTMLElement ? target.dataset.session : undefined;
    if (!session) return;
    dialog.close();
    open(session);
  });

  void load();
  return dialog;
}

/** @param {import("./usage-sums.js").UsageSum} sum */
function figures({ turns, tokens, costUsd }) {
  return [
    number("td", String(turns)),
    h("td", { class: "usage-number", title: tokens.toLocaleString() }, compact(tokens)),
    number("td", costUsd === null ? "–" : money(costUsd)),
  ];
}

/** @param {"td" | "th"} tag @param {string} text */
function number(tag, text) {
  return h(tag, { class: "usage-number", ...(tag === "th" ? { scope: "col" } : {}) }, text);
}

/** @param {string} name @param {string} label @param {[string, string][]} options @param {string} selected */
function choices(name, label, options, selected) {
  return h("fieldset", { class: "usage-choice" }, h("legend", {}, label), ...options.map(([value, text]) =>
    h("label", { class: "setting-choice" },
      h("input", { type: "radio", name, value, checked: value === selected }),
      text)));
}
