// websocket-worker.js: the worker that holds the connection, so that a flood of small frames does not block the page.
import { openWebSocket } from "./websocket.js";

/** @type {import("./websocket.js").SocketHandle | null} */
let socket = null;

addEventListener("message", ({ data }) => {
  if (socket) socket.send(data);
  else socket = openWebSocket(data, (event) => postMessage(event));
});
