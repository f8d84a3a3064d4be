// markdown.js: a conversation as markdown, for copying: user messages, answers, and tool calls in short. Pure.
import { stateOf, labelOf } from "./tool-labels.js";

/** @typedef {import("./session.js").Item} Item */
/** @typedef {import("../shared/protocol.js").TurnRecord} TurnRecord */
/**
 * @typedef {{
 *   title: string,
 *   agent: string,
 *   place: { root: string, home: string },
 *   items: Item[],
 *   records: Map<string, TurnRecord | undefined>,
 * }} Conversation
 */

/** How many lines of a tool's output are copied. */
const OUTPUT_LINES_MAX = 12;

/** Everything the agent wrote in these items, without its tools. @param {Item[]} items */
export function answerText(items) {
  return items.flatMap((item) => (item.type === "message"
    && item.origin === "agent"
    && !item.parentItemId
    && item.text.trim() ? [item.text.trim()] : []))
    .join("\n\n");
}

/** @param {Conversation} conversation @returns {string} */
export function conversationMarkdown({ title, agent, place, items, records }) {
  const parts = [`# ${title}`];
  let speaker = "";
  const add = (/** @type {string} */ who, /** @type {string} */ text) => {
    if (who !== speaker) parts.push(`## ${who}`);
    speaker = who;
    parts.push(text);
  };
  items.forEach((item, at) => {
    const text = item.text.trim();
    if (item.type === "tool_call") add(agent, callBlock(item, place));
    else if (item.type === "message" && text) {
      if (item.origin === "user") {
        speaker = "";
        add("You", text);
      } else if (item.origin === "system") parts.push(`_${text}_`);
      else add(agent, text);
    }
    const record = items[at + 1]?.turnId === item.turnId ? undefined : records.get(item.turnId);
    if (record?.status === "cancelled") parts.push("_Stopped_");
    if (record?.status === "error") parts.push(`_Turn ended: ${record.errorMessage ?? "it failed"}_`);
  });
  return `${parts.join("\n\n")}\n`;
}

/** @param {Extract<Item, { type: "tool_call" }>} call @param {{ root: string, home: string }} place */
function callBlock(call, place) {
  const { verb, target } = labelOf(call, place);
  const state = stateOf(call);
  const note = state === "failed" ? " (failed)" : state === "interrupted" ? " (interrupted)" : "";
  const lines = call.text.trimEnd().split("\n");
  const cut = lines.length - OUTPUT_LINES_MAX;
  const output = call.text.trim() === "" || (call.tool?.kind !== "execute" && state !== "failed") ? []
    : cut > 0 ? [`… ${cut} more ${cut === 1 ? "line" : "lines"}`, ...lines.slice(-OUTPUT_LINES_MAX)]
    : lines;
  return fenced([`${[verb, target].filter(Boolean).join(" ")}${note}`, ...output].join("\n"));
}

/** Wraps text in a fence longer than any run of backticks in it. @param {string} text */
function fenced(text) {
  const longest = Math.max(0, ...[...text.matchAll(/`+/g)].map(([run]) => run.length));
  const fence = "`".repeat(Math.max(3, longest + 1));
  return `${fence}text\n${text}\n${fence}`;
}
