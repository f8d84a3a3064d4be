// settings-agents.js: the part of Settings that lists agents and lets the user probe, add, edit and remove them.
import { closest, h, setText } from "../shared/dom.js";
import { glyph, icon, mark } from "../shared/icons.js";
import { asError } from "./actions.js";
import { openAgentForm } from "./agent-form.js";
import { joinCommandLine } from "./command-line.js";
import { openDialog } from "./dialog.js";
import { createProbe } from "./probe-result.js";

/** @typedef {import("../shared/protocol.js").AgentConfig} AgentConfig */
/** @typedef {import("../shared/protocol.js").AgentEntry} AgentEntry */
/** @typedef {import("../shared/protocol.js").AgentDefinition} AgentDefinition */
/** @typedef {import("./settings-openers.js").Request} Request */

/** @param {{ request: Request }} deps */
export function createAgentsSection({ request }) {
  const list = h("ul", { class: "agent-list", "aria-label": "Agents" });
  const problem = h("div", { class: "agents-problem", role: "alert", hidden: true });
  const note = h("p", { class: "setting-note", role: "status" });
  const add = h("button", { class: "button", type: "button", "data-kind": "secondary", "data-do": "add" },
    icon("plus"),
    "Add agent");
  const foot = h("p", { class: "setting-note" });
  const root = h("fieldset", { class: "setting-agents" },
    h("legend", {}, "Agents"),
    problem,
    list,
    h("div", { class: "agents-actions" }, add, note),
    foot);
  /** @type {AgentConfig | null} */
  let config = null;

  /** @param {import("../shared/messages.js").ServerFrame} answer */
  function onConfig(answer) {
    if (answer.type !== "agent:config") return;
    config = answer.config;
    draw(config);
  }

  /** @param {AgentConfig} shown */
  function draw({ agents, file, problem: wrong }) {
    const active = document.activeElement;
    const focused = active instanceof HTMLElement && root.contains(active) ? active.dataset : null;
    list.replaceChildren(...agents.map((entry) => row(entry, wrong === undefined, request)));
    problem.hidden = wrong === undefined;
    problem.replaceChildren(...(wrong === undefined ? [] : [
      h("p", { class: "probe-title" }, "agents.json cannot be used and is not changed"),
      h("p", {}, wrong),
      h("p", {}, "Fix ", h("code", {}, file), " and open Settings again."),
    ]));
    add.disabled = wrong !== undefined;
    foot.replaceChildren("Stored in ", h("code", {}, file),
      ". Changes take effect at once; running sessions keep their agent until they are closed.");
    if (focused?.do && !document.activeElement?.closest("fieldset")) focusRow(focused.name ?? "", focused.do);
  }

  /** @param {string} name @param {string} what */
  function focusRow(name, what) {
    const button = list.querySelector(`[data-name="${CSS.escape(name)}"][data-do="${what}"]`);
    (button instanceof HTMLElement ? button : add).focus();
  }

  const load = () => request({ type: "agent:config" })
    .then(onConfig, (reason) => setText(note, asError(reason).message));

  /** @param {string} name */
  const definitionOf = (name) => config?.agents.flatMap((entry) =>
    (entry.kind === "configured" && entry.definition.name === name ? [entry.definition] : []))[0];

  /** @param {AgentDefinition} [known] The agent as it was when the form opened. */
  function openForm(known) {
    let saved = known?.name ?? "";
    let replaces = known;
    openAgentForm({
      ...(known ? { definition: known } : {}),
      request,
      async save(definition) {
        try {
          onConfig(await request({
            type: "agent:save",
            revision: config?.revision ?? "",
            ...(replaces ? { replaces: replaces.name } : {}),
            definition,
          }));
          saved = definition.name;
          setText(note, `Saved ${definition.name}.`);
          return null;
        } catch (reason) {
          const error = asError(reason);
          if (error.code !== "AGENTS_FILE_CHANGED") return error;
          await load();
          const now = replaces && definitionOf(replaces.name);
          const next = !replaces || JSON.stringify(now) === JSON.stringify(replaces)
            ? "Save again to put this agent into it."
            : now ? "This agent is different there now. Save again to replace it."
            : "This agent is no longer in it. Save again to add it.";
          replaces = now;
          return {
            code: error.code,
            message: `agents.json was changed by another program or window, so nothing was saved. ${next}`,
          };
        }
      },
      closed: () => focusRow(saved, "edit"),
    });
  }

  /** @param {string} name */
  function askToRemove(name) {
    const form = h("form", { method: "dialog" },
      h("h2", {}, `Remove ${name}?`),
      h("p", {},
        "It is removed from agents.json. Its running sessions continue until they are closed. ",
        "Its other sessions stay listed and can be opened again once an agent with this name is added."),
      h("div", { class: "dialog-actions" },
        h("button", { class: "button", type: "button", "data-kind": "ghost", "data-do": "cancel" }, "Cancel"),
        h("button", { class: "button", type: "submit", "data-kind": "primary" }, "Remove")));
    const dialog = openDialog({
      label: `Remove ${name}`,
      className: "text-dialog",
      closed: () => focusRow(name, "remove"),
    }, form);
    form.addEventListener("submit", () => void remove(name));
    form.querySelector('[data-do="cancel"]')?.addEventListener("click", () => dialog.close());
    /** @type {HTMLElement | null} */ (form.querySelector('[type="submit"]'))?.focus();
  }

  /** @param {string} name */
  async function remove(name) {
    try {
      onConfig(await request({ type: "agent:remove", revision: config?.revision ?? "", name }));
      setText(note, `Removed ${name}.`);
      add.focus();
    } catch (reason) {
      const error = asError(reason);
      if (error.code === "AGENTS_FILE_CHANGED") await load();
      const hasDetail = error.detail && error.code !== "AGENTS_FILE_CHANGED";
      setText(note, hasDetail ? `${error.message} ${error.detail}` : error.message);
    }
  }

  root.addEventListener("click", (event) => {
    const pressed = closest(event, "[data-do]")?.dataset;
    if (pressed?.do === "add") openForm();
    if (pressed?.do === "edit") openForm(definitionOf(pressed.name ?? ""));
    if (pressed?.do === "remove") askToRemove(pressed.name ?? "");
  });

  return {
    root,
    load,
    /** Opens the form for a new agent, unless the file cannot be changed. */
    async add() {
      await load();
      if (config && !config.problem) openForm();
    },
  };
}

