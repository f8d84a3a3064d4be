// Sessions from before this server was started.
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/**
 * Sessions nobody has opened yet, under these titles.
 * @param {import("./app.js").App} app
 * @param {string[]} titles
 * @returns {string[]} Their ids.
 */
export function writeSessions(app, titles) {
  const at = new Date().toISOString();
  const project = {
    id: "00000000-0000-5000-8000-000000000001",
    path: app.directory("ferry"),
    name: "ferry",
    addedAt: at,
  };
  const sessions = titles.map((title, index) => ({
    id: `Scripted:past-${index}`,
    projectId: project.id,
    cliType: "Scripted",
    archived: false,
    title,
    lastActiveAt: at,
    createdAt: at,
  }));
  writeFileSync(join(app.data, "projects.json"), JSON.stringify({ version: 1, projects: [project] }), { mode: 0o600 });
  writeFileSync(join(app.data, "sessions.json"), JSON.stringify({ version: 1, sessions }), { mode: 0o600 });
  mkdirSync(join(app.home, ".scripted-agent"), { recursive: true });
  for (const [index, title] of titles.entries()) {
    const lines = [
      { sessionUpdate: "user_message_chunk", content: { type: "text", text: title } },
      { sessionUpdate: "agent_message_chunk", content: { type: "text", text: `Answer to ${index}.` } },
    ];
    writeFileSync(
      join(app.home, ".scripted-agent", `past-${index}.jsonl`),
      lines.map((line) => `${JSON.stringify(line)}\n`).join(""),
    );
  }
  return sessions.map(({ id }) => id);
}

/**
 * A session the agent remembers: turns of a question, a thought, a call and an answer.
 * @param {import("./app.js").App} app
 * @param {number} items
 */
export function writeHistory(app, items) {
  const path = app.directory("ferry");
  const at = new Date().toISOString();
  const project = { id: "00000000-0000-5000-8000-000000000001", path, name: "ferry", addedAt: at };
  const session = {
    id: "Scripted:past",
    projectId: project.id,
    cliType: "Scripted",
    archived: false,
    title: "A long history",
    lastActiveAt: at,
    createdAt: at,
  };
  writeFileSync(join(app.data, "projects.json"), JSON.stringify({ version: 1, projects: [project] }), { mode: 0o600 });
  writeFileSync(join(app.data, "sessions.json"), JSON.stringify({ version: 1, sessions: [session] }), { mode: 0o600 });
  const text = (/** @type {string} */ content) => ({ type: "text", text: content });
  const lines = Array.from({ length: items / 4 }, (_, turn) => [
    { sessionUpdate: "user_message_chunk", content: text(`Question ${turn + 1}`) },
    { sessionUpdate: "agent_thought_chunk", content: text("What was asked?") },
    {
      sessionUpdate: "tool_call",
      toolCallId: `c${turn}`,
      title: "Read a.ts",
      kind: "read",
      status: "completed",
      locations: [{ path: join(path, "a.ts") }],
      content: [{ type: "content", content: text("const a = 1;\n".repeat(10)) }],
    },
    {
      sessionUpdate: "agent_message_chunk",
      content: text(
        `Answer ${turn + 1} of many, with **bold** and \`code\`.\n\n- one\n- two\n\n`
          + `\`\`\`ts\nconst a = ${turn};\n\`\`\`\n`,
      ),
    },
  ]).flat();
  mkdirSync(join(app.home, ".scripted-agent"), { recursive: true });
  writeFileSync(
    join(app.home, ".scripted-agent", "past.jsonl"),
    lines.map((line) => `${JSON.stringify(line)}\n`).join(""),
  );
}
