// add-project.js: the dialog that adds a directory.
import { h } from "../shared/dom.js";
import { icon } from "../shared/icons.js";
import { openDialog, hint } from "./dialog.js";
import { createPathField, NO_DIRECTORY } from "./path-field.js";
import { createRecentList } from "./recent-list.js";

/** @typedef {import("../shared/protocol.js").PathCompletion} PathCompletion */
/** @typedef {import("../shared/protocol.js").RecentDirectory} RecentDirectory */
/**
 * Adds a directory; an error is shown under the field.
 * @typedef {(path: string) => Promise<{ projectId: string } | { error: string }>} AddProject
 */
/**
 * `added` is called after the form has closed.
 * @typedef {{
 *   complete: (prefix: string) => Promise<PathCompletion[]>,
 *   recent: () => Promise<RecentDirectory[]>,
 *   home: () => string,
 *   add: AddProject,
 *   added: (projectId: string) => void,
 * }} Adding
 */

/** @param {Adding} deps */
export function openAddProject({ complete, recent, home, add, added }) {
  let busy = false;
  const path = createPathField({
    complete,
    submit: () => void submit(),
    changed: () => recents.show(path.value() === ""),
  });
  const recents = createRecentList({ recent, home, choose: (directory) => void submit(directory) });
  const button = h("button", { class: "button push", type: "submit", "data-kind": "primary" },
    "Add project",
    h("kbd", { class: "kbd" }, icon("return")));
  const form = h("form", { method: "dialog" },
    h("div", { class: "dialog-body" }, h("h2", {}, "Add project"), path.field, path.alert, path.list, recents.root),
    h("div", { class: "dialog-foot" },
      hint(["Tab"], "complete"), hint([icon("arrow-up"), icon("arrow-down")], "choose"),
      h("button", { class: "button push", type: "button", "data-kind": "ghost", "data-do": "cancel" },
        hint(["Esc"], "cancel")), button));
  button.classList.remove("push");
  const dialog = openDialog({ label: "Add project", className: "add-project" }, form);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    void submit();
  });
  form.addEventListener("click", (event) => {
    if (event.target instanceof Element && event.target.closest('[data-do="cancel"]')) dialog.close();
  });
  path.input.focus();
  void path.refresh();
  void recents.load();

  async function submit(value = path.value()) {
    if (busy) return;
    if (value === "") return path.showError(NO_DIRECTORY);
    busy = true;
    const result = await add(value);
    busy = false;
    if ("error" in result) return path.showError(result.error);
    dialog.close();
    // At once, so that the next key goes to what `added` focuses.
    added(result.projectId);
  }
}
