// messages.js: checks messages as they arrive from the socket. Types are in protocol.d.ts.

/** @typedef {import("./protocol.js").ServerMessage & { requestId?: string }} ServerFrame */

/** What each message must have, beside its type. */
const FIELDS = /** @type {Record<string, Record<string, string>>} */ ({
  "server:hello": { version: "string", instance: "string", home: "string", notices: "array", hasDisplay: "boolean" },
  "server:notices": { notices: "array" },
  "project:list": { projects: "array" },
  "project:added": { project: "object" },
  "project:updated": { project: "object" },
  "project:removed": { projectId: "string" },
  "session:list": { projectId: "string", sessions: "array" },
  "session:created": { sessionId: "string", projectId: "string", session: "object" },
  "session:history": {
    sessionId: "string",
    entries: "array",
    journalId: "string",
    epoch: "number",
    seq: "number",
    more: "boolean",
    turns: "array",
    facts: "object",
    session: "object",
  },
  "session:upsert": { sessionId: "string", seq: "number", payload: "object" },
  "session:turn": { sessionId: "string", seq: "number", payload: "object" },
  "session:page": { sessionId: "string", entries: "array", more: "boolean", turns: "array" },
  "session:output": { sessionId: "string", itemId: "string", html: "array" },
  "session:archived": { sessionId: "string" },
  "session:restored": { sessionId: "string", session: "object" },
  "session:title-updated": { sessionId: "string", title: "string" },
  "session:state": { sessionId: "string", lastActiveAt: "string", attention: "string", continuity: "string" },
  "session:facts": { sessionId: "string", facts: "object" },
  "settings:current": { settings: "object" },
  "path:completions": { prefix: "string", paths: "array" },
  "path:recents": { directories: "array" },
  "agent:list": { agents: "array" },
  "agent:config": { config: "object" },
  "agent:probed": { outcome: "object" },
  "agent:status": { cliType: "string", status: "string" },
  ack: {},
  error: { code: "string", message: "string" },
});

export const SERVER_TYPES = Object.keys(FIELDS);

/**
 * @param {unknown} text
 * @returns {ServerFrame | null} `null` for an unknown message.
 */
export function parseServerFrame(text) {
  if (typeof text !== "string") return null;
  try {
    const value = JSON.parse(text);
    return isServerMessage(value) ? value : null;
  } catch {
    return null;
  }
}

/**
 * @param {any} value
 * @returns {value is ServerFrame}
 */
export function isServerMessage(value) {
  const fields = value
    && typeof value === "object"
    && typeof value.type === "string"
    && Object.hasOwn(FIELDS, value.type) ? FIELDS[value.type] : undefined;
  return fields !== undefined && Object.entries(fields).every(([name, kind]) => hasKind(value[name], kind));
}

/**
 * @param {unknown} value
 * @param {string} kind
 */
function hasKind(value, kind) {
  if (kind === "array") return Array.isArray(value);
  if (kind === "object") return typeof value === "object" && value !== null && !Array.isArray(value);
  return typeof value === kind;
}
