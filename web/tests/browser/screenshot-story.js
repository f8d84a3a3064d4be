// screenshot-story.js: the conversations shown in the design, played by an agent. For screenshots.
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

/** @typedef {{ emit: (update: object) => void, cwd: string, wait: (name: string) => Promise<void> }} Stage */

const text = (/** @type {string} */ content) => ({ type: "text", text: content });
const STEPS = [
  "Trace a frame from agent to portlet",
  "Add the bounded queue",
  "Pause the reader at the high-water mark",
  "Prove no frame is lost",
  "Resume on drain",
  "Document the protocol change",
];

/** @param {Stage} stage @param {number} done */
const plan = ({ emit }, done) =>
  emit({ sessionUpdate: "plan", entries: STEPS.map((content, at) => ({
    content,
    priority: "medium",
    status: at < done ? "completed" : at === done ? "in_progress" : "pending",
  })) });

/** @param {Stage} stage @param {string} content @param {number} [pauseMs] */
async function streamText({ emit }, content, pauseMs = 4) {
  for (const part of content.match(/[\s\S]{1,12}/g) ?? []) {
    emit({ sessionUpdate: "agent_message_chunk", content: text(part) });
    await sleep(pauseMs);
  }
}

let calls = 0;
/**
 * A call that takes its time and gives what it found.
 * @param {Stage} stage
 * @param {object} call
 * @param {object} end
 * @param {number} ms
 */
async function call({ emit }, call, end, ms) {
  const toolCallId = `story-${process.pid}-${(calls += 1)}`;
  emit({ sessionUpdate: "tool_call", toolCallId, status: "in_progress", ...call });
  await sleep(ms);
  emit({ sessionUpdate: "tool_call_update", toolCallId, status: "completed", ...end });
}

/** @param {Stage} stage @param {string} path @param {string} content @param {number} ms */
const read = (stage, path, content, ms) => call(
  stage,
  { title: `Read ${path}`, kind: "read", locations: [{ path: join(stage.cwd, path), line: 1 }] },
  { content: [{ type: "content", content: text(content) }] },
  ms,
);
/** @param {Stage} stage @param {string} query */
const search = (stage, query) => call(
  stage,
  { title: `Search ${query}`, kind: "search", rawInput: { query } },
  { content: [{ type: "content", content: text("src/ws/relay.ts:41") }] },
  90,
);

const SEND = "  private send(id: SessionId, frame: Frame) {";
const BEFORE = ["export class Relay {", SEND, "    this.socket.send(encode(frame));", "  }", "}", ""].join("\n");
const AFTER = [
  "export class Relay {",
  SEND,
  "    const q = this.queues.get(id) ?? this.open(id);",
  "    if (!q.offer(frame)) this.pause(id);",
  "    this.schedule(id);",
  "  }",
  "}",
  "",
].join("\n");

/** @param {Stage} stage @param {string} path @param {string | null} oldText @param {string} newText */
function edit(stage, path, oldText, newText) {
  const whole = join(stage.cwd, path);
  return call(
    stage,
    { title: `Edit ${path}`, kind: "edit", locations: [{ path: whole }] },
    { content: [{ type: "diff", path: whole, oldText, newText }] },
    220,
  );
}

const OUTPUT = [
  "\x1b[32m✓\x1b[0m test/relay.test.ts \x1b[2m› keeps order across a pause            38 ms\x1b[0m\n",
  "\x1b[32m✓\x1b[0m test/relay.test.ts \x1b[2m› resumes on drain                      21 ms\x1b[0m\n",
  "\x1b[32m✓\x1b[0m test/relay.test.ts \x1b[2m› closes the queue with the session     12 ms\x1b[0m\n",
  "\x1b[33m…\x1b[0m test/relay.soak.ts \x1b[2m› 10 sessions × 10,000 frames          \x1b[0m 64%",
];

const REPORT = `### What changed

Each session now owns one queue of 256 frames. When it fills, the agent's reader pauses; when the portlet drains it, \
reading resumes. The **wire format is unchanged**.

| Case | Before | Now | p99 |
| :--- | :--- | :--- | ---: |
| Slow portlet | Frames dropped | Reader paused at 256 frames | 3.1 ms |
| Burst of 10,000 frames | 48 ms stalls | Drained in 16 ms slices | 7.8 ms |
| Socket closed | Silent loss | Replayed from last ack | n/a |

- [x] Bounded queue per session
- [x] Pause and resume on drain
- [ ] Document the high-water mark in \`docs/protocol.md\`

\`\`\`typescript src/ws/queue.ts
export class BoundedQueue<T> {
  readonly #items: T[] = [];
  constructor(private readonly limit = 256) {}

  // false asks the caller to stop reading until the next drain
  offer(item: T): boolean {
    return this.#items.push(item) < this.limit;
  }
}
\`\`\`

The soak test passes: 100,000 frames in, 100,000 out, in order. \
Next I will write the high-water mark into the protocol no`;

