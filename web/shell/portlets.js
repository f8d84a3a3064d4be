// portlets.js: one iframe per open session, kept alive while hidden. Passes messages between them and the server.
import { listenToPortlets, sendToPortlet } from "../shared/bus.js";
import { h, setAttribute } from "../shared/dom.js";
import { whenIdle } from "../shared/when-idle.js";
import { currentTheme } from "../shared/theme.js";
import { advance, openFrom } from "./cursor.js";
import { createMessageBatcher } from "./message-batcher.js";
import { RequestError } from "./socket.js";

/** @typedef {import("../shared/bus.js").ToPortlet} ToPortlet */
/** @typedef {import("../shared/bus.js").ToShell} ToShell */
/** @typedef {import("../shared/protocol.js").ClientMessage} ClientMessage */
/** @typedef {import("../shared/messages.js").ServerFrame} ServerFrame */
/** @typedef {import("./store.js").Store} Store */
/**
 * `asked`: its page was requested while the server was reachable. `ready`: the page has loaded, for the `loads`th time.
 * `wanted`: its session is to be shown. `joined`: a history has arrived since the page was loaded and the connection
 * was made. `cursor`: the last message this page received.
 * @typedef {{
 *   sessionId: string,
 *   frame: HTMLIFrameElement,
 *   asked: boolean,
 *   ready: boolean,
 *   loads: number,
 *   wanted: boolean,
 *   joined: boolean,
 *   cursor: import("./cursor.js").Cursor | null,
 *   focus: ToPortlet | null,
 *   batcher: ReturnType<typeof createMessageBatcher>,
 * }} Portlet
 */

/** What a portlet may request from the server, always for its own session. */
const ALLOWED = new Set([
  "session:send",
  "session:cancel",
  "session:page",
  "session:output",
  "session:set-option",
  "session:reconnect",
  "session:rename",
  "session:archive",
]);

/** The pause between batches of server messages: none for the portlet in view, longer for hidden ones. */
const SEEN_MS = 0;
const UNSEEN_MS = 250;

/** How long a new session waits for the page that will show it. Until then, typed text goes to the starting page. */
const SPARE_MS = 10_000;

/** How many sessions are loaded before the user opens them. Each has its own page, which is not cheap. */
const PREPARED_MAX = 12;

/**
 * @param {HTMLElement} root
 * @param {{
 *   store: Store,
 *   request: (message: ClientMessage) => Promise<ServerFrame>,
 *   onMessage: (sessionId: string, message: ToShell) => void,
 * }} deps
 */
