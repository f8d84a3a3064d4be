// portlets.js: one iframe per open session, alive while hidden. It carries messages between them and the server.
import { hearPortlets, tellPortlet } from "../shared/bus.js";
import { h, setAttribute } from "../shared/dom.js";
import { currentTheme } from "../shared/theme.js";
import { RequestError } from "./socket.js";

/** @typedef {import("../shared/bus.js").ToPortlet} ToPortlet */
/** @typedef {import("../shared/bus.js").ToShell} ToShell */
/** @typedef {import("../shared/protocol.js").ClientMessage} ClientMessage */
/** @typedef {import("../shared/messages.js").ServerFrame} ServerFrame */
/** @typedef {import("./store.js").Store} Store */
/**
 * `instance` and `seq`: how far this portlet has heard, and of which run of the server.
 * @typedef {{ sessionId: string, frame: HTMLIFrameElement, ready: boolean, wanted: boolean, seq: number, instance: string, focus: ToPortlet | null }} Portlet
 */

/** What a portlet may ask of the server, always about its own session. */
const ALLOWED = new Set(["session:send", "session:cancel", "session:page", "session:output", "session:set-option", "session:reconnect", "session:rename", "session:archive"]);

/**
 * @param {HTMLElement} root
 * @param {{
 *   store: Store,
 *   request: (message: ClientMessage) => Promise<ServerFrame>,
 *   spoke: (sessionId: string, message: ToShell) => void,
 * }} deps
 */
