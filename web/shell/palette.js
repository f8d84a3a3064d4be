// palette.js: find a session, a project, an agent or a command by a few letters.
import { NAMES, needsYou } from "../shared/attention.js";
import { closest, h, reconcile, setAttribute } from "../shared/dom.js";
import { glyph, icon, mark } from "../shared/icons.js";
import { relativeTime } from "../shared/time.js";
import { hint, openDialog } from "./dialog.js";
import { reasonOf } from "./needs-you.js";
import { fuzzy } from "./search.js";
import { newestFirst } from "./store.js";

/** @typedef {import("../shared/protocol.js").SessionSummary} SessionSummary */
/** @typedef {import("./store.js").Store} Store */
/**
 * `meta` describes it; `mark` is the agent whose mark replaces the icon.
 * @typedef {{
 *   label: string,
 *   icon: string,
 *   mark?: string,
 *   meta?: string,
 *   keys?: string,
 *   run: () => void,
 * }} PaletteCommand
 */
/**
 * What can be found besides sessions; `previous` is the session used before the current one.
 * @typedef {{
 *   commands: PaletteCommand[],
 *   projects: PaletteCommand[],
 *   agents: PaletteCommand[],
 *   previous: string | null,
 * }} Findable
 */
/** @typedef {{ session: SessionSummary } | { command: PaletteCommand }} Choice */
/** @typedef {{ title: string, choices: { choice: Choice, ranges: [number, number][] }[] }} Group */

const SESSIONS_MAX = 30;
/** How many sessions are listed that match only by the name of their project or agent. */
const BY_PLACE_MAX = 10;

/**
 * @param {{ store: Store, findable: Findable, open: (sessionId: string) => void, query?: string }} deps
 */
export function openPalette({ store, findable, open, query = "" }) {
  const input = h("input", {
    class: "palette-input",
    type: "text",
    role: "combobox",
    "aria-label": "Search or jump to",
    "aria-expanded": "true",
    "aria-controls": "palette-list",
    "aria-autocomplete": "list",
    autocomplete: "off",
    spellcheck: "false",
    placeholder: "Search or jump to…",
  });
  const found = h("span", { class: "palette-count", "aria-live": "polite" });
  const list = h("div", { class: "palette-list", id: "palette-list", role: "listbox", "aria-label": "Results" });
  const dialog = openDialog({ label: "Search or jump to", className: "palette" },
    h("div", { class: "palette-head" }, icon("search"), input, found), list,
    h("div", { class: "dialog-foot" },
      hint([icon("arrow-up"), icon("arrow-down")], "move"),
      hint([icon("return")], "open"),
      hint([">"], "commands only"),
      hint(["@"], "one project"),
      h("button", { class: "button push", type: "button", "data-kind": "ghost", "data-do": "cancel" },
        hint(["Esc"], "close"))));
  /** @type {Choice[]} */
  let choices = [];
  let active = 0;

  input.addEventListener("input", () => draw());
  input.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (event.isComposing) return;
    if (step && choices.length) select((active + step + choices.length) % choices.length);
    else if (event.key === "Enter") run(choices[active]);
    else return;
    event.preventDefault();
  });
  dialog.addEventListener("click", (event) => {
    if (closest(event, '[data-do="cancel"]')) return dialog.close();
    const option = closest(event, '[role="option"]');
    if (option) run(choices[Number(option.dataset.index)]);
  });

  /** @param {Choice | undefined} choice */
  function run(choice) {
    if (!choice) return;
    dialog.close();
    if ("session" in choice) open(choice.session.id);
    else choice.command.run();
  }

  /** @param {number} index */
  function select(index) {
    active = index;
    for (const option of list.querySelectorAll('[role="option"]')) setAttribute(
      option,
      "aria-selected",
      String(Number(/** @type {HTMLElement} */ (option).dataset.index) === index),
    );
    setAttribute(input, "aria-activedescendant", choices[index] ? `palette-${index}` : null);
    list.querySelector('[aria-selected="true"]')?.scrollIntoView({ block: "nearest" });
  }

  function draw() {
    const groups = findChoices(input.value, store, findable);
    choices = groups.flatMap((group) => group.choices.map(({ choice }) => choice));
    let index = 0;
    const shown = groups.filter((group) => group.choices.length).map((group, at) =>
      h("div", { role: "group", "aria-labelledby": `palette-group-${at}` },
        h("div", { class: "palette-group", id: `palette-group-${at}`, role: "presentation" }, group.title),
        ...group.choices.map(({ choice, ranges }) => option(choice, ranges, index++, store))));
    reconcile(list, shown.length ? shown : [h("p", { class: "palette-none" }, "Nothing found")]);
    const sessions = choices.filter((choice) => "session" in choice).length;
    found.textContent = input.value.startsWith(">") ? "" : `${sessions} of ${store.state.sessions.size} sessions`;
    // With nothing typed, Enter returns to the previous session.
    const before = input.value.trim()
      ? -1
      : choices.findIndex((choice) => "session" in choice && choice.session.id === findable.previous);
    select(Math.max(0, before));
  }

  input.value = query;
  draw();
  input.focus();
}

