// probe-result.js: runs a short test start of an agent and shows its result to the user.
import { h } from "../shared/dom.js";
import { glyph, icon } from "../shared/icons.js";
import { asError } from "./actions.js";

/** @typedef {import("../shared/protocol.js").ClientMessage} ClientMessage */
/** @typedef {import("../shared/protocol.js").ProbeOutcome} ProbeOutcome */

/** The element for the result, which screen readers announce, and the function that runs the probe. */
export function createProbe() {
  const root = h("div", { class: "probe", role: "status", hidden: true });
  /** Counts requests, so that an outdated answer is ignored. */
  let requests = 0;

  /** @param {Node[]} nodes @param {string} state */
  function show(state, ...nodes) {
    root.dataset.state = state;
    root.replaceChildren(...nodes);
    root.hidden = false;
    root.scrollIntoView({ block: "nearest" });
  }

  return {
    root,
    /** Hides a result that no longer matches the form. */
    clear() {
      requests += 1;
      root.hidden = true;
      root.replaceChildren();
    },
    /**
     * @param {import("./settings-openers.js").Request} request
     * @param {Extract<ClientMessage, { type: "agent:probe" | "agent:probe-definition" }>} message
     * @returns {Promise<import("./socket.js").RequestError["error"] | null>} The error, if the probe did not run.
     */
    async run(request, message) {
      if (root.dataset.state === "running" && !root.hidden) return null;
      const own = (requests += 1);
      show("running", glyph("starting"), h("p", {}, "Starting it briefly…"));
      try {
        const answer = await request(message);
        if (own === requests && answer.type === "agent:probed") show(answer.outcome.kind, ...resultOf(answer.outcome));
      } catch (reason) {
        const error = asError(reason);
        if (own === requests) {
          show("failed", glyph("error"), h("div", {},
            h("p", { class: "probe-title" }, error.message),
            error.detail ? h("pre", {}, error.detail) : null));
        }
        return error;
      }
      return null;
    },
  };
}

/** @param {ProbeOutcome} outcome @returns {Node[]} */
function resultOf(outcome) {
  if (outcome.kind === "failed") {
    return [glyph("error"), h("div", {},
      h("p", { class: "probe-title" }, outcome.message),
      outcome.detail ? h("pre", { tabindex: 0, "aria-label": "Output of the agent" }, outcome.detail) : null,
      h("p", {}, ...code(outcome.advice)))];
  }
  const answers = `It answers${outcome.version ? `, version ${outcome.version}` : ""}`;
  if (outcome.kind === "needs_login") {
    return [icon("info"), h("div", {},
      h("p", { class: "probe-title" }, `${answers}, but it is not logged in`),
      h("p", {}, ...code(outcome.advice)))];
  }
  return [icon("check"), h("div", {}, h("p", { class: "probe-title" }, answers), h("p", {}, loginOf(outcome.login)))];
}

/** @param {import("../shared/protocol.js").ProbeLogin} login */
function loginOf(login) {
  if (login.kind === "account") return `Logged in (${login.account}).`;
  return login.kind === "gives_session"
    ? "It can start a session, so it is ready to use."
    : "It does not report whether it is logged in.";
}

/** Text whose parts in backquotes become code. @param {string} text */
const code = (text) => text.split("`").map((part, at) => (at % 2 ? h("code", {}, part) : part));
