// socket.js: the page's one connection. Requests become promises; a lost connection is tried again for ever. The
// WebSocket itself is in websocket.js, which runs in a worker. Whether the server is there again is asked by a plain
// request: browsers hold back a WebSocket after many that failed.
import { createPolicy } from "../shared/trusted-types.js";
import { openLine } from "./websocket.js";

/** @typedef {import("../shared/protocol.js").ClientMessage} ClientMessage */
/** @typedef {import("../shared/protocol.js").ErrorMessage} ErrorMessage */
/** @typedef {import("../shared/messages.js").ServerFrame} ServerFrame */
/** @typedef {{ resolve: (frame: ServerFrame) => void, reject: (error: RequestError) => void }} Waiting */

/** The one script that runs in a thread of its own. */
const WORKER = new URL("./websocket-worker.js", import.meta.url).href;
const workers = createPolicy("liminal-worker", { scriptUrl: () => WORKER });

/** Pauses between attempts; the last one repeats. */
const RETRY_MS = [500, 1000, 1500];
/** The pause in a window that nobody sees. */
const HIDDEN_MS = 5000;
/**
 * The pauses of a window that is not let in: only a person can change that. The first may be a server that just starts.
 */
const REFUSED_MS = [1500, 5000, 10_000, 30_000];

/** For the server to greet. It does so at once: one that takes longer does not work, or is another program. */
const GREETING_MS = 10_000;
/** What is said of a request without a connection, */
const OFFLINE = "Liminal Builder is not running.";
/** and of one on a connection on which the server never said a word. It is tried again, as after every loss. */
const SILENT = "Liminal Builder does not answer. Trying again. If it stays so, restart it.";

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
 *   heard: (frame: ServerFrame) => void,
 *   opened: () => void,
 *   lost: (refused: boolean) => void,
 * }} deps
 */
export function createSocket({ heard, opened, lost }) {
  /** @type {Map<string, Waiting>} */
  const waiting = new Map();
  /** @type {import("./websocket.js").Line | null} */
  let line = null;
  /** The server has greeted on this line: it listens. */
  let greeted = false;
  /** What was asked before that. @type {string[]} */
  let early = [];
  let attempt = 0;
  /** How often in a row the server was there and did not let this window in. */
  let refusals = 0;
  let nextId = 1;
  /** The next attempt; 0 while none waits. */
  let timer = 0;

  function again() {
    const hidden = document.visibilityState === "hidden" ? HIDDEN_MS : 0;
    const refused = refusals ? (REFUSED_MS[Math.min(refusals, REFUSED_MS.length) - 1] ?? 0) : 0;
    const pause = Math.max(hidden, refused) || RETRY_MS[Math.min(attempt, RETRY_MS.length - 1)];
    attempt += 1;
    timer = window.setTimeout(look, pause);
  }

  /** Connects if the server is there. */
  async function look() {
    timer = 0;
    const health = await fetch("/api/health", { cache: "no-store" }).catch(() => null);
    if (health?.ok) return connect();
    refusals = 0;
    lost(false);
    again();
  }

  function tryNow() {
    if (timer === 0) return;
    clearTimeout(timer);
    attempt = 0;
    void look();
  }
  for (const kind of ["focus", "online"]) addEventListener(kind, tryNow);
  document.addEventListener("visibilitychange", () => document.visibilityState === "visible" && tryNow());

  function connect() {
    greeted = false;
    const current = dial(`${location.protocol === "https:" ? "wss" : "ws"}://${location.host}/ws?view=1`, (news) => {
      if (line !== current) return;
      if (news.kind === "frames") news.frames.forEach(take);
      else end(OFFLINE);
    });
    line = current;
    // In this thread: one that never comes up, or never connects, is noticed too.
    const greeting = setTimeout(() => {
      if (line !== current) return;
      // Not by its end: a peer that says nothing need not answer our closing either.
      end(SILENT);
      current.close();
    }, GREETING_MS);

    /** @param {ServerFrame} frame */
    function take(frame) {
      if (frame.type === "server:hello") {
        attempt = 0;
        refusals = 0;
        greeted = true;
        clearTimeout(greeting);
        heard(frame);
        early.splice(0).forEach(current.send);
        opened();
        return;
      }
      // What everybody should know is told first, so that an answer finds the model up to date.
      if (frame.type !== "error") heard(frame);
      settle(frame);
    }

    /** @param {string} message */
    function end(message) {
      clearTimeout(greeting);
      line = null;
      early = [];
      const gone = new RequestError({ code: "OFFLINE", message });
      for (const { reject } of waiting.values()) reject(gone);
      waiting.clear();
      // The first attempt of all may meet no server; later ones are made only to one that is there.
      if (!greeted && attempt > 0) refusals += 1;
      lost(refusals > 0);
      again();
    }
  }

  /** @param {ServerFrame} frame */
  function settle(frame) {
    const asked = frame.requestId === undefined ? undefined : waiting.get(frame.requestId);
    if (!asked) {
      if (frame.type === "error") heard(frame);
      return;
    }
    waiting.delete(/** @type {string} */ (frame.requestId));
    if (frame.type === "error") asked.reject(new RequestError(frame));
    else asked.resolve(frame);
  }

  return {
    connect,
    /** Looks for the server at once, if it is away. */
    tryNow,
    /**
     * Asks the server. While the connection is being made the question waits for it: a page is seen a moment before it
     * is connected.
     * @param {ClientMessage} message
     * @returns {Promise<ServerFrame>}
     */
    request(message) {
      return new Promise((resolve, reject) => {
        if (!line) {
          reject(new RequestError({ code: "OFFLINE", message: OFFLINE }));
          return;
        }
        const requestId = `r${nextId++}`;
        waiting.set(requestId, { resolve, reject });
        const text = JSON.stringify({ ...message, requestId });
        if (greeted) line.send(text);
        else early.push(text);
      });
    },
  };
}

/**
 * A line to the server in a thread of its own, so that a flood of small frames does not take the page's time; in this
 * one where there is none to be had.
 * @param {string} url
 * @param {(news: import("./websocket.js").LineNews) => void} tell
 * @returns {import("./websocket.js").Line}
 */
function dial(url, tell) {
  if (typeof Worker === "undefined") return openLine(url, tell);
  const worker = new Worker(workers.scriptUrl(WORKER), { type: "module" });
  /** In this thread, if there is no other. @type {import("./websocket.js").Line | null} */
  let own = null;
  let isUp = false;
  worker.addEventListener("message", ({ data }) => {
    isUp = true;
    tell(data);
    if (data.kind === "closed") worker.terminate();
  });
  worker.addEventListener("error", () => {
    worker.terminate();
    if (isUp) tell({ kind: "closed" });
    else own = openLine(url, tell);
  });
  worker.postMessage(url);
  return {
    send: (text) => (own ? own.send(text) : worker.postMessage(text)),
    close() {
      own?.close();
      // Its connection ends with it.
      worker.terminate();
    },
  };
}
