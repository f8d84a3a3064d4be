// probe-result.js: what starting an agent for a moment has shown, in the user's terms.
import { h } from "../shared/dom.js";
import { glyph, icon } from "../shared/icons.js";
import { asError } from "./actions.js";

/** @typedef {import("../shared/protocol.js").ClientMessage} ClientMessage */
/** @typedef {import("../shared/protocol.js").ProbeOutcome} ProbeOutcome */

/** A place for the result, which assistive technology reads out, and a button that tries. */
export function createProbe() {
  const root = h("div", { class: "probe", role: "status", hidden: true });
  let asked = 0;

  /** @param {Node[]} nodes @param {string} state */
  function show(state, ...nodes) {
    root.dataset.state = state;
    root.replaceChildren(...nodes);
    root.hidden = false;
    root.scrollIntoView({ block: "nearest" });
  }

  return {
    root,
    /** What was shown is no longer about what stands there. */
    clear() {
      asked += 1;
      root.hidden = true;
      root.replaceChildren();
    },
    /**
     * @param {import("./settings-openers.js").Request} request
     * @param {Extract<ClientMessage, { type: "agent:probe" | "agent:probe-definition" }>} message
     * @returns {Promise<import("./socket.js").RequestError["error"] | null>} The refusal, if it was not tried at all.
     */
    async run(request, message) {
      if (root.dataset.state === "running" && !root.hidden) return null;
      const own = (asked += 1);
      show("running", glyph("starting"), h("p", {}, "Starting it for a moment…"));
      try {
        const answer = await request(message);
        if (own === asked && answer.type === "agent:probed") show(answer.outcome.kind, ...resultOf(answer.outcome));
      } catch (reason) {
        const error = asError(reason);
        if (own === asked) show("failed", glyph("error"), h("div", {}, h("p", { class: "probe-title" }, error.message), error.detail ? h("pre", {}, error.detail) : null));
        return error;
      }
      return null;
    },
  };
}

/** @param {ProbeOutcome} outcome @returns {Node[]} */
function resultOf(outcome) {
  if (outcome.kind === "failed") {
    return [glyph("error"), h("div", {}, h("p", { class: "probe-title" }, outcome.message), outcome.detail ? h("pre", { tabindex: 0, "aria-label": "What it wrote" }, outcome.detail) : null, h("p", {}, ...code(outcome.advice)))];
  }
  const answers = `It answers${outcome.version ? `, version ${outcome.version}` : ""}`;
  if (outcome.kind === "needs_login") {
    return [icon("info"), h("div", {}, h("p", { class: "probe-title" }, `${answers}, but it is not logged in`), h("p", {}, ...code(outcome.advice)))];
  }
  return [icon("check"), h("div", {}, h("p", { class: "probe-title" }, answers), h("p", {}, loginOf(outcome.login)))];
}

/** @param {import("../shared/protocol.js").ProbeLogin} login */
function loginOf(login) {
  if (login.kind === "account") return `Logged in (${login.account}).`;
  return login.kind === "gives_session" ? "It gives a session, so it is ready to be used." : "It does not say whether it is logged in.";
}

/** Text with what stands in backquotes as code. @param {string} text */
const code = (text) => text.split("`").map((part, at) => (at % 2 ? h("code", {}, part) : part));
