// options.js: the agent's options. Mode and model have a menu each; all others share one menu. In a narrow window one
// menu holds everything.
import { closest, h, reconcile } from "../shared/dom.js";
import { icon } from "../shared/icons.js";
import { openMenu } from "../shared/menu.js";

/** @typedef {import("../shared/protocol.js").ConfigOption} ConfigOption */
/** @typedef {import("../shared/menu.js").MenuEntry} MenuEntry */

const ICONS = { mode: "shield", model: "chip", thought_level: "gauge", other: "switch" };
const ORDER = ["mode", "model", "thought_level", "other"];
/** The width of a phone; as in composer.css. */
const narrow = matchMedia("(max-width: 667px)");

/**
 * @param {HTMLElement} root
 * @param {{ session: import("./session.js").Session, setOption: (id: string, value: string) => void }} deps
 */
export function mountOptions(root, { session, setOption }) {
  let drawn = "";
  let off = false;

  const offered = () => (session.state.facts.options ?? [])
    .filter(({ choices }) => choices.length > 0)
    .sort((a, b) => ORDER.indexOf(a.category) - ORDER.indexOf(b.category));
  /** Options with their own button. @param {ConfigOption} option */
  const isOwn = ({ category }) => !narrow.matches && (category === "mode" || category === "model");

  /** @param {ConfigOption} option @returns {MenuEntry[]} */
  const choicesOf = (option) => option.choices.map((choice) => ({
    label: choice.name,
    checked: choice.value === option.value,
    ...(choice.description ? { note: choice.description } : {}),
    run: () => choice.value !== option.value && setOption(option.id, choice.value),
  }));

  root.addEventListener("click", (event) => {
    const button = closest(event, ".option-button");
    if (!button) return;
    const option = offered().find(({ id }) => id === button.dataset.option);
    if (option) openMenu(button, option.name, choicesOf(option), { wide: true, above: true });
    else openMenu(button, "Options", offered()
      .filter((other) => !isOwn(other))
      .flatMap((other) => [{ heading: other.name }, ...choicesOf(other)]), { wide: true, above: true });
  });
  narrow.addEventListener("change", () => draw(off));

  /** @param {ConfigOption} option @param {boolean} disabled */
  const ownButton = (option, disabled) => h("button", {
    class: "option-button",
    type: "button",
    "data-option": option.id,
    "aria-haspopup": "menu",
    "aria-expanded": "false",
    disabled,
    title: option.name,
    "aria-label": `${option.name}: ${valueName(option)}`,
  },
    icon(ICONS[option.category] ?? "switch"),
    h("span", { class: "truncate" }, valueName(option)),
    icon("chevron-down"));

  /**
   * One button for several options; its title lists their values.
   * @param {ConfigOption[]} options
   * @param {boolean} disabled
   */
  function sharedButton(options, disabled) {
    const values = options.map((option) => `${option.name}: ${valueName(option)}`);
    const label = values.length === 1 ? (values[0] ?? "") : "Options";
    return h("button", {
      class: "option-button",
      type: "button",
      "aria-haspopup": "menu",
      "aria-expanded": "false",
      disabled,
      title: values.join("\n"),
      "aria-label": label,
    },
      icon("switch"), h("span", { class: "truncate" }, label), icon("chevron-down"));
  }

  /** @param {boolean} disabled */
  function draw(disabled) {
    off = disabled;
    const options = offered();
    const now = JSON.stringify([options, disabled, narrow.matches]);
    if (now === drawn) return;
    drawn = now;
    const shared = options.filter((option) => !isOwn(option));
    reconcile(root, [
      ...options.filter(isOwn).map((option) => ownButton(option, disabled)),
      ...(shared.length ? [sharedButton(shared, disabled)] : []),
    ]);
  }
  return draw;
}

/** @param {ConfigOption} option */
const valueName = (option) => option.choices.find(({ value }) => value === option.value)?.name ?? option.value;
