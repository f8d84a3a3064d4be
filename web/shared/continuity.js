// continuity.js: whether the agent behind a session remembers what is shown, in words and as an icon. Pure.

/** @typedef {import("./protocol.js").Continuity} Continuity */
/**
 * A session without a running agent has no mark: nothing is known until the agent resumes it.
 * @typedef {Exclude<Continuity, "dormant">} Mark
 */

/** @type {Record<Mark, { label: string, meaning: string, icon: string | null }>} */
export const CONTINUITY = {
  live: { label: "Live", meaning: "The agent runs and remembers everything shown here.", icon: null },
  resumed: {
    label: "Resumed by the agent",
    meaning: "The agent was started again and read its own record of the session.",
    icon: "refresh",
  },
  copy: {
    label: "Copy only",
    meaning: "The text is kept here, but the agent does not remember it. Your next message starts afresh.",
    icon: "copy",
  },
};

/**
 * Live and resumed are true only while the agent is connected; a copy stays one.
 * @param {Continuity} continuity
 * @param {boolean} connected
 * @returns {Mark | null}
 */
export function markOf(continuity, connected) {
  if (continuity === "dormant") return null;
  return continuity === "copy" || connected ? continuity : null;
}

/**
 * @param {Mark} mark
 * @param {boolean} hasForgotten The agent has removed some turns from its own history.
 */
export function meaningOf(mark, hasForgotten) {
  if (!hasForgotten || mark === "copy") return CONTINUITY[mark].meaning;
  const exception = " It does not remember the turns under “No longer in the agent’s memory”.";
  return (mark === "live" ? "The agent runs and remembers what is shown here." : CONTINUITY[mark].meaning) + exception;
}

/**
 * The mark of a session in a list, where only what is unusual is marked.
 * @param {{ continuity: Continuity, attention: import("./protocol.js").Attention }} session
 */
export function listMark({ continuity, attention }) {
  const connected = !["starting", "reconnecting", "disconnected"].includes(attention);
  const mark = markOf(continuity, connected);
  return mark === "resumed" || mark === "copy" ? CONTINUITY[mark] : null;
}
