// portlets.js: one iframe per open session, alive while hidden. It carries messages between them and the server.
import { listenToPortlets, sendToPortlet } from "../shared/bus.js";
import { h, setAttribute } from "../shared/dom.js";
import { whenIdle } from "../shared/when-idle.js";
import { currentTheme } from "../shared/theme.js";
import { createMessageBatcher } from "./message-batcher.js";
import { RequestError } from "./socket.js";

/** @typedef {import("../shared/bus.js").ToPortlet} ToPortlet */
/** @typedef {import("../shared/bus.js").ToShell} ToShell */
/** @typedef {import("../shared/protocol.js").ClientMessage} ClientMessage */
/** @typedef {import("../shared/messages.js").ServerFrame} ServerFrame */
/** @typedef {import("./store.js").Store} Store */
/**
 * `asked`: its page was asked of a server that is there. `ready`: the page is there, for the `loads`th time. `wanted`:
 * its session is to be shown. `instance` and `seq`: how far this page has heard, and of which run of the server.
 * @typedef {{
 *   sessionId: string,
 *   frame: HTMLIFrameElement,
 *   asked: boolean,
 *   ready: boolean,
 *   loads: number,
 *   wanted: boolean,
 *   seq: number,
 *   instance: string,
 *   focus: ToPortlet | null,
 *   handover: ReturnType<typeof createMessageBatcher>,
 * }} Portlet
 */

/** What a portlet may ask of the server, always about its own session. */
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

/**
 * What the server says reaches a portlet so often: in view as soon as they come, behind the others when there is time.
 */
const SEEN_MS = 0;
const UNSEEN_MS = 250;

/** How long a new session waits for the page that will show it. Until then, what is typed goes to the starting page. */
const SPARE_MS = 10_000;

