// requests.js: this portlet's requests to the server, sent through the shell.
import { sendToShell } from "../shared/bus.js";

/** @typedef {import("../shared/protocol.js").ClientMessage} ClientMessage */
/** @typedef {import("../shared/messages.js").ServerFrame} ServerFrame */

export function createRequests() {
  /** @type {Map<number, (frame: ServerFrame) => void>} */
  const waiting = new Map();
  let next = 1;
  return {
    /** @param {ClientMessage} message @returns {Promise<ServerFrame>} Resolves with errors too; never rejects. */
    ask: (message) => new Promise((resolve) => {
      const id = next++;
      waiting.set(id, resolve);
      sendToShell({ kind: "request", id, message });
    }),
    /** @param {number} id @param {ServerFrame} frame */
    answer(id, frame) {
      waiting.get(id)?.(frame);
      waiting.delete(id);
    },
  };
}
