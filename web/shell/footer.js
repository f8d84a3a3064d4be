// footer.js: the agents and their states, the theme switch and Settings.
import { closest, h } from "../shared/dom.js";
import { icon, mark, setIcon } from "../shared/icons.js";
import { currentTheme } from "../shared/theme.js";
import { copyText } from "../shared/clipboard.js";
import { redraw } from "./redraw.js";

/** @typedef {import("../shared/protocol.js").AgentInfo} AgentInfo */
/** @typedef {import("./store.js").Store} Store */

/** @type {Record<string, string>} */
const STATE_LABELS = {
  connected: "Connected",
  starting: "Starting",
  reconnecting: "Reconnecting",
  disconnected: "Disconnected",
  idle: "Not running",
  missing: "Not installed",
  unknown: "Unknown",
  login: "Not logged in",
};

/** @param {AgentInfo} agent @param {Store} store */
export function agentState(agent, { state }) {
  if (!agent.installed && agent.status === "idle") return "missing";
  if (!state.online) return "unknown";
  return agent.loggedIn === false && (agent.status === "connected" || agent.status === "idle") ? "login" : agent.status;
}
/** @param {AgentInfo} agent @param {Store} store */
export const agentStateLabel = (agent, store) => STATE_LABELS[agentState(agent, store)] ?? "";

/**
 * @param {HTMLElement} root
 * @param {{ store: Store, reconnect: (cliType: string) => void, refresh: () => void, changeTheme: () => void }} deps
 */
export function mountFooter(root, { store, reconnect, refresh, changeTheme }) {
  const agents = h("button", {
    class: "footer-agents",
    type: "button",
    "aria-haspopup": "dialog",
    "aria-expanded": "false",
    "aria-label": "Agents",
  });
  const picture = icon("moon");
  const theme = h("button", {
    class: "icon-button",
    type: "button",
    "aria-label": "Change theme",
    title: "Change theme",
  }, picture);
  const settings = h("button", {
    class: "icon-button",
    type: "button",
    "data-command": "settings",
    "aria-label": "Settings",
    title: "Settings",
  }, icon("gear"));
  root.append(agents, h("span", { class: "footer-space" }), theme, settings);
  /** @type {HTMLElement | null} */
  let popover = null;

  theme.addEventListener("click", changeTheme);
  agents.addEventListener("click", () => (popover ? close() : open()));

  function open() {
    popover = h("div", { class: "agents-popover", role: "dialog", "aria-label": "Agents", tabindex: -1 });
    document.body.append(popover);
    agents.setAttribute("aria-expanded", "true");
    draw();
    popover.style.setProperty("left", "8px");
    popover.style.setProperty("bottom", "48px");
    popover.addEventListener("click", (event) => {
      const button = closest(event, "[data-do]");
      if (button?.dataset.do === "reconnect") reconnect(button.dataset.cliType ?? "");
      if (button?.dataset.do === "copy") void copyText(button.dataset.text ?? "", button);
    });
    popover.addEventListener("keydown", (event) => {
      if (event.key !== "Escape") return;
      event.stopPropagation();
      close();
    });
    addEventListener("pointerdown", outside, { capture: true });
    addEventListener("blur", close);
    popover.focus();
    refresh();
  }

  /** @param {Event} event */
  function outside(event) {
    const target = /** @type {Node} */ (event.target);
    if (!popover?.contains(target) && !agents.contains(target)) close();
  }

  function close() {
    removeEventListener("pointerdown", outside, { capture: true });
    removeEventListener("blur", close);
    const inside = popover?.contains(document.activeElement);
    popover?.remove();
    popover = null;
    agents.setAttribute("aria-expanded", "false");
    if (inside) agents.focus();
  }

  function draw() {
    if (popover) redraw(popover, store.state.agents.map((agent) => card(agent, store)));
  }

  return {
    update() {
      redraw(agents, store.state.agents.map((agent) => {
        const label = `${agent.name}: ${agentStateLabel(agent, store)}`;
        return h("span", { "data-key": agent.cliType, title: label },
          mark(agent.cliType),
          h("span", { class: "dot", "data-state": agentState(agent, store) }),
          h("span", { class: "visually-hidden" }, label));
      }));
      // Before the list has arrived, nothing else gives it a name.
      if (store.state.agents.length) agents.removeAttribute("aria-label");
      draw();
    },
    themeChanged: () => setIcon(picture, currentTheme() === "dark" ? "moon" : "sun"),
  };
}

/** @param {AgentInfo} agent @param {Store} store */
function card(agent, store) {
  const state = agentState(agent, store);
  const install = state === "missing" ? agent.installHint : state === "login" ? agent.loginHint : null;
  return h("div", { class: "agent-card", "data-key": agent.cliType },
    mark(agent.cliType),
    h("span", { class: "agent-name" }, agent.name),
    h("span", { class: "agent-state" },
      h("span", { class: "dot", "data-state": state }),
      agentStateLabel(agent, store)),
    h("span", { class: "agent-version" }, agent.version ? `Version ${agent.version}` : (agent.program ?? "")),
    state === "disconnected" ? h("button", {
      class: "button",
      type: "button",
      "data-kind": "secondary",
      "data-do": "reconnect",
      "data-cli-type": agent.cliType,
    }, "Reconnect") : null,
    install ? commandLine(install) : null);
}

/** A command to run in a terminal, with Copy. @param {string} command @param {boolean} [hasLabel] */
export function commandLine(command, hasLabel = false) {
  return h("div", { class: "command-line" }, h("code", {}, command),
    hasLabel
      ? h("button", { class: "button", type: "button", "data-kind": "ghost", "data-do": "copy", "data-text": command },
        icon("copy"),
        h("span", { "data-copy-label": true }, "Copy"))
      : h("button", {
        class: "icon-button",
        type: "button",
        "data-size": "row",
        "data-do": "copy",
        "data-text": command,
        "aria-label": `Copy the command ${command}`,
        title: "Copy",
      }, icon("copy")));
}
