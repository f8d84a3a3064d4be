// websocket.js: one WebSocket, in whatever thread this runs: a worker where there is one. Frames are read and checked here,
// those in a row that grow one text are joined, and they are handed on together. What a frame means is not its
// business.
import { parseServerFrame } from "../shared/messages.js";
import { joinUpserts } from "../shared/patch.js";
import { createMessageBatcher } from "./message-batcher.js";

/** @typedef {import("../shared/messages.js").ServerFrame} ServerFrame */
/** @typedef {{ kind: "frames", frames: ServerFrame[] } | { kind: "closed" }} LineNews */

/** @typedef {{ send: (text: string) => void, close: () => void }} Line */

/** While frames keep coming, they are handed on this often: the page draws a long answer more rarely still. */
const PAUSE_MS = 24;

/**
 * @param {string} url
 * @param {(news: LineNews) => void} tell
 * @returns {Line} What is sent on a line that has gone is lost; its end is told.
 */
export function openLine(url, tell) {
  const socket = new WebSocket(url);
  const { add, flush } = createMessageBatcher((frames) => tell({ kind: "frames", frames }), () => PAUSE_MS, join);
  socket.addEventListener("message", ({ data }) => {
    const frame = parseServerFrame(data);
    if (frame) add(frame);
  });
  socket.addEventListener("close", () => {
    flush();
    tell({ kind: "closed" });
  });
  return {
    send(text) {
      if (socket.readyState === WebSocket.OPEN) socket.send(text);
    },
    close: () => socket.close(),
  };
}

/** Growth of one text is one frame, however many it came in. @param {ServerFrame} first @param {ServerFrame} second */
function join(first, second) {
  if (first.type !== "session:upsert" || second.type !== "session:upsert" || first.sessionId !== second.sessionId) {
    return null;
  }
  const payload = joinUpserts(first.payload, second.payload);
  return payload && { ...second, payload };
}
