// socket.js: the page's one connection. Requests become promises; a lost connection is retried forever. The WebSocket
// itself is in websocket.js, which runs in a worker. A plain HTTP request checks whether the server is back: browsers
// delay new WebSockets after many failed ones.
import { createPolicy } from "../shared/trusted-types.js";
import { openWebSocket } from "./websocket.js";

/** @typedef {import("../shared/protocol.js").ClientMessage} ClientMessage */
/** @typedef {import("../shared/protocol.js").ErrorMessage} ErrorMessage */
/** @typedef {import("../shared/messages.js").ServerFrame} ServerFrame */
/** @typedef {{ resolve: (frame: ServerFrame) => void, reject: (error: RequestError) => void }} Waiting */

/** The only script that runs in a worker. */
const WORKER = new URL("./websocket-worker.js", import.meta.url).href;
const workers = createPolicy("liminal-worker", { scriptUrl: () => WORKER });

/** Pauses between attempts; the last one repeats. */
const RETRY_MS = [500, 1000, 1500];
/** The pause in a hidden window. */
const HIDDEN_MS = 5000;
/**
 * The pauses of a window that was refused: only the user can change that. The first covers a server that is starting.
 */
const REFUSED_MS = [1500, 5000, 10_000, 30_000];

/** How long the server may take to send its hello. One that takes longer is broken, or is another program. */
const GREETING_MS = 10_000;
/** The error of a request without a connection. */
const OFFLINE = "Liminal Builder is not running.";
/** The error of a request on a connection over which the server sent nothing. We reconnect, as after every loss. */
const SILENT = "Liminal Builder is not responding. Retrying… If this does not help, restart it.";

/** A request the server answered with an error, or could not answer. */
export class RequestError extends Error {
  /** @param {Omit<ErrorMessage, "code"> & { code: string }} error */
  constructor(error) {
    super(error.message);
    this.error = error;
  }
}

/**
 * @param {{
 *   onFrame: (frame: ServerFrame) => void,
 *   opened: () => void,
 *   lost: (refused: boolean) => void,
 * }} deps
 */
export function createSocket({ onFrame, opened, lost }) {
  /** @type {Map<string, Waiting>} */
  const waiting = new Map();
  /** @type {import("./websocket.js").SocketHandle | null} */
  let socket = null;
  /** The server has sent its hello on this socket: it is ready for requests. */
  let isGreeted = false;
  /** Requests made before that. @type {string[]} */
  let queued = [];
  let attempt = 0;
  /** How often in a row the server was reachable but refused this window. */
  let refusals = 0;
  let nextId = 1;
  /** The timer of the next attempt; 0 when none is scheduled. */
  let timer = 0;

  function scheduleRetry() {
    const hidden = document.visibilityState === "hidden" ? HIDDEN_MS : 0;
    const refused = refusals ? (REFUSED_MS[Math.min(refusals, REFUSED_MS.length) - 1] ?? 0) : 0;
    const pause = Math.max(hidden, refused) || RETRY_MS[Math.min(attempt, RETRY_MS.length - 1)];
    attempt += 1;
    timer = window.setTimeout(checkServer, pause);
  }

  /** Connects if the server is reachable. */
  async function checkServer() {
    timer = 0;
    const health = await fetch("/api/health", { cache: "no-store" }).catch(() => null);
    if (health?.ok) return connect();
    refusals = 0;
    lost(false);
    scheduleRetry();
  }

  function tryNow() {
    if (timer === 0) return;
    clearTimeout(timer);
    attempt = 0;
    void checkServer();
  }
  for (const kind of ["focus", "online"]) addEventListener(kind, tryNow);
  document.addEventListener("visibilitychange", () => document.visibilityState === "visible" && tryNow());

  function connect() {
    isGreeted = false;
    const url = `${location.protocol === "https:" ? "wss" : "ws"}://${location.host}/ws?view=1`;
    const current = openInWorker(url, (event) => {
      if (socket !== current) return;
      if (event.kind === "frames") event.frames.forEach(receive);
      else end(OFFLINE);
    });
    socket = current;
    // The timer runs in this thread, so that a worker that never starts or never connects is noticed too.
    const greeting = setTimeout(() => {
      if (socket !== current) return;
      // We do not wait for a close event: a server that sends nothing may not answer our close either.
      end(SILENT);
      current.close();
    }, GREETING_MS);

    /** @param {ServerFrame} frame */
    function receive(frame) {
      if (frame.type === "server:hello") {
        attempt = 0;
        refusals = 0;
        isGreeted = true;
        clearTimeout(greeting);
        onFrame(frame);
        queued.splice(0).forEach(current.send);
        opened();
        return;
      }
      // Subscribers get the frame first, so that the store is up to date when the request resolves.
      if (frame.type !== "error") onFrame(frame);
      settle(frame);
    }

    /** @param {string} message */
    function end(message) {
      clearTimeout(greeting);
      socket = null;
      queued = [];
      const gone = new RequestError({ code: "OFFLINE", message });
      for (const { reject } of waiting.values()) reject(gone);
      waiting.clear();
      // The very first attempt may find no server; later ones are made only to a reachable one.
      if (!isGreeted && attempt > 0) refusals += 1;
      lost(refusals > 0);
      scheduleRetry();
    }
  }

  /** @param {ServerFrame} frame */
  function settle(frame) {
    const asked = frame.requestId === undefined ? undefined : waiting.get(frame.requestId);
    if (!asked) {
      if (frame.type === "error") onFrame(frame);
      return;
    }
    waiting.delete(/** @type {string} */ (frame.requestId));
    if (frame.type === "error") asked.reject(new RequestError(frame));
    else asked.resolve(frame);
  }

  return {
    connect,
    /** Retries at once if disconnected. */
    tryNow,
    /**
     * Sends a request. It is queued while the connection is being made: a page is visible a moment before it is
     * connected.
     * @param {ClientMessage} message
     * @returns {Promise<ServerFrame>}
     */
    request(message) {
      return new Promise((resolve, reject) => {
        if (!socket) {
          reject(new RequestError({ code: "OFFLINE", message: OFFLINE }));
          return;
        }
        const requestId = `r${nextId++}`;
        waiting.set(requestId, { resolve, reject });
        const text = JSON.stringify({ ...message, requestId });
        if (isGreeted) socket.send(text);
        else queued.push(text);
      });
    },
  };
}

/**
 * Opens the WebSocket in a worker, so that a flood of small frames does not block the page; in this thread where
 * workers are not available.
 * @param {string} url
 * @param {(event: import("./websocket.js").SocketEvent) => void} emit
 * @returns {import("./websocket.js").SocketHandle}
 */
function openInWorker(url, emit) {
  if (typeof Worker === "undefined") return openWebSocket(url, emit);
  const worker = new Worker(workers.scriptUrl(WORKER), { type: "module" });
  /** Used if the worker could not start. @type {import("./websocket.js").SocketHandle | null} */
  let fallback = null;
  let isUp = false;
  worker.addEventListener("message", ({ data }) => {
    isUp = true;
    emit(data);
    if (data.kind === "closed") worker.terminate();
  });
  worker.addEventListener("error", () => {
    worker.terminate();
    if (isUp) emit({ kind: "closed" });
    else fallback = openWebSocket(url, emit);
  });
  worker.postMessage(url);
  return {
    send: (text) => (fallback ? fallback.send(text) : worker.postMessage(text)),
    close() {
      fallback?.close();
      // This closes its connection too.
      worker.terminate();
    },
  };
}
