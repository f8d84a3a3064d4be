// An agent that speaks the Agent Client Protocol over stdio and does what the prompt asks. A file named
// `release` in its directory lets it continue where it waits. The conversation is stored in HOME and can be loaded
// again.
import { appendFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { STORY } from "./screenshot-story.js";

const SCRIPT = process.env.SCRIPT ?? "";
const store = join(process.env.HOME ?? ".", ".scripted-agent");
mkdirSync(store, { recursive: true });
// After a crash it does not start again until this file is removed.
const down = join(store, "down");
if (existsSync(down)) process.exit(1);
/** @type {Map<string, { cwd: string, cancelled: boolean }>} */
const sessions = new Map();
const write = (/** @type {object} */ message) =>
  process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
const logOf = (/** @type {string} */ id) => join(store, `${id}.jsonl`);

/** @param {string} sessionId @param {object} update */
function emit(sessionId, update) {
  appendFileSync(logOf(sessionId), `${JSON.stringify(update)}\n`);
  write({ method: "session/update", params: { sessionId, update } });
}
const text = (/** @type {string} */ content) => ({ type: "text", text: content });
const chunk = (/** @type {string} */ content) => ({ sessionUpdate: "agent_message_chunk", content: text(content) });

/** @param {string} cwd @param {() => boolean} [stop] @param {string} [name] */
async function released(cwd, stop = () => false, name = "release") {
  while (!existsSync(join(cwd, name)) && !stop()) await sleep(20);
}

const MARKDOWN =
  "## What changed\n\nIt has **bold** words and `code`.\n\n- one\n- two\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n"
  + "```ts\nconst answer: number = 42;\n```\n\nDone.";

/**
 * 48 KB in 2,000 pieces, 500 a second.
 * @param {string} id
 * @param {string} first
 * @param {(at: number) => string} piece
 * @param {string} last
 */
async function flood(id, first, piece, last) {
  const start = performance.now();
  emit(id, chunk(first));
  for (let at = 1; at <= 2000; at += 1) {
    emit(id, chunk(piece(at).padEnd(24).slice(0, 24).replace(/.$/, first ? "\n" : " ")));
    if (performance.now() < start + at * 2) await sleep(start + at * 2 - performance.now());
  }
  emit(id, chunk(last));
}

const COMMANDS = [
  { name: "compact", description: "Make room in the context" },
  { name: "review", description: "Review the changes" },
];
const offer = (/** @type {string} */ sessionId, /** @type {object[]} */ availableCommands) => write({
  method: "session/update",
  params: { sessionId, update: { sessionUpdate: "available_commands_update", availableCommands } },
});

/** @type {Record<string, (id: string, cwd: string, cancelled: () => boolean) => Promise<void>>} */
const SCENES = {
  hello: async (id) => emit(id, chunk("Hello from the agent.")),
  markdown: async (id) => {
    for (const part of MARKDOWN.match(/[\s\S]{1,5}/g) ?? []) {
      emit(id, chunk(part));
      await sleep(2);
    }
  },
  hold: async (id, cwd, cancelled) => {
    emit(id, chunk("The first part. "));
    await released(cwd, cancelled);
    if (!cancelled()) emit(id, chunk("The second part."));
  },
  deaf: async (id, cwd) => {
    emit(id, chunk("I do not listen."));
    await released(cwd, undefined, "listen");
  },
  learn: async (id, cwd, cancelled) => {
    emit(id, chunk("I am learning."));
    await released(cwd, cancelled);
    offer(id, [...COMMANDS, { name: "deploy", description: "Put it on the server" }]);
  },
  slow: async (id, _, cancelled) => {
    // Until it is stopped, however long that takes.
    for (let at = 1; at <= 20_000 && !cancelled(); at += 1) {
      emit(id, chunk(`word${at} `));
      if (at % 20 === 0) emit(id, chunk("\n\n"));
      await sleep(10);
    }
  },
  long: async (id) => {
    for (let at = 1; at <= 120; at += 1) emit(id, chunk(`Paragraph ${at} of a long answer.\n\n`));
  },
  think: async (id) => {
    emit(id, { sessionUpdate: "agent_thought_chunk", content: text("I should look at the file first.") });
    emit(id, chunk("I have thought."));
  },
  run: async (id, cwd, cancelled) => {
    emit(id, {
      sessionUpdate: "tool_call",
      toolCallId: "run1",
      title: "Run the tests",
      kind: "execute",
      status: "in_progress",
      rawInput: { command: "npm test" },
    });
    await released(cwd, cancelled);
    if (cancelled()) return;
    emit(id, {
      sessionUpdate: "tool_call_update",
      toolCallId: "run1",
      status: "completed",
      content: [{ type: "content", content: text("14 tests passed") }],
      rawOutput: { exit_code: 0 },
    });
    emit(id, chunk("They pass."));
  },
  interleave: async (id, cwd, cancelled) => {
    const update = (/** @type {string} */ call, /** @type {object} */ more) =>
      emit(id, { sessionUpdate: "tool_call_update", toolCallId: call, ...more });
    for (const call of ["one", "two"]) emit(id, {
      sessionUpdate: "tool_call",
      toolCallId: call,
      title: `Run ${call}`,
      kind: "execute",
      status: "in_progress",
      rawInput: { command: `make ${call}` },
    });
    for (const part of ["first", "second"]) for (const call of ["one", "two"]) {
      update(call, { _meta: { terminal_output_delta: { data: `${part} of ${call}\n` } } });
    }
    await released(cwd, cancelled);
    update("two", { status: "failed", rawOutput: { exit_code: 2 } });
    await released(cwd, cancelled, "release-one");
    update("one", { status: "completed", rawOutput: { exit_code: 0 } });
    emit(id, chunk("Both are done."));
  },
  rewrite: async (id, cwd, cancelled) => {
    const path = join(cwd, "rows.txt");
    const diff = {
      type: "diff",
      path,
      oldText: null,
      newText: Array.from({ length: 1000 }, (_, at) => `row ${at + 1}\n`).join(""),
    };
    const update = (/** @type {string} */ status, /** @type {string} */ content) => emit(id, {
      sessionUpdate: "tool_call_update",
      toolCallId: "rewrite1",
      status,
      content: [diff, { type: "content", content: text(content) }],
    });
    emit(id, {
      sessionUpdate: "tool_call",
      toolCallId: "rewrite1",
      title: "Write rows.txt",
      kind: "edit",
      status: "in_progress",
      locations: [{ path }],
    });
    update("in_progress", "It is being written.");
    await released(cwd, cancelled);
    update("failed", "It is being written. The disk is full.");
  },
  edit: async (id, cwd) => {
    emit(id, {
      sessionUpdate: "tool_call",
      toolCallId: "edit1",
      title: "Edit a.ts",
      kind: "edit",
      status: "completed",
      locations: [{ path: join(cwd, "a.ts") }],
      content: [{ type: "diff", path: join(cwd, "a.ts"), oldText: "let a = 1;\n", newText: "const a = 2;\n" }],
    });
    emit(id, chunk("Edited."));
  },
  explore: async (id, cwd) => {
    for (const name of ["a", "b", "c"]) emit(id, {
      sessionUpdate: "tool_call",
      toolCallId: `read-${name}`,
      title: `Read ${name}.ts`,
      kind: "read",
      status: "completed",
      locations: [{ path: join(cwd, `${name}.ts`) }],
      content: [{ type: "content", content: text(`contents of ${name}`) }],
    });
    emit(id, chunk("Read them all."));
  },
  broken: async (id) => {
    emit(id, {
      sessionUpdate: "tool_call",
      toolCallId: "bad1",
      title: "Edit x.ts",
      kind: "edit",
      status: "in_progress",
      rawInput: {},
    });
    emit(id, {
      sessionUpdate: "tool_call_update",
      toolCallId: "bad1",
      status: "failed",
      content: [{ type: "content", content: text("File changed since it was read.") }],
    });
    emit(id, chunk("That failed."));
  },
  plan: async (id) => {
    emit(id, { sessionUpdate: "plan", entries: [
      { content: "Read the code", priority: "high", status: "completed" },
      { content: "Change it", priority: "high", status: "in_progress" },
      { content: "Test it", priority: "low", status: "pending" },
    ] });
    emit(id, chunk("There is a plan."));
  },
  "flood-prose": (id) => flood(id, "", (at) => `word number ${at} and more `, "the last word"),
  "flood-code": (id) => flood(id, "```rust\n", (at) => `let x${at} = f(${at}); // ok\n`, "// the last word\n```"),
  "flood-mixed": (id) => flood(id, "# Mixed\n", (at) => (at % 100 === 0 ? "\n\n```rust\n"
    : at % 100 === 50 ? "```\n\n- a list\n- of two\n\n"
    : `let x${at} and more words `), "the last word"),
  wait: async () => void (await sleep(4000)),
  hostile: async (id) =>
    emit(
      id,
      chunk(
        "<img src=x onerror=\"parent.hacked=1\"><script>parent.hacked=1</script> "
          + "[x](javascript:parent.hacked=1) ![p](https://example.invalid/p.png)",
      ),
    ),
  markup: async (id) => emit(id, chunk("Before.\n\n<details>\n  <summary>More</summary>\n</details>\n\nAfter.")),
  print: async (id) => {
    emit(id, {
      sessionUpdate: "tool_call",
      toolCallId: "print1",
      title: "Print",
      kind: "execute",
      status: "in_progress",
      rawInput: { command: "seq 5000" },
    });
    emit(id, { sessionUpdate: "tool_call_update", toolCallId: "print1", status: "completed", content: [{
      type: "content",
      content: text(Array.from({ length: 5000 }, (_, at) => `line ${at + 1}`).join("\n")),
    }], rawOutput: { exit_code: 0 } });
  },
  hour: async (id, cwd) => {
    for (let at = 1; at <= 600; at += 1) {
      emit(id, {
        sessionUpdate: "tool_call",
        toolCallId: `h${at}`,
        title: "Run it",
        kind: "execute",
        status: "in_progress",
        rawInput: { command: `make step-${at}` },
      });
      emit(id, {
        sessionUpdate: "tool_call_update",
        toolCallId: `h${at}`,
        status: "completed",
        content: [{ type: "content", content: text("a line of what was printed\n".repeat(40)) }],
        rawOutput: { exit_code: 0 },
      });
      emit(id, chunk(`${MARKDOWN}\n\nStep ${at} of ${cwd} is done.\n\n`));
      if (at % 20 === 0) await sleep(10);
    }
    emit(id, chunk("The hour is over."));
  },
  crash: async (id) => {
    emit(id, chunk("Before the end. "));
    await sleep(50);
    process.stderr.write("scripted: out of memory\n");
    writeFileSync(down, "");
    process.exit(137);
  },
  stumble: async (id, cwd, cancelled) => {
    emit(id, chunk("The first part. "));
    await released(cwd, cancelled);
    throw new Error("rate limit");
  },
  fail: async () => {
    throw new Error("rate limit");
  },
  spend: async (id) => {
    emit(id, { sessionUpdate: "usage_update", used: 8, size: 200_000, cost: { amount: 0.5, currency: "USD" } });
    emit(id, chunk("Spent."));
  },
};

const modelOption = (/** @type {string} */ currentValue) => ({
  id: "model",
  name: "Model",
  category: "model",
  type: "select",
  currentValue,
  options: [{ value: "high", name: "gpt-5-codex · high" }, { value: "low", name: "gpt-5-codex · low" }],
});

/** What an agent may offer beside mode and model. */
const EXTRA = [["collaboration", "Collaboration mode", ["Default", "Plan"]], ["fast", "Fast mode", ["Off", "On"]]];
/** @type {Record<string, string>} */
const extraNow = { collaboration: "Default", fast: "Off" };
const extraOptions = () => [
  modelOption("high"),
  ...EXTRA.map(([id, name, values]) => ({
    id,
    name,
    type: "select",
    currentValue: extraNow[String(id)],
    options: /** @type {string[]} */ (values).map((value) => ({ value, name: value })),
  })),
];

/** @type {Record<string, (params: any) => Promise<object>>} */
const METHODS = {
  async initialize() {
    if (SCRIPT === "no-handshake") throw new Error("no handshake today");
    if (SCRIPT === "slow-start" || SCRIPT === "slow-refuse") await released(process.env.HOME ?? ".");
    return {
      protocolVersion: 1,
      agentCapabilities: { loadSession: SCRIPT !== "forgetful", promptCapabilities: {} },
      authMethods: [],
    };
  },
  async "session/new"({ cwd }) {
    if ((
      SCRIPT === "refuse" && !existsSync(join(process.env.HOME ?? ".", "release")))
      || (SCRIPT === "slow-refuse" && !existsSync(join(process.env.HOME ?? ".", "relent")))
    ) {
      appendFileSync(join(store, "refused"), "x");
      throw Object.assign(new Error("no more sessions"), { code: -32603 });
    }
    const sessionId = `s${process.pid}-${sessions.size + 1}`;
    sessions.set(sessionId, { cwd, cancelled: false });
    setTimeout(() => offer(sessionId, COMMANDS), 5);
    return { sessionId, ...(SCRIPT === "story" ? { configOptions: [modelOption("high")] }
      : SCRIPT === "options" ? { configOptions: extraOptions() }
      : {}), modes: {
        currentModeId: "ask",
        availableModes: [{ id: "ask", name: "Ask first" }, { id: "edits", name: "Accept edits" }],
      } };
  },
  async "session/load"({ sessionId, cwd }) {
    if (!existsSync(logOf(sessionId))) throw new Error("no such session");
    sessions.set(sessionId, { cwd, cancelled: false });
    for (const line of readFileSync(logOf(sessionId), "utf8").split("\n").filter(Boolean)) {
      write({ method: "session/update", params: { sessionId, update: JSON.parse(line) } });
    }
    return {};
  },
  async "session/set_mode"({ sessionId, modeId }) {
    setTimeout(() => write({
      method: "session/update",
      params: { sessionId, update: { sessionUpdate: "current_mode_update", currentModeId: modeId } },
    }), 1);
    return {};
  },
  async "session/set_config_option"({ configId, value }) {
    if (SCRIPT === "options") {
      extraNow[configId] = value;
      return { configOptions: extraOptions() };
    }
    return { configOptions: [modelOption(value)] };
  },
  async "session/prompt"({ sessionId, prompt }) {
    const session = sessions.get(sessionId);
    if (!session) throw new Error("no such session");
    session.cancelled = false;
    const content = prompt.map((/** @type {{ text?: string }} */ part) => part.text ?? "").join(" ");
    appendFileSync(
      logOf(sessionId),
      `${JSON.stringify({ sessionUpdate: "user_message_chunk", content: text(content) })}\n`,
    );
    const scene = Object.keys(SCENES).find((name) => new RegExp(`\\b${name}\\b`, "i").test(content)) ?? "hello";
    const story = SCRIPT === "story" && STORY[Object.keys(STORY).find((name) => content.includes(name)) ?? ""];
    if (story) await story({
      emit: (update) => emit(sessionId, update),
      cwd: session.cwd,
      wait: (name) => released(session.cwd, () => session.cancelled, name),
    });
    else if (content.startsWith("repeat: ")) emit(sessionId, chunk(content.slice("repeat: ".length)));
    else await SCENES[scene]?.(sessionId, session.cwd, () => session.cancelled);
    const usage = scene === "spend" ? { usage: { inputTokens: 3, outputTokens: 5, totalTokens: 8 } } : {};
    return { stopReason: session.cancelled ? "cancelled" : "end_turn", ...usage };
  },
};

for await (const line of createInterface({ input: process.stdin })) {
  const { id, method, params } = JSON.parse(line);
  if (method === "session/cancel") {
    const session = sessions.get(params.sessionId);
    if (session) session.cancelled = true;
  } else if (id !== undefined && method) {
    const handler = METHODS[method];
    (handler ? handler(params) : Promise.reject(Object.assign(new Error("method not found"), { code: -32601 })))
      .then((result) =>
        write({ id, result }), (error) => write({ id, error: { code: error.code ?? -32000, message: error.message } }));
  }
}
