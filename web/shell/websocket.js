// websocket.js: one WebSocket, in a worker if there is one. Parses and checks frames, joins consecutive updates of one
// text, and emits frames in batches. It does not know what a frame means.
import { parseServerFrame } from "../shared/messages.js";
import { joinUpserts } from "../shared/patch.js";
import { createMessageBatcher } from "./message-batcher.js";

/** @typedef {import("../shared/messages.js").ServerFrame} ServerFrame */
/** @typedef {{ kind: "frames", frames: ServerFrame[] } | { kind: "closed" }} SocketEvent */

/** @typedef {{ send: (text: string) => void, close: () => void }} SocketHandle */

/** The pause between batches while frames keep coming. The page draws a long answer even less often. */
const PAUSE_MS = 24;

/**
 * @param {string} url
 * @param {(event: SocketEvent) => void} emit
 * @returns {SocketHandle} Text sent after the connection is lost is dropped; `closed` reports the loss.
 */
export function openWebSocket(url, emit) {
  const socket = new WebSocket(url);
  const { add, flush } = createMessageBatcher((frames) => emit({ kind: "frames", frames }), () => PAUSE_MS, join);
  socket.addEventListener("message", ({ data }) => {
    const frame = parseServerFrame(data);
    if (frame) add(frame);
  });
  socket.addEventListener("close", () => {
    flush();
    emit({ kind: "closed" });
  });
  return {
    send(text) {
      if (socket.readyState === WebSocket.OPEN) socket.send(text);
    },
    close: () => socket.close(),
  };
}

/** Joins consecutive updates of one text into one frame. @param {ServerFrame} first @param {ServerFrame} second */
function join(first, second) {
  if (first.type !== "session:upsert" || second.type !== "session:upsert" || first.sessionId !== second.sessionId) {
    return null;
  }
  const payload = joinUpserts(first.payload, second.payload);
  return payload && { ...second, payload };
}
