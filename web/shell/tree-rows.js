// tree-rows.js: one project's header and one session's row, created once and then updated.
import { NAMES } from "../shared/attention.js";
import { listMark } from "../shared/continuity.js";
import { h, setAttribute, setText } from "../shared/dom.js";
import { glyph, icon, mark, setGlyph } from "../shared/icons.js";
import { relativeTime } from "../shared/time.js";

/** @typedef {import("../shared/protocol.js").Project} Project */
/** @typedef {import("../shared/protocol.js").SessionSummary} SessionSummary */
/** @typedef {import("../shared/protocol.js").Attention} Attention */

/**
 * Rows are clones of a model: building each from scratch took most of the time for a long list.
 * @type {HTMLElement | undefined}
 */
let projectModel;
/** One per agent, with its mark. @type {Map<string, HTMLElement>} */
const sessionModels = new Map();
/** @type {HTMLElement | undefined} */
let buttons;

/** @param {Project} project */
export function projectRow(project) {
  projectModel ??= h("div", { class: "row project-row", role: "treeitem", "aria-level": 1, tabindex: -1 },
    h("span", { class: "slot" }, chevron()),
    h("span", { class: "project-title" },
      h("span", { class: "project-name truncate", dir: "auto" }),
      h("span", { class: "project-hint truncate" }),
      h("span", { class: "project-count tabular" })),
    h("span", { class: "slot project-glyph" }, glyph("idle")),
    h("button", {
      class: "icon-button project-more",
      type: "button",
      "data-size": "row",
      "data-do": "more",
      "aria-label": "More",
      title: "More",
      "aria-haspopup": "menu",
      tabindex: -1,
    }, icon("more")),
    h("button", {
      class: "icon-button",
      type: "button",
      "data-size": "row",
      "data-do": "new-session",
      "aria-label": "New Session",
      title: "New Session",
      tabindex: -1,
    }, icon("plus")),
  );
  const row = /** @type {HTMLElement} */ (projectModel.cloneNode(true));
  row.dataset.project = project.id;
  return row;
}

function chevron() {
  const node = icon("chevron-right");
  node.classList.add("chevron");
  return node;
}

/**
 * @param {HTMLElement} row
 * @param {{ project: Project, hint: string, expanded: boolean, count: number, attention: Attention }} now
 */
export function updateProjectRow(row, { project, hint, expanded, count, attention }) {
  const [name, parent, number] = /** @type {HTMLElement[]} */ ([
    ...(row.querySelector(".project-title")?.children ?? []),
  ]);
  setAttribute(row, "aria-expanded", String(expanded));
  setAttribute(row, "aria-label", project.name + (hint ? `, ${hint}` : ""));
  setAttribute(row, "title", project.path);
  if (name) setText(name, project.name);
  if (parent) setText(parent, hint);
  if (number) setText(number, count ? String(count) : "");
  const sign = row.querySelector(".project-glyph .glyph");
  if (sign instanceof SVGElement) setGlyph(sign, attention, NAMES[attention]);
}

/** @param {{ id: string, cliType: string }} session */
export function sessionRow({ id, cliType }) {
  let model = sessionModels.get(cliType);
  if (!model) {
    model = h("div", {
      class: "row session-row",
      role: "treeitem",
      "aria-level": 2,
      tabindex: -1,
      "data-attention": "idle",
    },
      h("span", { class: "slot" }, glyph("idle")),
      h("span", { class: "row-title", dir: "auto" }),
      mark(cliType), " ",
      h("span", { class: "row-time" }));
    sessionModels.set(cliType, model);
  }
  const row = /** @type {HTMLElement} */ (model.cloneNode(true));
  row.dataset.session = id;
  return row;
}

/** Adds a row's buttons when it is first hovered or focused. @param {HTMLElement} row */
export function addRowActions(row) {
  if (row.lastElementChild?.className === "row-actions") return;
  buttons ??= h("span", { class: "row-actions" },
    h("button", {
      class: "icon-button",
      type: "button",
      "data-size": "row",
      "data-do": "archive",
      "aria-label": "Archive",
      title: "Archive",
      tabindex: -1,
    }, icon("archive")),
    h("button", {
      class: "icon-button",
      type: "button",
      "data-size": "row",
      "data-do": "more",
      "aria-label": "More",
      title: "More",
      "aria-haspopup": "menu",
      tabindex: -1,
    }, icon("more")));
  row.append(buttons.cloneNode(true));
}

/**
 * @param {HTMLElement} row
 * @param {{ session: SessionSummary, agentName: string, current: boolean, now: number }} now
 */
export function updateSessionRow(row, { session, agentName, current, now }) {
  const [slot, title] = row.children;
  const time = row.querySelector(":scope > .row-time");
  const sign = slot?.firstElementChild;
  const ago = relativeTime(session.lastActiveAt, now);
  if (row.dataset.attention !== session.attention) {
    row.dataset.attention = session.attention;
    if (sign instanceof SVGElement) setGlyph(sign, session.attention, NAMES[session.attention]);
  }
  setAttribute(row, "aria-current", current ? "true" : null);
  const continuity = drawContinuity(row, session);
  setAttribute(row, "aria-label", [
    `${session.title} ${ago}`,
    session.attention === "idle" ? "" : NAMES[session.attention],
    agentName,
    continuity,
  ].filter(Boolean).join(", "));
  if (title) {
    setText(title, session.title);
    setAttribute(title, "title", session.title);
  }
  if (time) setText(time, ago);
}

/**
 * Few rows have a mark, so it is added when needed.
 * @param {HTMLElement} row
 * @param {SessionSummary} session
 * @returns {string} Its name, or nothing.
 */
function drawContinuity(row, session) {
  const mark = listMark(session);
  const now = mark ? session.continuity : "";
  if ((row.dataset.continuity ?? "") === now) return mark?.label ?? "";
  row.querySelector(":scope > .row-continuity")?.remove();
  setAttribute(row, "data-continuity", now || null);
  if (!mark?.icon) return "";
  row.querySelector(":scope > .row-title")?.after(
    h("span", { class: "row-continuity", title: `${mark.label}. ${mark.meaning}` }, icon(mark.icon)),
  );
  return mark.label;
}
