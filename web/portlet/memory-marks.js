// memory-marks.js: where lines stand between what the agent remembers and what it has removed from its own history.
// Pure.

/** @typedef {"forgotten" | "remembered"} Kind What is below the line. */

/** @type {Record<Kind, { text: string, meaning: string }>} */
export const MEMORY = {
  forgotten: {
    text: "No longer in the agent’s memory",
    meaning: "The agent has removed what follows from its own history, for example to make room. "
      + "It is kept here. Send it again if the agent needs it.",
  },
  remembered: { text: "In the agent’s memory from here on", meaning: "The agent still has what follows." },
};

/**
 * The turns with a line above them.
 * @param {import("./session.js").Turn[]} turns In the order they are shown.
 * @returns {Map<string, Kind>}
 */
export function memoryMarks(turns) {
  /** @type {Map<string, Kind>} */
  const marks = new Map();
  let before = false;
  for (const { id, record } of turns) {
    const forgotten = record?.forgotten ?? false;
    if (forgotten !== before) marks.set(id, forgotten ? "forgotten" : "remembered");
    before = forgotten;
  }
  return marks;
}
