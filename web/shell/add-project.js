// add-project.js: the dialog that adds a directory.
import { h } from "../shared/dom.js";
import { icon } from "../shared/icons.js";
import { openDialog, hint } from "./dialog.js";
import { createPathField, NO_DIRECTORY } from "./path-field.js";

/** @typedef {import("../shared/protocol.js").PathCompletion} PathCompletion */
/**
 * Adds a directory; answers with words to show under the field when it cannot.
 * @typedef {(path: string) => Promise<string | null>} AddProject
 */

/** @param {{ complete: (prefix: string) => Promise<PathCompletion[]>, add: AddProject }} deps */
export function openAddProject({ complete, add }) {
  let busy = false;
  const path = createPathField({ complete, submit: () => void submit() });
  const button = h("button", { class: "button push", type: "submit", "data-kind": "primary" }, "Add project", h("kbd", { class: "kbd" }, icon("return")));
  const form = h("form", { method: "dialog" },
    h("div", { class: "dialog-body" }, h("h2", {}, "Add project"), path.field, path.alert, path.list),
    h("div", { class: "dialog-foot" },
      hint(["Tab"], "complete"), hint([icon("arrow-up"), icon("arrow-down")], "choose"),
      h("button", { class: "button push", type: "button", "data-kind": "ghost", "data-do": "cancel" }, hint(["Esc"], "cancel")), button));
  button.classList.remove("push");
  const dialog = openDialog({ label: "Add project", className: "add-project" }, form);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    void submit();
  });
  form.addEventListener("click", (event) => {
    if (event.target instanceof Element && event.target.closest('[data-do="cancel"]')) dialog.close();
  });
  path.input.value = "~/";
  path.input.focus();
  path.input.setSelectionRange(2, 2);
  void path.refresh();

  async function submit() {
    const value = path.value();
    if (busy) return;
    if (value === "") return path.showError(NO_DIRECTORY);
    busy = true;
    const fault = await add(value);
    busy = false;
    if (fault === null) dialog.close();
    else path.showError(fault);
  }
}
