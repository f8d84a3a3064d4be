// shortcuts.js: the list of all shortcuts. keys.js and commands.js define them; a test compares this list with those.
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
    [["F6", `${SHIFT}F6`], "Next or previous region"],
    [["Esc"], "Close, or stop the turn"],
    [["?"], "This list"],
  ] },
  { title: "Tabs", keys: [
    [[`${nav("1")}…9`], "Tab 1 to 9"],
    [[nav("["), nav("]")], "Previous or next tab"],
    [[nav("W")], "Close the tab"],
    [[`${mod(SHIFT)}← →`], "Move the focused tab"],
  ] },
  { title: "Message", keys: [
    [["Enter"], "Send"],
    [[`${SHIFT}Enter`], "New line"],
    [["↑"], "Recall your last message"],
    [["/"], "Agent commands"],
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
        h("dl", {}, ...keys.map(([names, label]) => h("div", { class: "shortcut" },
          h("dt", {}, ...names.map((name) => h("kbd", { class: "kbd" }, name))), h("dd", {}, label)))))))),
    h("div", { class: "dialog-foot" },
      h("button", { class: "button push", type: "button", "data-kind": "ghost", "data-do": "cancel" },
        hint(["Esc"], "close"))));
  const close = dialog.querySelector('[data-do="cancel"]');
  close?.addEventListener("click", () => dialog.close());
  if (close instanceof HTMLElement) close.focus();
}
