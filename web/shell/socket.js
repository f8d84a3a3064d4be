// socket.js: the only owner of the WebSocket. Requests become promises; a lost connection is tried again for ever.
import { parseServerFrame } from "../shared/messages.js";

/** @typedef {import("../shared/protocol.js").ClientMessage} ClientMessage */
/** @typedef {import("../shared/protocol.js").ErrorMessage} ErrorMessage */
/** @typedef {import("../shared/messages.js").ServerFrame} ServerFrame */
/** @typedef {{ resolve: (frame: ServerFrame) => void, reject: (error: RequestError) => void }} Waiting */

/** Pauses between attempts; the last one repeats. */
export const RETRY_MS = [500, 1000, 2000, 4000, 5000];

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
 *   lost: (attempt: number) => void,
 * }} deps
 */
export function createSocket({ heard, opened, lost }) {
  /** @type {Map<string, Waiting>} */
  const waiting = new Map();
  /** @type {WebSocket | null} */
  let socket = null;
  let attempt = 0;
  let nextId = 1;

  function connect() {
    const current = new WebSocket(`${location.protocol === "https:" ? "wss" : "ws"}://${location.host}/ws?view=1`);
    socket = current;
    current.addEventListener("message", ({ data }) => {
      const frame = parseServerFrame(data);
      if (!frame) return;
      if (frame.type === "server:hello") {
        attempt = 0;
        heard(frame);
        opened();
        return;
      }
      // What everybody should know is told first, so that an answer finds the model up to date.
      if (frame.type !== "error") heard(frame);
      settle(frame);
    });
    current.addEventListener("close", () => {
      if (socket !== current) return;
      socket = null;
      const gone = new RequestError({ code: "OFFLINE", message: "Liminal Builder is not running." });
      for (const { reject } of waiting.values()) reject(gone);
      waiting.clear();
      const pause = RETRY_MS[Math.min(attempt, RETRY_MS.length - 1)];
      attempt += 1;
      lost(attempt);
      setTimeout(connect, pause);
    });
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
    /**
     * @param {ClientMessage} message
     * @returns {Promise<ServerFrame>}
     */
    request(message) {
      return new Promise((resolve, reject) => {
        if (socket?.readyState !== WebSocket.OPEN) {
          reject(new RequestError({ code: "OFFLINE", message: "Liminal Builder is not running." }));
          return;
        }
        const requestId = `r${nextId++}`;
        waiting.set(requestId, { resolve, reject });
        socket.send(JSON.stringify({ ...message, requestId }));
      });
    },
  };
}
