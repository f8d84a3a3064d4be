// defaults.js: the dialog for a project's defaults: the agent and the options of new sessions.
import { closest, h } from "../shared/dom.js";
import { icon } from "../shared/icons.js";
import { openDialog } from "./dialog.js";

/** @typedef {import("../shared/protocol.js").ProjectDefaults} ProjectDefaults */

/** The select's value for "no agent": a CLI type is never empty. */
const NONE = "";

/**
 * @param {{
 *   store: import("./store.js").Store,
 *   project: import("../shared/protocol.js").Project,
 *   save: (defaults: ProjectDefaults | undefined) => void,
 * }} deps
 */
export function openDefaults({ store, project, save }) {
  const known = project.defaults;
  const options = new Map(
    Object.entries(known?.options ?? {}).flatMap(([id, value]) => (value === undefined ? [] : [[id, value]])),
  );
  const choices = store.state.agents.map(({ cliType, name }) =>
    h("option", { value: cliType, selected: cliType === known?.cliType }, name));
  // An agent that is no longer available is still listed, so that the user can see and change it.
  if (known && !store.agent(known.cliType)) {
    choices.push(h("option", { value: known.cliType, selected: true }, known.cliType));
  }
  const agent = h("select", { name: "agent" },
    h("option", { value: NONE, selected: !known }, "Last used agent"),
    ...choices);
  const list = h("ul", { class: "default-options" });
  const note = h("p", { class: "dialog-note" },
    "To set a default mode or model, choose it in a session, then pick Make these the project’s defaults ",
    "from its More menu.");
  const form = h("form", { method: "dialog" },
    h("h2", {}, `Defaults for ${project.name}`),
    h("label", { class: "default-agent" }, h("span", {}, "Agent"), agent), list, note,
    h("div", { class: "dialog-actions" },
      h("button", { class: "button", type: "button", "data-kind": "ghost", "data-do": "cancel" }, "Cancel"),
      h("button", { class: "button", type: "submit", "data-kind": "primary" }, "Save")));
  const dialog = openDialog({ label: `Defaults for ${project.name}`, className: "text-dialog defaults" }, form);

  function draw() {
    // The options belong to the agent they were set for.
    const shown = agent.value === known?.cliType ? [...options] : [];
    list.replaceChildren(...shown.map(([id, value]) => h("li", {},
      h("span", { class: "default-id" }, id), h("span", { class: "mono truncate", dir: "auto" }, value),
      h("button", {
        class: "icon-button",
        type: "button",
        "data-do": "drop",
        "data-option": id,
        "aria-label": `Remove the default ${id}`,
      }, icon("close")))));
    list.hidden = shown.length === 0;
  }

  agent.addEventListener("change", draw);
  form.addEventListener("click", (event) => {
    const pressed = closest(event, "[data-do]")?.dataset;
    if (pressed?.do === "cancel") dialog.close();
    if (pressed?.do !== "drop") return;
    options.delete(pressed.option ?? "");
    draw();
    agent.focus();
  });
  form.addEventListener("submit", () => {
    const cliType = agent.value;
    save(cliType === NONE
      ? undefined
      : { cliType, options: cliType === known?.cliType ? Object.fromEntries(options) : {} });
  });
  draw();
  agent.focus();
}
