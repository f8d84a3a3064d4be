// remove-project.js: removes a project from the sidebar, and asks first if turns are running in it.
import { h } from "../shared/dom.js";
import { openDialog } from "./dialog.js";

/** @typedef {import("./store.js").Store} Store */

/**
 * Nothing is deleted and removal can be undone. Running turns are stopped for good, so the user is asked first.
 * @param {{ store: Store, projectId: string, remove: () => void }} deps
 */
export function removeProject({ store, projectId, remove }) {
  const project = store.project(projectId);
  const working = store.sessionsOf(projectId).filter(({ attention }) =>
    attention === "working" || attention === "needs_permission").length;
  if (!project || working === 0) return remove();
  const turns = working === 1 ? "A turn is" : `${working} turns are`;
  const form = h("form", { method: "dialog" }, h("h2", {}, `Remove ${project.name} from the sidebar?`),
    h("p", {},
      `${turns} still running in it and will be stopped. `,
      "Nothing is deleted: add the directory again to get its sessions back."),
    h("div", { class: "dialog-actions" },
      h("button", { class: "button", type: "button", "data-kind": "ghost", "data-do": "cancel" }, "Cancel"),
      h("button", { class: "button", type: "submit", "data-kind": "primary" }, "Remove")));
  const dialog = openDialog({ label: "Remove project", className: "text-dialog" }, form);
  form.addEventListener("submit", remove);
  form.querySelector('[data-do="cancel"]')?.addEventListener("click", () => dialog.close());
  /** @type {HTMLElement | null} */ (form.querySelector('[type="submit"]'))?.focus();
}