export function mountPortlets(root, { store, request, onMessage }) {
  /** @type {Map<string, Portlet>} */
  const portlets = new Map();
  /** @type {string | null} */
  let current = null;
  let online = false;
  let frames = 0;
  /** Preloaded for whichever session is opened next; it has no session yet. @type {Portlet | null} */
  let spare = null;
  /** Callbacks waiting for it to load. @type {(() => void)[]} */
  const spareAwaited = [];
  /** Sessions to load when the page is idle. @type {string[]} */
  let waiting = [];

  const all = () => (spare ? [...portlets.values(), spare] : [...portlets.values()]);

  listenToPortlets((source, message) => {
    const portlet = all().find(({ frame }) => frame.contentWindow === source);
    if (!portlet) return;
    if (message.kind === "ready") {
      // A reloaded page has received nothing yet.
      Object.assign(portlet, { ready: true, loads: portlet.loads + 1, joined: false, cursor: null });
      portlet.batcher.clear();
      if (portlet !== spare) initialize(portlet);
      else for (const resume of spareAwaited.splice(0)) resume();
      loadMore();
    } else if (portlet === spare) return;
    else if (message.kind === "retry") void open(portlet);
    else if (message.kind === "request") void forward(portlet, message);
    else onMessage(portlet.sessionId, message);
  });

  /** Sends a loaded portlet everything it needs. @param {Portlet} portlet */
  function initialize(portlet) {
    send(portlet, { kind: "theme", theme: currentTheme() });
    send(portlet, { kind: "online", online });
    sendContext(portlet);
    send(portlet, { kind: "visible", visible: portlet.sessionId === current });
    // The user may have moved on while it was loading.
    const isAwaited = document.activeElement === portlet.frame || document.activeElement === document.body;
    if (portlet.focus && portlet.sessionId === current && isAwaited) focus(portlet, portlet.focus);
    portlet.focus = null;
    void open(portlet);
  }

  /** @param {Portlet} portlet @param {ToPortlet} message */
  function send(portlet, message) {
    if (!portlet.ready) return;
    portlet.batcher.flush();
    sendToPortlet(portlet.frame.contentWindow, message);
  }

  /** @param {Portlet} portlet @param {ServerFrame} message */
  function deliverTo(portlet, message) {
    if (portlet.ready) portlet.batcher.add(message);
  }

  /**
   * A portlet that is still loading gets the message once it has loaded.
   * @param {Portlet} portlet
   * @param {ToPortlet} message
   */
  function focus(portlet, message) {
    portlet.focus = portlet.ready ? null : message;
    // A page that is still loading would swallow keys. Until it is ready the shell receives them and keeps them for it.
    if (portlet.ready) portlet.frame.focus();
    else if (document.activeElement instanceof HTMLElement) document.activeElement.blur();
    send(portlet, message);
  }

  /** @param {Portlet} portlet */
  function sendContext(portlet) {
    const session = store.state.sessions.get(portlet.sessionId);
    if (!session) return;
    send(portlet, { kind: "context", context: {
      session, home: store.state.home, hasDisplay: store.state.hasDisplay, status: store.statusOf(session),
      agent: store.agent(session.cliType) ?? null, project: store.project(session.projectId) ?? null,
    } });
  }

  /** Requests the session's items and joins its live stream. @param {Portlet} portlet */
  async function open(portlet) {
    if (!online || !portlet.ready || !portlet.wanted || !store.state.sessions.has(portlet.sessionId)) return;
    const { sessionId } = portlet;
    try {
      await request({ type: "session:open", sessionId, ...openFrom(portlet.cursor) });
    } catch (error) {
      if (error instanceof RequestError && error.error.code !== "OFFLINE") {
        send(portlet, { kind: "failed", error: /** @type {any} */ (error.error) });
      }
    }
  }

  /** @param {Portlet} portlet @param {Extract<ToShell, { kind: "request" }>} asked */
  async function forward(portlet, { id, message }) {
    if (!ALLOWED.has(message.type)) return;
    const own = /** @type {ClientMessage} */ ({ ...message, sessionId: portlet.sessionId });
    const { loads } = portlet;
    const answer = await request(own).catch((reason) => {
      const error = reason instanceof RequestError ? reason.error : { code: "INTERNAL_ERROR", message: String(reason) };
      return /** @type {any} */ ({ type: "error", ...error });
    });
    // A reloaded page did not make this request.
    if (portlet.loads === loads) send(portlet, { kind: "answer", id, message: answer });
  }

  /** @param {string} sessionId */
  function ensure(sessionId) {
    const known = portlets.get(sessionId);
    if (known) return known;
    const portlet = spare ?? load();
    spare = null;
    portlet.sessionId = sessionId;
    portlet.frame.className = "portlet";
    portlet.frame.dataset.session = sessionId;
    drawTitle(portlet);
    portlets.set(sessionId, portlet);
    if (portlet.ready) initialize(portlet);
    loadMore();
    return portlet;
  }

  /** @param {Portlet} portlet */
  function drawTitle({ frame, sessionId }) {
    setAttribute(frame, "title", store.state.sessions.get(sessionId)?.title ?? "Session");
  }

  /** @param {string} sessionId */
  function want(sessionId) {
    const portlet = ensure(sessionId);
    if (portlet.wanted) return;
    portlet.wanted = true;
    void open(portlet);
  }

  /** @returns {Portlet} */
  function load() {
    const frame = h("iframe", { class: "spare-portlet", id: `portlet-${(frames += 1)}`, title: "Session" });
    const batcher = createMessageBatcher((messages) =>
      sendToPortlet(frame.contentWindow, { kind: "server", messages }), () =>
      (portlet.sessionId === current ? SEEN_MS : UNSEEN_MS));
    /** @type {Portlet} */
    const portlet = {
      sessionId: "",
      frame,
      asked: false,
      ready: false,
      loads: 0,
      wanted: false,
      joined: false,
      cursor: null,
      focus: null,
      batcher,
    };
    loadPage(portlet);
    root.append(frame);
    return portlet;
  }

  /**
   * Loads its page. Without a server it would only get the browser's error page.
   * @param {Portlet} portlet
   */
  function loadPage(portlet) {
    portlet.asked = online;
    portlet.ready = false;
    if (online) portlet.frame.src = "/portlet";
  }

  /** Loads what may be shown next, one at a time, and never while the one in view is loading. */
  const loadMore = () => whenIdle(() => {
    if (!online || all().some(({ asked, ready }) => asked && !ready)) return;
    const next = waiting.shift();
    if (next === undefined) return void (spare ??= load());
    want(next);
    loadMore();
  });

  /** @param {Portlet} portlet */
  function close({ sessionId, frame, wanted }) {
    portlets.delete(sessionId);
    frame.remove();
    if (current === sessionId) current = null;
    if (online && wanted) request({ type: "session:leave", sessionId }).catch(() => {});
  }

  return {
    /** @param {string} sessionId */
    frameId: (sessionId) => portlets.get(sessionId)?.frame.id ?? null,
    /** Whether the page of a session is loaded and receives the keys pressed in it. @param {string} sessionId */
    isReady: (sessionId) => portlets.get(sessionId)?.ready ?? false,
    /**
     * Preloads sessions with a live agent when the page is idle, so that they open instantly later.
     * @param {string[]} sessionIds
     */
    prepare(sessionIds) {
      const isLive = (/** @type {string} */ id) =>
        ["live", "resumed"].includes(store.state.sessions.get(id)?.continuity ?? "");
      waiting = sessionIds.filter((id) => isLive(id) && !portlets.get(id)?.wanted).slice(0, PREPARED_MAX);
      loadMore();
    },
    /**
     * Resolves when a page is preloaded for the next session, so that keys pressed then reach it.
     * @returns {Promise<void>}
     */
    async whenPrepared() {
      spare ??= load();
      if (!spare.ready) await new Promise((resolve) => {
        spareAwaited.push(() => resolve(undefined));
        setTimeout(resolve, SPARE_MS);
      });
    },
    /** @param {string | null} sessionId */
    show(sessionId) {
      if (sessionId !== null) want(sessionId);
      if (sessionId === current) return;
      for (const portlet of portlets.values()) {
        const visible = portlet.sessionId === sessionId;
        if (!visible && portlet.sessionId !== current) continue;
        setAttribute(portlet.frame, "data-current", visible);
        send(portlet, { kind: "visible", visible });
      }
      current = sessionId;
    },
    /** Keeps the portlets that have a tab and updates their titles. @param {string[]} tabs */
    update(tabs) {
      waiting = waiting.filter((id) => tabs.includes(id));
      for (const portlet of [...portlets.values()]) {
        if (tabs.includes(portlet.sessionId)) drawTitle(portlet);
        else close(portlet);
      }
    },
    /** Passes a message to the portlets it concerns. @param {ServerFrame} frame */
    deliver(frame) {
      const { requestId: _, ...message } = /** @type {any} */ (frame);
      if (frame.type === "agent:status" && frame.sessionId === undefined) {
        for (const portlet of portlets.values()) {
          if (store.state.sessions.get(portlet.sessionId)?.cliType === frame.cliType) deliverTo(portlet, message);
        }
        return;
      }
      const portlet = "sessionId" in frame && frame.sessionId ? portlets.get(frame.sessionId) : undefined;
      if (!portlet || frame.type === "session:page" || frame.type === "session:output") return;
      portlet.joined ||= frame.type === "session:history";
      portlet.cursor = advance(portlet.cursor, frame, portlet.joined);
      deliverTo(portlet, message);
    },
    /** @param {boolean} now */
    setOnline(now) {
      if (online === now) return;
      online = now;
      for (const portlet of all()) {
        // A page that was loading will not arrive. Pages that were never requested can be loaded now. So can one that
        // the browser replaced with its error page, which we may not inspect.
        if (!online && !portlet.ready) portlet.asked = false;
        else if (online && (!portlet.asked || portlet.frame.contentDocument === null)) loadPage(portlet);
        portlet.joined = false;
      }
      for (const portlet of portlets.values()) send(portlet, { kind: "online", online });
    },
    /** After a reconnect: fetches everything that was missed. */
    resync() {
      for (const portlet of portlets.values()) {
        sendContext(portlet);
        void open(portlet);
      }
      loadMore();
    },
    contextChanged: () => portlets.forEach(sendContext),
    /** @param {ToPortlet} message */
    sendToAll: (message) => portlets.forEach((portlet) => send(portlet, message)),
    /** @param {ToPortlet} message */
    sendToCurrent(message) {
      const portlet = current === null ? undefined : portlets.get(current);
      if (!portlet) return;
      if (message.kind === "focus") focus(portlet, message);
      else send(portlet, message);
    },
  };
}
