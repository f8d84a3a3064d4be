// header.js: title, directory, branch, connection, and the session's menu.
import { markOf } from "../shared/continuity.js";
import { closest, h, setAttribute, setText } from "../shared/dom.js";
import { icon } from "../shared/icons.js";
import { mod, nav } from "../shared/keys.js";
import { openEntries } from "../shared/open-in.js";
import { openMenu } from "../shared/menu.js";
import { shortPath } from "../shared/paths.js";
import { agentName, CONNECTION_LABELS, shownConnection } from "./connection.js";
import { createContinuityMark } from "./continuity-mark.js";

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
  const continuity = createContinuityMark();
  const chips = h("span", { class: "chips" }, chip, continuity.button);
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
  root.append(title, path, branch, h("span", { class: "space" }), chips, rail, more);

  root.addEventListener("click", (event) => {
    const what = closest(event, "[data-do]")?.dataset.do;
    if (what === "rail") toggleRail();
    if (what === "more") openMenu(more, "Session", [
      { label: "Rename", icon: "pencil", run: () => command("rename") },
      { label: "Copy conversation", icon: "copy", run: copyConversation },
      { label: "Export…", icon: "export", run: () => command("export") },
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
      setAttribute(chips, "data-state", connection);
      setAttribute(dot, "data-state", connection);
      setText(label, `${agentName(context)} · ${CONNECTION_LABELS[connection]}`);
      setAttribute(chip, "title", {
        idle: "No agent runs for this session. Your next message starts it; the agent is then asked to resume.",
        login: context.agent?.loginHint ? `Log in with ${context.agent.loginHint}` : undefined,
        unknown: "Liminal Builder is not answering",
      }[/** @type {string} */ (connection)]);
      continuity.draw(
        markOf(context.session.continuity, connection === "connected"),
        session.state.turns.some(({ record }) => record?.forgotten),
      );
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
