// shortcuts.js: the list of all keys. Which key does what is in keys.js and commands.js; a test holds this list against
// them.
import { h } from "../shared/dom.js";
import { isMac, mod, nav } from "../shared/keys.js";
import { hint, openDialog } from "./dialog.js";

const SHIFT = isMac ? "⇧" : "Shift ";

/** @type {{ title: string, keys: [string[], string][] }[]} */
const GROUPS = [
  { title: "Anywhere", keys: [
    [[mod("K")], "Search or jump to"],
    [[mod("J")], "Next that needs you"],
    [[nav("N")], "New session"],
    [[mod("B")], "Sidebar"],
    [[mod(".")], "Plan and changes"],
    [["F6", `${SHIFT}F6`], "Next, previous region"],
    [["Esc"], "Close, or stop the turn"],
    [["?"], "This list"],
  ] },
  { title: "Tabs", keys: [
    [[`${nav("1")}…9`], "Tab 1 to 9"],
    [[nav("["), nav("]")], "Previous or next tab"],
    [[nav("W")], "Close the tab"],
    [[`${mod(SHIFT)}← →`], "Move the tab that has focus"],
  ] },
  { title: "Message", keys: [
    [["Enter"], "Send"],
    [[`${SHIFT}Enter`], "New line"],
    [["↑"], "Recall your last message"],
    [["/"], "Commands of the agent"],
  ] },
  { title: "Sidebar", keys: [
    [["↑", "↓"], "Move"],
    [["→", "←"], "Expand or collapse"],
    [["Enter"], "Open"],
    [["Delete"], "Archive the session"],
    [[`${SHIFT}F10`], "Menu"],
  ] },
];

export function openShortcuts() {
  const dialog = openDialog({ label: "Keyboard shortcuts", className: "shortcuts" },
    h("div", { class: "shortcuts-body", tabindex: 0 }, h("h2", {}, "Keyboard shortcuts"),
      h("div", { class: "shortcut-groups" }, ...GROUPS.map(({ title, keys }) => h("section", {}, h("h3", {}, title),
        h("dl", {}, ...keys.map(([names, words]) => h("div", { class: "shortcut" },
          h("dt", {}, ...names.map((name) => h("kbd", { class: "kbd" }, name))), h("dd", {}, words)))))))),
    h("div", { class: "dialog-foot" },
      h("button", { class: "button push", type: "button", "data-kind": "ghost", "data-do": "cancel" },
        hint(["Esc"], "close"))));
  const close = dialog.querySelector('[data-do="cancel"]');
  close?.addEventListener("click", () => dialog.close());
  if (close instanceof HTMLElement) close.focus();
}