export function mountPortlets(root, { store, request, spoke }) {
  /** @type {Map<string, Portlet>} */
  const portlets = new Map();
  /** @type {string | null} */
  let current = null;
  let online = false;
  let frames = 0;

  hearPortlets((source, message) => {
    const portlet = [...portlets.values()].find(({ frame }) => frame.contentWindow === source);
    if (!portlet) return;
    if (message.kind === "ready") {
      portlet.ready = true;
      tell(portlet, { kind: "theme", theme: currentTheme() });
      tell(portlet, { kind: "online", online });
      tellContext(portlet);
      tell(portlet, { kind: "visible", visible: portlet.sessionId === current });
      if (portlet.focus && portlet.sessionId === current) focus(portlet, portlet.focus);
      void open(portlet);
    } else if (message.kind === "retry") void open(portlet);
    else if (message.kind === "request") void forward(portlet, message);
    else spoke(portlet.sessionId, message);
  });

  /** @param {Portlet} portlet @param {ToPortlet} message */
  function tell(portlet, message) {
    if (portlet.ready) tellPortlet(portlet.frame.contentWindow, message);
  }

  /** One that is not loaded yet gets it when it is. @param {Portlet} portlet @param {ToPortlet} message */
  function focus(portlet, message) {
    portlet.focus = portlet.ready ? null : message;
    portlet.frame.focus();
    tell(portlet, message);
  }

  /** @param {Portlet} portlet */
  function tellContext(portlet) {
    const session = store.state.sessions.get(portlet.sessionId);
    if (!session) return;
    tell(portlet, { kind: "context", context: {
      session, home: store.state.home, status: store.statusOf(session),
      agent: store.agent(session.cliType) ?? null, project: store.project(session.projectId) ?? null,
    } });
  }

  /** Asks for the session's items and joins its live stream. @param {Portlet} portlet */
  async function open(portlet) {
    if (!online || !portlet.ready || !portlet.wanted || !store.state.sessions.has(portlet.sessionId)) return;
    const { sessionId } = portlet;
    const since = portlet.instance === store.state.instance && portlet.seq > 0 ? { since: portlet.seq } : {};
    try {
      await request({ type: "session:open", sessionId, ...since });
    } catch (error) {
      if (error instanceof RequestError && error.error.code !== "OFFLINE") tell(portlet, { kind: "failed", error: /** @type {any} */ (error.error) });
    }
  }

  /** @param {Portlet} portlet @param {Extract<ToShell, { kind: "request" }>} asked */
  async function forward(portlet, { id, message }) {
    if (!ALLOWED.has(message.type)) return;
    const own = /** @type {ClientMessage} */ ({ ...message, sessionId: portlet.sessionId });
    try {
      tell(portlet, { kind: "answer", id, message: await request(own) });
    } catch (error) {
      const told = error instanceof RequestError ? error.error : { code: "INTERNAL_ERROR", message: String(error) };
      tell(portlet, { kind: "answer", id, message: /** @type {any} */ ({ type: "error", ...told }) });
    }
  }

  /** @param {string} sessionId */
  function ensure(sessionId) {
    const known = portlets.get(sessionId);
    if (known) return known;
    const frame = h("iframe", { class: "portlet", src: "/portlet", id: `portlet-${(frames += 1)}`, title: store.state.sessions.get(sessionId)?.title ?? "Session", "data-session": sessionId });
    /** @type {Portlet} */
    const portlet = { sessionId, frame, ready: false, wanted: false, seq: 0, instance: "", focus: null };
    portlets.set(sessionId, portlet);
    root.append(frame);
    return portlet;
  }

  return {
    ensure,
    /** @param {string} sessionId */
    frameId: (sessionId) => portlets.get(sessionId)?.frame.id ?? "",
    /** Loads what is needed to show it later at once. @param {string} sessionId */
    prepare(sessionId) {
      const portlet = ensure(sessionId);
      const continuity = store.state.sessions.get(sessionId)?.continuity;
      if (portlet.wanted || (continuity !== "live" && continuity !== "resumed")) return;
      portlet.wanted = true;
      void open(portlet);
    },
    /** @param {string | null} sessionId */
    show(sessionId) {
      if (sessionId !== null) {
        const portlet = ensure(sessionId);
        if (!portlet.wanted) {
          portlet.wanted = true;
          void open(portlet);
        }
      }
      if (sessionId === current) return;
      for (const portlet of portlets.values()) {
        const visible = portlet.sessionId === sessionId;
        if (!visible && portlet.sessionId !== current) continue;
        setAttribute(portlet.frame, "data-current", visible);
        tell(portlet, { kind: "visible", visible });
      }
      current = sessionId;
    },
    /** @param {string} sessionId */
    close(sessionId) {
      const portlet = portlets.get(sessionId);
      if (!portlet) return;
      portlets.delete(sessionId);
      portlet.frame.remove();
      if (current === sessionId) current = null;
      if (online && portlet.wanted) request({ type: "session:leave", sessionId }).catch(() => {});
    },
    /** @param {string} from @param {string} to */
    rename(from, to) {
      const portlet = portlets.get(from);
      if (!portlet) return;
      portlets.delete(from);
      portlet.sessionId = to;
      portlet.frame.dataset.session = to;
      portlets.set(to, portlet);
      if (current === from) current = to;
      tellContext(portlet);
    },
    /** Hands a message to the portlets it concerns. @param {ServerFrame} frame */
    deliver(frame) {
      const { requestId: _, ...message } = /** @type {any} */ (frame);
      if (frame.type === "agent:status" && frame.sessionId === undefined) {
        for (const portlet of portlets.values()) {
          if (store.state.sessions.get(portlet.sessionId)?.cliType === frame.cliType) tell(portlet, { kind: "server", message });
        }
        return;
      }
      const portlet = "sessionId" in frame && frame.sessionId ? portlets.get(frame.sessionId) : undefined;
      if (!portlet || frame.type === "session:page" || frame.type === "session:output") return;
      if ("seq" in frame) {
        portlet.seq = frame.seq;
        portlet.instance = store.state.instance;
      }
      tell(portlet, { kind: "server", message });
    },
    /** @param {boolean} now */
    setOnline(now) {
      if (online === now) return;
      online = now;
      for (const portlet of portlets.values()) tell(portlet, { kind: "online", online });
    },
    /** After a reconnect: everything that was missed. */
    resync() {
      for (const portlet of portlets.values()) {
        tellContext(portlet);
        void open(portlet);
      }
    },
    contextChanged: () => portlets.forEach(tellContext),
    /** @param {ToPortlet} message */
    tellAll: (message) => portlets.forEach((portlet) => tell(portlet, message)),
    /** @param {ToPortlet} message */
    tellCurrent(message) {
      const portlet = current === null ? undefined : portlets.get(current);
      if (!portlet) return;
      if (message.kind === "focus") focus(portlet, message);
      else tell(portlet, message);
    },
  };
}
