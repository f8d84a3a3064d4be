// options.js: the switches an agent offers (mode, model and others), each as a menu.
import { closest, h, reconcile } from "../shared/dom.js";
import { icon } from "../shared/icons.js";
import { openMenu } from "../shared/menu.js";

/** @typedef {import("../shared/protocol.js").ConfigOption} ConfigOption */

const ICONS = { mode: "shield", model: "chip", thought_level: "gauge", other: "switch" };
const ORDER = ["mode", "model", "thought_level", "other"];

/**
 * @param {HTMLElement} root
 * @param {{ session: import("./session.js").Session, setOption: (id: string, value: string) => void }} deps
 */
export function mountOptions(root, { session, setOption }) {
  let drawn = "";

  root.addEventListener("click", (event) => {
    const button = closest(event, "[data-option]");
    const option = session.state.facts.options?.find(({ id }) => id === button?.dataset.option);
    if (!button || !option) return;
    openMenu(button, option.name, option.choices.map((choice) => ({
      label: choice.name, checked: choice.value === option.value, ...(choice.description ? { note: choice.description } : {}),
      run: () => choice.value !== option.value && setOption(option.id, choice.value),
    })), { wide: true, above: true });
  });

  /** @param {boolean} disabled */
  return function draw(disabled) {
    const options = (session.state.facts.options ?? []).filter(({ choices }) => choices.length > 0);
    const now = JSON.stringify([options, disabled]);
    if (now === drawn) return;
    drawn = now;
    const sorted = [...options].sort((a, b) => ORDER.indexOf(a.category) - ORDER.indexOf(b.category));
    reconcile(root, sorted.map((option) => h("button", { class: "option-button", type: "button", "data-option": option.id, "aria-haspopup": "menu", "aria-expanded": "false", disabled, title: option.name, "aria-label": `${option.name}: ${valueName(option)}` },
      icon(ICONS[option.category] ?? "switch"), h("span", { class: "truncate" }, valueName(option)), icon("chevron-down"))));
  };
}

/** @param {ConfigOption} option */
const valueName = (option) => option.choices.find(({ value }) => value === option.value)?.name ?? option.value;
