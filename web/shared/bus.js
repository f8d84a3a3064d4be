// bus.js: the only owner of postMessage between windows. Shell and portlets share an origin; every message is checked
// for its origin, its source window and its shape.

/** @typedef {import("./protocol.js").ClientMessage} ClientMessage */
/** @typedef {import("./protocol.js").ErrorMessage} ErrorMessage */
/** @typedef {import("./messages.js").ServerFrame} ServerFrame */
/** @typedef {import("./protocol.js").SessionSummary} SessionSummary */
/** @typedef {import("./protocol.js").AgentInfo} AgentInfo */
/** @typedef {import("./protocol.js").Project} Project */
/** @typedef {Extract<import("./protocol.js").ServerMessage, { type: "agent:status" }>} AgentStatusMessage */

/**
 * What a portlet needs before it can show anything.
 * @typedef {{
 *   session: SessionSummary,
 *   agent: AgentInfo | null,
 *   project: Project | null,
 *   home: string,
 *   hasDisplay: boolean,
 *   status: AgentStatusMessage | null,
 * }} Context
 */
/**
 * @typedef {{ kind: "context", context: Context }
 *   | { kind: "server", messages: ServerFrame[] }
 *   | { kind: "answer", id: number, message: ServerFrame }
 *   | { kind: "failed", error: ErrorMessage }
 *   | { kind: "visible", visible: boolean }
 *   | { kind: "online", online: boolean }
 *   | { kind: "theme", theme: "dark" | "light" }
 *   | { kind: "focus", target: "input" | "log" | "lost" }
 *   | { kind: "command", name: string }} ToPortlet
 */
/**
 * @typedef {{ kind: "ready" }
 *   | { kind: "request", id: number, message: ClientMessage }
 *   | { kind: "retry" }
 *   | { kind: "report", text: string, detail: string | null }
 *   | { kind: "shortcut", name: string, index: number | null }
 *   | { kind: "defaults", options: Record<string, string> }
 *   | { kind: "command", name: string }} ToShell
 */

/**
 * Browsers handle input before posted messages. Messages that decide where the next key goes are therefore dispatched
 * as an event on the other window, which handles it at once. Only pages of our own origin can do that.
 */
const KEY_EVENT = "liminal:keys";
const KEY_KINDS = new Set(["shortcut", "focus"]);

/** The shape of each message: the type of every field. */
const SHAPES = {
  /** @type {Record<string, Record<string, string>>} */
  portlet: {
    context: { context: "object" },
    server: { messages: "array" },
    answer: { id: "number", message: "object" },
    failed: { error: "object" },
    visible: { visible: "boolean" },
    online: { online: "boolean" },
    theme: { theme: "string" },
    focus: { target: "string" },
    command: { name: "string" },
  },
  /** @type {Record<string, Record<string, string>>} */
  shell: {
    ready: {},
    request: { id: "number", message: "object" },
    retry: {},
    report: { text: "string" },
    shortcut: { name: "string" },
    defaults: { options: "object" },
    command: { name: "string" },
  },
};

/**
 * @param {any} value
 * @param {Record<string, Record<string, string>>} shapes
 */
function hasShape(value, shapes) {
  const fields = value
    && typeof value === "object"
    && typeof value.kind === "string"
    && Object.hasOwn(shapes, value.kind) ? shapes[value.kind] : undefined;
  return fields !== undefined && Object.entries(fields).every(([name, kind]) =>
    (kind === "array" ? Array.isArray(value[name]) : typeof value[name] === kind && value[name] !== null));
}

/**
 * The shell's side: receives messages of every portlet, with their source.
 * @param {(source: Window, message: ToShell) => void} onMessage
 */
export function listenToPortlets(onMessage) {
  addEventListener("message", (event) => {
    if (event.origin !== location.origin || !event.source || !hasShape(event.data, SHAPES.shell)) return;
    onMessage(/** @type {Window} */ (event.source), event.data);
  });
  addEventListener(KEY_EVENT, (event) => {
    const { source, message } = /** @type {CustomEvent} */ (event).detail ?? {};
    if (source && KEY_KINDS.has(message?.kind) && hasShape(message, SHAPES.shell)) onMessage(source, message);
  });
}

/**
 * @param {Window | null} portlet
 * @param {ToPortlet} message
 */
export function sendToPortlet(portlet, message) {
  if (KEY_KINDS.has(message.kind)) dispatch(portlet, message);
  else portlet?.postMessage(message, location.origin);
}

/**
 * The portlet's side: receives messages of the shell only.
 * @param {(message: ToPortlet) => void} onMessage
 */
export function listenToShell(onMessage) {
  addEventListener("message", (event) => {
    if (event.origin !== location.origin || event.source !== parent || parent === window) return;
    if (hasShape(event.data, SHAPES.portlet)) onMessage(event.data);
  });
  addEventListener(KEY_EVENT, (event) => {
    const { source, message } = /** @type {CustomEvent} */ (event).detail ?? {};
    if (source !== parent || parent === window) return;
    if (KEY_KINDS.has(message?.kind) && hasShape(message, SHAPES.portlet)) onMessage(message);
  });
}

/** @param {ToShell} message */
export function sendToShell(message) {
  if (parent === window) return;
  if (KEY_KINDS.has(message.kind)) dispatch(parent, message);
  else parent.postMessage(message, location.origin);
}

/** @param {Window | null} target @param {ToPortlet | ToShell} message */
function dispatch(target, message) {
  try {
    target?.dispatchEvent(new CustomEvent(KEY_EVENT, { detail: { source: window, message } }));
  } catch {
    // The browser shows its own error page in that frame, which handles no keys.
  }
}
