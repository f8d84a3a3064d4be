import assert from "node:assert/strict";
import test from "node:test";
import { answerText, conversationMarkdown } from "../../portlet/markdown.js";

const place = { root: "/home/dev/demo", home: "/home/dev" };
/**
 * @param {string} turnId
 * @param {"user" | "agent" | "system"} origin
 * @param {string} text
 * @param {object} [more]
 * @returns {any}
 */
const message = (turnId, origin, text, more = {}) => ({
  type: "message",
  turnId,
  origin,
  text,
  status: "complete",
  html: [],
  ...more,
});
/** @param {string} turnId @param {object} tool @param {string} text @param {object} [more] @returns {any} */
const call = (turnId, tool, text, more = {}) => ({
  type: "tool_call",
  turnId,
  toolName: "Bash",
  toolArguments: {},
  status: "complete",
  text,
  html: [],
  tool: { interrupted: false, ...tool },
  ...more,
});

test("a conversation is copied with its speakers, and tool calls in short", () => {
  const items = [
    message("1", "user", "Fix it\n"),
    { ...message("1", "agent", "hm"), type: "thinking" },
    message("1", "agent", "I will."),
    call("1", { kind: "execute", command: "npm test" }, "2 passed\n"),
    call("1", { kind: "read", locations: [{ path: "/home/dev/demo/a.ts" }] }, "const a = 1;"),
    message("1", "agent", "**Done.**"), message("2", "user", "Thanks"), message("2", "agent", "Bye"),
  ];
  assert.equal(conversationMarkdown({ title: "Fix it", agent: "Codex", place, items, records: new Map() }),
    "# Fix it\n\n## You\n\nFix it\n\n## Codex\n\nI will.\n\n```text\nRan npm test\n2 passed\n```\n\n"
      + "```text\nRead a.ts\n```\n\n**Done.**\n\n## You\n\nThanks\n\n## Codex\n\nBye\n");
});

test("a long output is copied by its end, and no text ends its fence", () => {
  const items = [call(
    "1",
    { kind: "execute", command: "seq 20" },
    Array.from({ length: 20 }, (_, at) => `line ${at + 1}`).join("\n"),
  ), call("1", { kind: "execute", command: "cat a.md" }, "```js\n````", { toolOutputIsError: true })];
  const text = conversationMarkdown({ title: "t", agent: "a", place, items, records: new Map() });
  assert.match(text, /Ran seq 20\n… 8 more lines\nline 9\n/);
  assert.match(text, /\n`````text\nRan cat a\.md \(failed\)\n```js\n````\n`````\n/);
});

test("how a turn ended is copied behind its last item", () => {
  const items = [
    message("1", "user", "go"),
    message("1", "agent", "half"),
    message("2", "user", "again"),
    message("2", "agent", "no"),
  ];
  const records = new Map(/** @type {any} */ ([
    ["1", { status: "cancelled" }],
    ["2", { status: "error", errorMessage: "rate limit" }],
  ]));
  const text = conversationMarkdown({ title: "t", agent: "a", place, items, records });
  assert.match(text, /half\n\n_Stopped_\n\n## You\n\nagain/);
  assert.match(text, /no\n\n_Turn ended: rate limit_\n$/);
});

test("an answer is all the agent wrote in a turn, without tools, thoughts and what sub-agents wrote", () => {
  const items = [
    message("1", "user", "q"),
    message("1", "agent", "First.\n"),
    call("1", { kind: "execute" }, "x"),
    message("1", "agent", "inner", { parentItemId: "p" }),
    message("1", "agent", "Last."),
  ];
  assert.equal(answerText(items), "First.\n\nLast.");
});