/** Sessions that are loaded before anybody looks at them. Each has a page of its own, which is not cheap. */
const PREPARED_MAX = 12;

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
  /** Loaded while there was time, for whatever is opened next; it has no session yet. @type {Portlet | null} */
  let spare = null;
  /** Who waits for it to be loaded. @type {(() => void)[]} */
  const spareAwaited = [];
  /** Sessions to load when there is time. @type {string[]} */
  let waiting = [];

  const all = () => (spare ? [...portlets.values(), spare] : [...portlets.values()]);

  listenToPortlets((source, message) => {
    const portlet = all().find(({ frame }) => frame.contentWindow === source);
    if (!portlet) return;
    if (message.kind === "ready") {
      // A page that was loaded again has heard nothing yet.
      Object.assign(portlet, { ready: true, loads: portlet.loads + 1, seq: 0, instance: "" });
      portlet.handover.clear();
      if (portlet !== spare) greet(portlet);
      else for (const go of spareAwaited.splice(0)) go();
      loadMore();
    } else if (portlet === spare) return;
    else if (message.kind === "retry") void open(portlet);
    else if (message.kind === "request") void forward(portlet, message);
    else spoke(portlet.sessionId, message);
  });

  /** Tells a portlet that is loaded all it must know. @param {Portlet} portlet */
  function greet(portlet) {
    tell(portlet, { kind: "theme", theme: currentTheme() });
    tell(portlet, { kind: "online", online });
    sendContext(portlet);
    tell(portlet, { kind: "visible", visible: portlet.sessionId === current });
    // The user may have gone elsewhere while it was loaded.
    const isAwaited = document.activeElement === portlet.frame || document.activeElement === document.body;
    if (portlet.focus && portlet.sessionId === current && isAwaited) focus(portlet, portlet.focus);
    portlet.focus = null;
    void open(portlet);
  }

  /** @param {Portlet} portlet @param {ToPortlet} message */
  function tell(portlet, message) {
    if (!portlet.ready) return;
    portlet.handover.flush();
    sendToPortlet(portlet.frame.contentWindow, message);
  }

  /** @param {Portlet} portlet @param {ServerFrame} message */
  function pass(portlet, message) {
    if (portlet.ready) portlet.handover.add(message);
  }

  /** One that is not loaded yet gets it when it is. @param {Portlet} portlet @param {ToPortlet} message */
  function focus(portlet, message) {
    portlet.focus = portlet.ready ? null : message;
    portlet.frame.focus();
    tell(portlet, message);
  }

  /** @param {Portlet} portlet */
  function sendContext(portlet) {
    const session = store.state.sessions.get(portlet.sessionId);
    if (!session) return;
    tell(portlet, { kind: "context", context: {
      session, home: store.state.home, hasDisplay: store.state.hasDisplay, status: store.statusOf(session),
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
      if (error instanceof RequestError && error.error.code !== "OFFLINE") {
        tell(portlet, { kind: "failed", error: /** @type {any} */ (error.error) });
      }
    }
  }

  /** @param {Portlet} portlet @param {Extract<ToShell, { kind: "request" }>} asked */
  async function forward(portlet, { id, message }) {
    if (!ALLOWED.has(message.type)) return;
    const own = /** @type {ClientMessage} */ ({ ...message, sessionId: portlet.sessionId });
    const { loads } = portlet;
    const answer = await request(own).catch((error) => {
      const told = error instanceof RequestError ? error.error : { code: "INTERNAL_ERROR", message: String(error) };
      return /** @type {any} */ ({ type: "error", ...told });
    });
    // A page that was loaded again did not ask.
    if (portlet.loads === loads) tell(portlet, { kind: "answer", id, message: answer });
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
    if (portlet.ready) greet(portlet);
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
    const handover = createMessageBatcher((messages) => sendToPortlet(frame.contentWindow, { kind: "server", messages }), () =>
      (portlet.sessionId === current ? SEEN_MS : UNSEEN_MS));
    /** @type {Portlet} */
    const portlet = {
      sessionId: "",
      frame,
      asked: false,
      ready: false,
      loads: 0,
      wanted: false,
      seq: 0,
      instance: "",
      focus: null,
      handover,
    };
    ask(portlet);
    root.append(frame);
    return portlet;
  }

  /**
   * Asks for its page; without a server it would only get the browser's page for a site that is not there.
   * @param {Portlet} portlet
   */
  function ask(portlet) {
    portlet.asked = online;
    portlet.ready = false;
    if (online) portlet.frame.src = "/portlet";
  }

  /** Loads what may be shown next, one after another, and never while the one in view is on its way. */
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
    /**
     * Loads those that an agent serves when there is time, so that they are shown at once later.
     * @param {string[]} sessionIds
     */
    prepare(sessionIds) {
      const isLive = (/** @type {string} */ id) =>
        ["live", "resumed"].includes(store.state.sessions.get(id)?.continuity ?? "");
      waiting = sessionIds.filter((id) => isLive(id) && !portlets.get(id)?.wanted).slice(0, PREPARED_MAX);
      loadMore();
    },
    /**
     * A page is loaded for the session that is opened next, so that keys pressed then reach it.
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
        tell(portlet, { kind: "visible", visible });
      }
      current = sessionId;
    },
    /** Keeps those that have a tab, each under the title of its session. @param {string[]} tabs */
    update(tabs) {
      waiting = waiting.filter((id) => tabs.includes(id));
      for (const portlet of [...portlets.values()]) {
        if (tabs.includes(portlet.sessionId)) drawTitle(portlet);
        else close(portlet);
      }
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
      sendContext(portlet);
    },
    /** Hands a message to the portlets it concerns. @param {ServerFrame} frame */
    deliver(frame) {
      const { requestId: _, ...message } = /** @type {any} */ (frame);
      if (frame.type === "agent:status" && frame.sessionId === undefined) {
        for (const portlet of portlets.values()) {
          if (store.state.sessions.get(portlet.sessionId)?.cliType === frame.cliType) pass(portlet, message);
        }
        return;
      }
      const portlet = "sessionId" in frame && frame.sessionId ? portlets.get(frame.sessionId) : undefined;
      if (!portlet || frame.type === "session:page" || frame.type === "session:output") return;
      // What comes before its history is of an earlier visit: the page that is there now has heard nothing yet.
      if ("seq" in frame && (frame.type === "session:history" || portlet.instance === store.state.instance)) {
        portlet.seq = frame.seq;
        portlet.instance = store.state.instance;
      }
      pass(portlet, message);
    },
    /** @param {boolean} now */
    setOnline(now) {
      if (online === now) return;
      online = now;
      for (const portlet of all()) {
        // What was on its way will not come. What was not asked for can be had now, and so can a page in whose place
        // the browser put one of its own, which we may not look into.
        if (!online && !portlet.ready) portlet.asked = false;
        else if (online && (!portlet.asked || portlet.frame.contentDocument === null)) ask(portlet);
      }
      for (const portlet of portlets.values()) tell(portlet, { kind: "online", online });
    },
    /** After a reconnect: everything that was missed. */
    resync() {
      for (const portlet of portlets.values()) {
        sendContext(portlet);
        void open(portlet);
      }
      loadMore();
    },
    contextChanged: () => portlets.forEach(sendContext),
    /** @param {ToPortlet} message */
    sendToAll: (message) => portlets.forEach((portlet) => tell(portlet, message)),
    /** @param {ToPortlet} message */
    sendToCurrent(message) {
      const portlet = current === null ? undefined : portlets.get(current);
      if (!portlet) return;
      if (message.kind === "focus") focus(portlet, message);
      else tell(portlet, message);
    },
  };
}
