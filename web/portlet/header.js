// header.js: title, directory, branch, connection, and the session's menu.
import { closest, h, setAttribute, setText } from "../shared/dom.js";
import { icon } from "../shared/icons.js";
import { mod, nav } from "../shared/keys.js";
import { openEntries } from "../shared/open-in.js";
import { openMenu } from "../shared/menu.js";
import { shortPath } from "../shared/paths.js";
import { agentName, CONNECTION_LABELS, shownConnection } from "./connection.js";

/**
 * @param {HTMLElement} root
 * @param {{
 *   session: import("./session.js").Session,
 *   command: (name: string) => void,
 *   makeDefaults: (options: Record<string, string>) => void,
 *   toggleRail: () => void,
 *   copyConversation: () => void,
 * }} deps
 */
export function mountHeader(root, { session, command, makeDefaults, toggleRail, copyConversation }) {
  const title = h("h1", { class: "truncate", dir: "auto" });
  const path = h("span", { class: "session-path mono truncate" });
  const branchName = h("span", { class: "truncate", dir: "auto" });
  const branch = h("span", { class: "session-branch mono", hidden: true },
    icon("branch"),
    h("span", { class: "visually-hidden" }, "Branch "),
    branchName);
  const dot = h("span", { class: "dot" });
  const label = h("span");
  const chip = h("span", { class: "chip", role: "status" }, dot, label);
  const rail = h("button", {
    class: "icon-button",
    type: "button",
    "data-do": "rail",
    "aria-label": "Plan and changes",
    title: `Plan and changes (${mod(".")})`,
    "aria-pressed": "true",
    hidden: true,
  }, icon("rail"));
  const more = h("button", {
    class: "icon-button",
    type: "button",
    "data-do": "more",
    "aria-label": "More",
    "aria-haspopup": "menu",
    "aria-expanded": "false",
  }, icon("more"));
  root.append(title, path, branch, h("span", { class: "space" }), chip, rail, more);

  root.addEventListener("click", (event) => {
    const what = closest(event, "[data-do]")?.dataset.do;
    if (what === "rail") toggleRail();
    if (what === "more") openMenu(more, "Session", [
      { label: "Rename", icon: "pencil", run: () => command("rename") },
      { label: "Copy conversation", icon: "copy", run: copyConversation },
      { label: "Copy session id", icon: "copy", run: () => command("copy-id") },
      ...openEntries(session.state.context?.hasDisplay ?? false, (target) => command(`open-${target}`)),
      {
        label: "Make these the project’s defaults",
        icon: "gear",
        run: () => makeDefaults(defaultsOf(session.state.facts)),
      },
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
      const connection = shownConnection(session.state);
      setText(title, context.session.title);
      setAttribute(title, "title", context.session.title);
      setText(path, shortPath(context.project?.path ?? "", context.home));
      const name = session.state.facts.branch ?? "";
      branch.hidden = name === "";
      setText(branchName, name);
      setAttribute(branch, "title", name ? `Branch ${name}` : null);
      setAttribute(chip, "data-state", connection);
      setAttribute(dot, "data-state", connection);
      setText(label, `${agentName(context)} · ${CONNECTION_LABELS[connection]}`);
      setAttribute(chip, "title", {
        idle: "Starts with your next message",
        login: context.agent?.loginHint ? `Log in with ${context.agent.loginHint}` : undefined,
        unknown: "Liminal Builder is not answering",
      }[/** @type {string} */ (connection)]);
      rail.hidden = !railOffered;
      setAttribute(rail, "aria-pressed", String(railShown));
      if (document.title !== context.session.title) document.title = context.session.title;
    },
  };
}

/**
 * The current mode and model.
 * @param {import("../shared/protocol.js").SessionFacts} facts
 * @returns {Record<string, string>}
 */
const defaultsOf = ({ options = [] }) => Object.fromEntries(
  options.filter(({ category }) => category === "mode" || category === "model").map(({ id, value }) => [id, value]),
);
