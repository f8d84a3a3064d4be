// header.js: title, place, connection, and what can be done with the session.
import { closest, h, setAttribute, setText } from "../shared/dom.js";
import { icon } from "../shared/icons.js";
import { mod, nav } from "../shared/keys.js";
import { openMenu } from "../shared/menu.js";
import { shortPath } from "../shared/paths.js";
import { agentName, CONNECTION_WORDS, connectionOf } from "./connection.js";

/**
 * @param {HTMLElement} root
 * @param {{ session: import("./session.js").Session, command: (name: string) => void, toggleRail: () => void }} deps
 */
export function mountHeader(root, { session, command, toggleRail }) {
  const title = h("h1", { class: "truncate", dir: "auto" });
  const path = h("span", { class: "session-path mono truncate" });
  const dot = h("span", { class: "dot" });
  const words = h("span");
  const chip = h("span", { class: "chip", role: "status" }, dot, words);
  const rail = h("button", { class: "icon-button", type: "button", "data-do": "rail", "aria-label": "Plan and changes", title: `Plan and changes (${mod(".")})`, "aria-pressed": "true", hidden: true }, icon("rail"));
  const more = h("button", { class: "icon-button", type: "button", "data-do": "more", "aria-label": "More", "aria-haspopup": "menu", "aria-expanded": "false" }, icon("more"));
  root.append(title, path, h("span", { class: "space" }), chip, rail, more);

  root.addEventListener("click", (event) => {
    const what = closest(event, "[data-do]")?.dataset.do;
    if (what === "rail") toggleRail();
    if (what === "more") openMenu(more, "Session", [
      { label: "Rename", icon: "pencil", run: () => command("rename") },
      { label: "Copy session id", icon: "copy", run: () => command("copy-id") },
      { label: "Archive", icon: "archive", run: () => command("archive") },
      "line",
      { label: "Close tab", icon: "close", hint: nav("W"), run: () => command("close") },
    ]);
  });

  return {
    /** @param {{ railOffered: boolean, railShown: boolean }} view */
    draw({ railOffered, railShown }) {
      const { context } = session.state;
      if (!context) return;
      const connection = connectionOf(session.state);
      setText(title, context.session.title);
      setAttribute(title, "title", context.session.title);
      setText(path, shortPath(context.project?.path ?? "", context.home));
      setAttribute(chip, "data-state", connection);
      setAttribute(dot, "data-state", connection);
      setText(words, `${agentName(context)} · ${CONNECTION_WORDS[connection]}`);
      setAttribute(chip, "title", { idle: "Starts with your next message", unknown: "Liminal Builder is not answering" }[/** @type {string} */ (connection)]);
      rail.hidden = !railOffered;
      setAttribute(rail, "aria-pressed", String(railShown));
      if (document.title !== context.session.title) document.title = context.session.title;
    },
  };
}
