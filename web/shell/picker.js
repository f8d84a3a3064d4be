// picker.js: the dialog that picks the agent and the project of a new session.
import { copyText } from "../shared/clipboard.js";
import { DEMO_NOTE, isDemo } from "../shared/demo.js";
import { closest, h, setText } from "../shared/dom.js";
import { icon, mark } from "../shared/icons.js";
import { openMenu } from "../shared/menu.js";
import { load, save } from "../shared/storage.js";
import { hint, openDialog } from "./dialog.js";
import { agentState, agentStateLabel } from "./footer.js";
import { redraw } from "./redraw.js";

/** @typedef {import("../shared/protocol.js").AgentInfo} AgentInfo */
/** @typedef {import("./store.js").Store} Store */

/** How many agents have a number key. */
const KEYS_MAX = 9;

/**
 * @param {{
 *   store: Store,
 *   projectId: string,
 *   agent?: string,
 *   create: (projectId: string, cliType: string) => void,
 * }} deps `agent`: the one to offer first.
 * @returns {{ update: () => void, closed: () => boolean }}
 */
export function openPicker({ store, projectId, agent, create }) {
  let project = projectId;
  const name = h("span", { class: "truncate" });
  const choose = h("button", {
    class: "button",
    type: "button",
    "data-kind": "secondary",
    "aria-haspopup": "menu",
    "aria-expanded": "false",
  }, icon("folder"), h("span", { class: "visually-hidden" }, "Project: "), name, icon("chevron-down"));
  const list = h("div", { class: "picker-list", role: "group", "aria-label": "Agents" });
  const dialog = openDialog({ label: "New session", className: "picker" },
    h("div", { class: "picker-head" }, h("h2", {}, "New session"), choose),
    list,
    h("div", { class: "dialog-foot" },
      hint([icon("arrow-up"), icon("arrow-down")], "choose"),
      hint([icon("return")], "create"),
      hint(["Tab"], "project"),
      h("button", { class: "button push", type: "button", "data-kind": "ghost", "data-do": "cancel" },
        hint(["Esc"], "cancel"))));

  dialog.addEventListener("click", (event) => {
    const copy = closest(event, '[data-do="copy"]');
    if (copy) return void copyText(copy.dataset.text ?? "", copy);
    if (closest(event, '[data-do="cancel"]')) return dialog.close();
    const option = closest(event, ".picker-option");
    if (option) pick(option);
  });
  dialog.addEventListener("keydown", (event) => {
    if (closest(event, ".menu")) return;
    const options = /** @type {HTMLElement[]} */ ([...list.querySelectorAll(".picker-option")]);
    const at = options.indexOf(/** @type {HTMLElement} */ (document.activeElement));
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) options[(at + step + options.length) % options.length]?.focus();
    else if (/^[1-9]$/.test(event.key) && !event.ctrlKey && !event.metaKey && !event.altKey) {
      pick(options[Number(event.key) - 1]);
    } else return;
    event.preventDefault();
  });
  choose.addEventListener("click", () => openMenu(choose, "Project", store.state.projects.map((other) => ({
    label: other.name, checked: other.id === project,
    run() {
      project = other.id;
      draw();
      focusOption();
    },
  }))));

  /** @param {HTMLElement | undefined} option */
  function pick(option) {
    const cliType = option?.dataset.cliType;
    if (!cliType || option?.getAttribute("aria-disabled") === "true") return;
    save("last-agent", cliType);
    dialog.close();
    create(project, cliType);
  }

  function focusOption() {
    const last = agent ?? store.project(project)?.defaults?.cliType ?? load("last-agent");
    const wanted = list.querySelector(`[data-cli-type="${CSS.escape(String(last))}"]:not([aria-disabled])`)
      ?? list.querySelector(".picker-option:not([aria-disabled])");
    if (wanted instanceof HTMLElement) wanted.focus();
  }

  function draw() {
    setText(name, store.project(project)?.name ?? "");
    redraw(list, store.state.agents.length
      ? store.state.agents.map((agent, index) => row(agent, index, store))
      : [h("p", { class: "picker-none" }, "No agents found yet.")]);
  }

  draw();
  focusOption();
  return { update: draw, closed: () => !dialog.isConnected };
}

/** @param {AgentInfo} agent @param {number} index @param {Store} store */
function row(agent, index, store) {
  const state = agentState(agent, store);
  const missing = state === "missing";
  const option = h("button", {
    class: "picker-option",
    type: "button",
    "data-cli-type": agent.cliType,
    "aria-disabled": missing ? "true" : null,
  },
    h("span", { class: "agent-tile" }, mark(agent.cliType)),
    h("span", { class: "agent-name" }, agent.name),
    h("span", { class: "agent-note truncate" }, missing ? (agent.installHint ?? "Not installed") : note(agent, store)),
    h("span", { class: "agent-end" },
      missing ? "Not installed" : h("span", { class: "dot", "data-state": state }),
      missing ? null : agentStateLabel(agent, store),
      missing || index >= KEYS_MAX ? null : h("kbd", { class: "kbd", "aria-hidden": "true" }, String(index + 1))));
  return h("div", { class: "picker-row", "data-key": agent.cliType }, option, missing && agent.installHint
    ? h("button", {
      class: "button",
      type: "button",
      "data-kind": "ghost",
      "data-do": "copy",
      "data-text": agent.installHint,
      "aria-label": `Copy the command that installs ${agent.name}`,
    }, icon("copy"), h("span", { "data-copy-label": true }, "Copy"))
    : null);
}

/** @param {AgentInfo} agent @param {Store} store */
function note(agent, store) {
  let live = 0;
  for (const session of store.state.sessions.values()) if (
    session.cliType === agent.cliType
    && (session.continuity === "live" || session.continuity === "resumed")
  ) live += 1;
  if (agent.status === "connected" || live) return live === 1 ? "Running, 1 session" : `Running, ${live} sessions`;
  if (agent.status === "disconnected") return "Reconnects when you create the session";
  if (isDemo(agent.cliType)) return DEMO_NOTE;
  const details = [
    agent.version ? `Version ${agent.version}` : "",
    agent.loggedIn === undefined ? "" : agent.loggedIn ? "logged in" : "not logged in yet",
  ].filter(Boolean).join(", ");
  return details || "Starts when you create the session";
}
