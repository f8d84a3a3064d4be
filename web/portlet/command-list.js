// command-list.js: the agent's slash commands, offered above the input while one is typed.
import { closest, h, reconcile, setAttribute } from "../shared/dom.js";

/** @typedef {import("../shared/protocol.js").AgentCommandInfo} AgentCommandInfo */

const SHOWN_MAX = 50;

/**
 * @param {HTMLElement} root
 * @param {{ input: HTMLTextAreaElement, commands: () => AgentCommandInfo[], onPick: () => void }} deps
 */
export function mountCommandList(root, { input, commands, onPick }) {
  const list = h("div", {
    class: "command-list",
    id: "command-list",
    role: "listbox",
    "aria-label": "Commands",
    hidden: true,
  });
  root.prepend(list);
  /** @type {AgentCommandInfo[]} */
  let found = [];
  let active = 0;
  /** The user closed the list for this text. */
  let dismissed = "";

  list.addEventListener("pointerdown", (event) => event.preventDefault());
  list.addEventListener("click", (event) => {
    const option = closest(event, '[role="option"]');
    if (option) pick(found[Number(option.dataset.index)]);
  });

  /** @param {AgentCommandInfo | undefined} command */
  function pick(command) {
    if (!command) return;
    input.value = `/${command.name} `;
    input.focus();
    input.setSelectionRange(input.value.length, input.value.length);
    onPick();
  }

  function draw() {
    const typed = /^\/(\S*)$/.exec(input.value)?.[1]?.toLowerCase();
    const all = commands();
    const next = typed === undefined || input.value === dismissed ? [] : all
      .filter(({ name }) => name.toLowerCase().includes(typed))
      .sort((a, b) => Number(!a.name.toLowerCase().startsWith(typed)) - Number(!b.name.toLowerCase().startsWith(typed)))
      .slice(0, SHOWN_MAX);
    if (next.map(({ name }) => name).join() !== found.map(({ name }) => name).join()) active = 0;
    found = next;
    list.hidden = found.length === 0;
    reconcile(list, found.map((command, index) => h("div", {
      class: "command-option",
      role: "option",
      id: `command-${index}`,
      "data-index": index,
      "aria-selected": String(index === active),
    },
      h("span", { class: "mono command-name" },
        `/${command.name}`,
        command.hint ? h("span", { class: "command-hint" }, ` ${command.hint}`) : null),
      h("span", { class: "command-description truncate" }, command.description))));
    setAttribute(input, "aria-activedescendant", found.length ? `command-${active}` : null);
    list.querySelector('[aria-selected="true"]')?.scrollIntoView({ block: "nearest" });
  }

  return {
    draw,
    /** @param {KeyboardEvent} event @returns {boolean} Whether the list handled the key. */
    key(event) {
      if (found.length === 0) return false;
      const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      if (step) active = (active + step + found.length) % found.length;
      else if ((event.key === "Enter" && !event.shiftKey) || event.key === "Tab") {
        event.preventDefault();
        pick(found[active]);
        return true;
      } else if (event.key === "Escape") dismissed = input.value;
      else return false;
      event.preventDefault();
      event.stopPropagation();
      draw();
      return true;
    },
  };
}
