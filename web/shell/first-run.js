// first-run.js: the page shown while there are no projects.
import { DEMO_NOTE, isDemo } from "../shared/demo.js";
import { h } from "../shared/dom.js";
import { icon, mark } from "../shared/icons.js";
import { baseName } from "../shared/paths.js";
import { commandLine } from "./footer.js";
import { createPathField, NO_DIRECTORY } from "./path-field.js";
import { createRecentList } from "./recent-list.js";
import { redraw } from "./redraw.js";

/** @typedef {import("../shared/protocol.js").AgentInfo} AgentInfo */

/** @param {import("./add-project.js").Adding} deps */
export function createFirstRun({ complete, recent, home, add, added }) {
  const path = createPathField({
    complete,
    submit: () => void submit(),
    changed: () => recents.show(path.value() === ""),
  });
  const recents = createRecentList({ recent, home, choose: (directory) => void submit(directory) });
  const agents = h("div", { class: "card-list" });
  const form = h("form", { class: "first-field" },
    path.field,
    h("button", { class: "button", type: "submit", "data-kind": "primary" }, "Add project"),
    path.alert,
    path.list,
    recents.root);
  const root = h("div", { class: "centered", "data-key": "first" }, h("div", { class: "first-run" },
    h("h2", { class: "first-title" }, "Add your first project"),
    h("p", { class: "lead" },
      "A project is a directory on this machine. Every conversation you start in it stays listed here, ",
      "whichever agent you use, and many can run at once."),
    form,
    h("div", { class: "agents-head" },
      h("h3", {}, "Agents on this machine"),
      h("span", {}, "Install one, then check again"),
      h("button", { class: "button", type: "button", "data-kind": "ghost", "data-do": "check-agents" },
        icon("refresh"),
        "Check again")),
    agents,
    h("p", { class: "agents-foot" },
      "Agents run on this machine under your own subscription. Liminal Builder holds no keys. ",
      "Any other program that speaks the Agent Client Protocol can be added. ",
      h("button", { class: "link-button", type: "button", "data-command": "add-agent" }, "Add agent"))));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    void submit();
  });

  let busy = false;
  async function submit(value = path.value()) {
    if (busy) return;
    if (value === "") return path.showError(NO_DIRECTORY);
    busy = true;
    const result = await add(value);
    busy = false;
    if ("error" in result) path.showError(result.error);
    else added(result.projectId);
  }

  return {
    root,
    /** Loads directories to suggest: those in the home directory, and those used before. */
    offer() {
      void path.refresh();
      void recents.load();
    },
    focus: () => path.input.focus(),
    /** @param {AgentInfo[]} list */
    update: (list) => redraw(agents, list.map(agentRow)),
  };
}

/** @param {AgentInfo} agent */
function agentRow(agent) {
  return h("div", { class: "first-agent", "data-key": agent.cliType },
    h("span", { class: "agent-tile" }, mark(agent.cliType)),
    h("span", { class: "agent-name" }, agent.name),
    isDemo(agent.cliType) ? h("span", { class: "agent-note" }, DEMO_NOTE) : agent.installed
      ? h("span", { class: "agent-note", title: agent.program },
        "Found ",
        h("code", {}, baseName(agent.program ?? agent.cliType)),
        agent.version ? ` ${agent.version}` : "")
      : h("span", { class: "agent-note" }, "Not installed: looked for ", h("code", {}, agent.program ?? agent.cliType)),
    agent.installed ? readiness(agent)
      : h("span", { class: "agent-end" }, agent.installHint ? commandLine(agent.installHint) : null));
}

/** @param {AgentInfo} agent */
function readiness(agent) {
  if (agent.loggedIn === false) return h("span", { class: "agent-end" }, "Not logged in yet");
  return h("span", { class: "agent-end agent-ready" }, icon("check"), agent.loggedIn ? "Ready, logged in" : "Ready");
}