/** @type {Record<string, (stage: Stage) => Promise<void>>} Keyed by a word of the prompt. */
export const STORY = {
  async relay(stage) {
    const { emit, wait } = stage;
    plan(stage, 0);
    emit({ sessionUpdate: "usage_update", used: 62_000, size: 200_000 });
    for (const part of [
      "The relay writes straight to the socket, ",
      "so a slow reader has nowhere to push back. ",
      "A queue without a bound only moves the problem.",
    ]) {
      emit({ sessionUpdate: "agent_thought_chunk", content: text(part) });
      await sleep(700);
    }
    for (const path of [
      "src/ws/socket.ts",
      "src/ws/frame.ts",
      "src/ws/session.ts",
      "src/ws/portlet.ts",
      "test/relay.test.ts",
    ]) await read(stage, path, "export {};\n", 180);
    for (const query of ["socket.send", "drain"]) await search(stage, query);
    await streamText(
      stage,
      "The relay calls `socket.send` for every frame and ignores the return value. "
        + "I will put a bounded queue in front of it and pause the agent's reader at the high-water mark.",
    );
    plan(stage, 3);
    await edit(stage, "src/ws/relay.ts", BEFORE, AFTER);
    await edit(stage, "src/ws/queue.ts", null, `${Array.from({ length: 38 }, (_, at) => `// ${at + 1}`).join("\n")}\n`);
    emit({
      sessionUpdate: "tool_call",
      toolCallId: "story-bad",
      title: "Edit test/relay.test.ts",
      kind: "edit",
      status: "in_progress",
      locations: [{ path: join(stage.cwd, "test/relay.test.ts") }],
    });
    await sleep(110);
    emit({
      sessionUpdate: "tool_call_update",
      toolCallId: "story-bad",
      status: "failed",
      content: [{ type: "content", content: text("File changed since it was read. Read it again before editing.") }],
    });
    emit({
      sessionUpdate: "tool_call",
      toolCallId: "story-run",
      title: "Run the tests",
      kind: "execute",
      status: "in_progress",
      rawInput: { command: "pnpm vitest run relay --reporter=verbose" },
    });
    for (const data of OUTPUT) {
      emit({ sessionUpdate: "tool_call_update", toolCallId: "story-run", _meta: { terminal_output_delta: { data } } });
      await sleep(60);
    }
    await wait("tests");
    emit({
      sessionUpdate: "tool_call_update",
      toolCallId: "story-run",
      _meta: {
        terminal_output_delta: {
          data:
            "\r\x1b[K\x1b[32m✓\x1b[0m test/relay.soak.ts "
            + "\x1b[2m› 10 sessions × 10,000 frames           19.4 s\x1b[0m\n",
        },
      },
    });
    emit({
      sessionUpdate: "tool_call_update",
      toolCallId: "story-run",
      status: "completed",
      rawOutput: { exit_code: 0 },
    });
    plan(stage, 5);
    emit({ sessionUpdate: "usage_update", used: 74_000, size: 200_000 });
    await streamText(stage, REPORT);
    await wait("report");
    await streamText(stage, "tes.");
  },
  async webhook(stage) {
    await read(stage, "src/hooks.ts", "export {};\n", 200);
    await call(
      stage,
      { title: "pnpm tsc --noEmit", kind: "execute", rawInput: { command: "pnpm tsc --noEmit" } },
      { content: [{ type: "content", content: text("") }], rawOutput: { exit_code: 0 } },
      300,
    );
    await streamText(
      stage,
      "Each endpoint keeps a `current` and a `previous` secret. "
        + "Verification accepts either for 24 hours after a rotation.",
    );
    await edit(
      stage,
      "db/0042_webhook_secrets.sql",
      null,
      "create table webhook_secrets (\n  endpoint_id  uuid references endpoints(id),\n"
        + "  sealed       bytea not null,\n  expires_at   timestamptz\n);\n",
    );
  },
  async feed(stage) {
    await streamText(stage, "I will render only the rows in view. ");
    await stage.wait("never");
  },
  "--json": async (stage) => stage.wait("never"),
  async flaky(stage) {
    await stage.wait("go");
    await streamText(stage, "The refresh test waited for a timer. It waits for the token now.");
  },
  async Dark(stage) {
    await stage.wait("go");
    await streamText(stage, "Settings follow the system's theme now.");
  },
  async regression(stage) {
    await stage.wait("go");
    throw new Error("rate limit");
  },
};