/** @param {AgentEntry} entry @param {boolean} isEditable @param {Request} request */
function row(entry, isEditable, request) {
  const name = entry.kind === "configured" ? entry.definition.name : entry.name;
  const actions = h("span", { class: "agent-actions" });
  const line = h("li", { "data-agent": name },
    h("span", { class: "agent-tile" }, entry.kind === "unusable" ? glyph("error") : mark(entry.cliType)),
    h("span", { class: "agent-title" },
      h("span", { class: "agent-name truncate", dir: "auto" }, name),
      entry.kind === "built_in" ? h("span", { class: "agent-kind" }, "Built in") : null),
    actions,
    ...describe(entry));
  if (entry.kind !== "unusable" && !(entry.kind === "built_in" && entry.isReplaced)) {
    const probe = createProbe();
    const button = h("button", {
      class: "button",
      type: "button",
      "data-kind": "secondary",
      "data-do": "try",
      "data-name": name,
      "aria-label": `Try it: ${name}`,
    }, "Try it");
    button.addEventListener("click", () => void probe.run(request, { type: "agent:probe", cliType: entry.cliType }));
    actions.append(button);
    line.append(probe.root);
  }
  if (entry.kind === "configured" && isEditable) actions.append(action("edit", "pencil", "Edit", name));
  if (entry.kind !== "built_in" && isEditable) actions.append(action("remove", "trash", "Remove", name));
  return line;
}

/** @param {string} what @param {string} picture @param {string} label @param {string} name */
const action = (what, picture, label, name) => h("button", {
  class: "icon-button",
  type: "button",
  "data-do": what,
  "data-name": name,
  "aria-label": `${label} ${name}`,
  title: label,
}, icon(picture));

/** @param {AgentEntry} entry @returns {Node[]} */
function describe(entry) {
  if (entry.kind === "unusable") {
    const reason = entry.reason.replace(/^agent "[^"]*": /, "");
    const sentence = `${reason.charAt(0).toUpperCase()}${reason.slice(1)}.`;
    return [h("p", { class: "agent-note agent-wrong" }, `${sentence} Fix it in the file, or remove it.`)];
  }
  if (entry.kind === "configured") {
    const { command, args, env } = entry.definition;
    const line = joinCommandLine([command, ...args]);
    const names = env.map((one) => one.name).join(", ");
    return [
      h("p", { class: "agent-note mono truncate", title: line }, line),
      ...(names ? [h("p", { class: "agent-note truncate" }, "With ", h("span", { class: "mono" }, names))] : []),
    ];
  }
  const origin = entry.isReplaced ? ["Replaced by the agent of this type below."]
    : entry.variable ? ["Its command is set by ", h("code", {}, entry.variable), " when the server starts."]
    : ["Part of Liminal Builder."];
  return [
    h("p", { class: "agent-note mono truncate", title: entry.command }, entry.command),
    h("p", { class: "agent-note" }, ...origin),
  ];
}
