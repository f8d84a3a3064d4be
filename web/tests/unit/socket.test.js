import assert from "node:assert/strict";
import test from "node:test";

/**
 * What the socket needs of a page. `silent`: connected, but the server sends nothing.
 * @param {{ letIn: () => boolean, silent?: () => boolean }} server
 */
function page({ letIn, silent = () => false }) {
  const closed = /** @type {number[]} */ ([]);
  const tries = /** @type {number[]} */ ([]);
  const listeners = /** @type {Record<string, () => void>} */ ({});
  class Socket extends EventTarget {
    static OPEN = 1;
    readyState = 0;
    constructor() {
      super();
      tries.push(Date.now());
      queueMicrotask(() => {
        if (silent()) return;
        if (letIn()) {
          this.dispatchEvent(
            Object.assign(new Event("message"), { data: JSON.stringify({
              type: "server:hello",
              version: "1",
              instance: "i",
              home: "/",
              notices: [],
              hasDisplay: false,
            }) }),
          );
        } else this.dispatchEvent(new Event("close"));
      });
    }
    // A server that sends nothing does not answer a close either: no event follows.
    close() {
      closed.push(Date.now());
    }
  }
  Object.assign(globalThis, {
    WebSocket: Socket,
    location: { protocol: "http:", host: "127.0.0.1:1" },
    window: globalThis,
    fetch: async () => ({ ok: true }),
    document: { visibilityState: "visible", addEventListener() {} },
    addEventListener: (/** @type {string} */ kind, /** @type {() => void} */ run) => (listeners[kind] = run),
  });
  return { tries, listeners, closed };
}

/**
 * Lets time go by, with everything that waits on promises in between.
 * @param {import("node:test").TestContext} t
 * @param {number} ms
 */
async function pass(t, ms) {
  const settle = async () => {
    for (let turn = 0; turn < 10; turn += 1) await Promise.resolve();
  };
  for (let at = 0; at < ms; at += 500) {
    await settle();
    t.mock.timers.tick(500);
    await settle();
  }
}

test("a refused window retries less and less often, and reconnects at once when accepted", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout", "Date"] });
  let letIn = false;
  let opened = 0;
  const refusals = /** @type {boolean[]} */ ([]);
  const { tries, listeners } = page({ letIn: () => letIn });
  const { createSocket } = await import("../../shell/socket.js");
  createSocket({ onFrame() {}, opened: () => (opened += 1), lost: (refused) => refusals.push(refused) }).connect();
  await pass(t, 60_000);
  const pauses = tries.slice(1).map((at, index) => at - (tries[index] ?? 0));
  assert.deepEqual(pauses.slice(0, 5), [500, 1500, 5000, 10_000, 30_000]);
  assert.deepEqual(refusals.slice(0, 2), [false, true]);
  assert.equal(opened, 0);
  letIn = true;
  listeners.focus?.();
  await pass(t, 500);
  assert.equal(opened, 1);
});

test("a request made before the server hello fails only if none arrives", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout", "Date"] });
  page({ letIn: () => false });
  const { createSocket } = await import("../../shell/socket.js");
  const socket = createSocket({ onFrame() {}, opened() {}, lost() {} });
  socket.connect();
  await assert.rejects(socket.request({ type: "project:list" }), { message: "Liminal Builder is not running." });
  await assert.rejects(socket.request({ type: "project:list" }), { message: "Liminal Builder is not running." });
});

test("without a server hello, waiting requests fail after ten seconds, and the page reconnects", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout", "Date"] });
  let silent = true;
  let opened = 0;
  const { tries, closed } = page({ letIn: () => true, silent: () => silent });
  const { createSocket } = await import("../../shell/socket.js");
  const socket = createSocket({ onFrame() {}, opened: () => (opened += 1), lost() {} });
  socket.connect();
  let failure = "";
  socket.request({ type: "project:list" }).catch((error) => (failure = error.message));
  await pass(t, 9_500);
  assert.deepEqual([failure, closed.length], ["", 0]);
  await pass(t, 500);
  assert.match(failure, /^Liminal Builder is not responding\./);
  assert.equal(closed.length, 1);
  silent = false;
  await pass(t, 2_000);
  assert.deepEqual([tries.length, opened], [2, 1]);
  // A connection that was greeted may be quiet for as long as it likes.
  await pass(t, 30_000);
  assert.deepEqual([tries.length, closed.length], [2, 1]);
});
