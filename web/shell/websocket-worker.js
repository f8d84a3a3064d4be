// websocket-worker.js: the connection's own thread. A flood of small frames must not take the time of the page.
import { openLine } from "./websocket.js";

/** @type {import("./websocket.js").Line | null} */
let line = null;

addEventListener("message", ({ data }) => {
  if (line) line.send(data);
  else line = openLine(data, (news) => postMessage(news));
});
