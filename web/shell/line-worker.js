// line-worker.js: the connection's own thread. A flood of small frames must not take the time of the page.
import { openLine } from "./line.js";

/** @type {((text: string) => void) | null} */
let send = null;

addEventListener("message", ({ data }) => {
  if (send) send(data);
  else send = openLine(data, (news) => postMessage(news));
});