/**
 * @param {string} text
 * @param {Store} store
 * @param {Findable} findable
 * @returns {Group[]}
 */
export function findChoices(text, store, { commands, projects, agents, previous }) {
  const onlyCommands = text.startsWith(">");
  const [projectPart, ...terms] = text.startsWith("@") ? text.slice(1).split(" ") : [null, text];
  const query = onlyCommands ? text.slice(1) : terms.join(" ");
  const hasQuery = query.trim() !== "";
  const sessions = onlyCommands ? [] : [...store.state.sessions.values()]
    .filter((session) => projectPart === null || fuzzy(projectPart ?? "", store.project(session.projectId)?.name ?? ""))
    .sort(newestFirst);
  const matched = sessions.flatMap((session) => {
    const match = fuzzy(query, session.title);
    return match ? [{ choice: { session }, ...match }] : [];
  });
  if (hasQuery) matched.sort((a, b) => b.score - a.score);
  const titled = new Set(matched.map(({ choice }) => choice.session));
  const placed = !hasQuery
    ? []
    : sessions.filter((session) => !titled.has(session) && isIn(session, query, store)).slice(0, BY_PLACE_MAX);
  const waiting = matched.filter(({ choice }) => needsYou(choice.session.attention));
  const rest = matched.filter(({ choice }) => !needsYou(choice.session.attention));
  const back = hasQuery ? -1 : rest.findIndex(({ choice }) => choice.session.id === previous);
  if (back > 0) rest.unshift(...rest.splice(back, 1));
  const find = (/** @type {PaletteCommand[]} */ all, /** @type {string} */ part) => all.flatMap((command) => {
    const match = fuzzy(part, command.label);
    return match ? [{ choice: { command }, ...match }] : [];
  }).sort((a, b) => b.score - a.score);
  const anywhere = projectPart === null && !onlyCommands && hasQuery;
  return [
    { title: "Needs you", choices: waiting },
    { title: hasQuery || projectPart !== null ? "Sessions" : "Recent", choices: rest.slice(0, SESSIONS_MAX) },
    { title: "Projects", choices: anywhere ? find(projects, query) : projectPart ? find(projects, projectPart) : [] },
    { title: "Agents", choices: anywhere ? find(agents, query) : [] },
    { title: "By project or agent", choices: placed.map((session) => ({ choice: { session }, ranges: [] })) },
    { title: "Commands", choices: anywhere || onlyCommands ? find(commands, query) : [] },
  ];
}

/**
 * Whether its project or its agent matches.
 * @param {SessionSummary} session
 * @param {string} query
 * @param {Store} store
 */
function isIn(session, query, store) {
  return [
    store.project(session.projectId)?.name,
    store.agent(session.cliType)?.name,
  ].some((name) => (name ? fuzzy(query, name) : null) !== null);
}

/** @param {Choice} choice @param {[number, number][]} ranges @param {number} index @param {Store} store */
function option(choice, ranges, index, store) {
  const attributes = {
    class: "palette-option",
    role: "option",
    id: `palette-${index}`,
    "data-index": index,
    "aria-selected": "false",
  };
  if ("command" in choice) {
    const { command } = choice;
    return h("div", attributes, command.mark ? mark(command.mark) : icon(command.icon), marked(command.label, ranges),
      command.meta ? h("span", { class: "palette-meta truncate" }, command.meta) : null,
      command.keys ? h("kbd", { class: "kbd" }, command.keys) : null);
  }
  const { session } = choice;
  const state = session.attention === "idle" ? ""
    : session.attention === "finished" ? reasonOf(session)
    : NAMES[session.attention];
  return h("div", attributes,
    glyph(session.attention, { size: 16 }), marked(session.title, ranges),
    h("span", { class: "palette-meta palette-state" }, state),
    h("span", { class: "palette-meta palette-project truncate" }, store.project(session.projectId)?.name ?? ""),
    mark(session.cliType), h("span", { class: "palette-time" }, relativeTime(session.lastActiveAt, Date.now())));
}

/** @param {string} text @param {[number, number][]} ranges */
function marked(text, ranges) {
  const node = h("span", { class: "palette-title truncate", dir: "auto" });
  let from = 0;
  for (const [start, end] of ranges) {
    node.append(text.slice(from, start), h("b", {}, text.slice(start, end)));
    from = end;
  }
  node.append(text.slice(from));
  return node;
}
