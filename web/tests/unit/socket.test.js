import assert from "node:assert/strict";
import test from "node:test";

/** What a page has, as far as the socket is concerned. @param {{ letIn: () => boolean }} server */
function page({ letIn }) {
  const tries = /** @type {number[]} */ ([]);
  const listeners = /** @type {Record<string, () => void>} */ ({});
  class Socket extends EventTarget {
    static OPEN = 1;
    readyState = 0;
    constructor() {
      super();
      tries.push(Date.now());
      queueMicrotask(() => {
        if (letIn()) this.dispatchEvent(Object.assign(new Event("message"), { data: JSON.stringify({ type: "server:hello", version: "1", instance: "i", home: "/", notices: [] }) }));
        else this.dispatchEvent(new Event("close"));
      });
    }
  }
  Object.assign(globalThis, {
    WebSocket: Socket, location: { protocol: "http:", host: "127.0.0.1:1" }, window: globalThis, fetch: async () => ({ ok: true }),
    document: { visibilityState: "visible", addEventListener() {} }, addEventListener: (/** @type {string} */ kind, /** @type {() => void} */ run) => (listeners[kind] = run),
  });
  return { tries, listeners };
}

/** Lets time go by, with everything that waits on promises in between. @param {import("node:test").TestContext} t @param {number} ms */
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

test("a window that is not let in asks ever more rarely, and comes back at once when it is", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout", "Date"] });
  let letIn = false;
  let opened = 0;
  const told = /** @type {boolean[]} */ ([]);
  const { tries, listeners } = page({ letIn: () => letIn });
  const { createSocket } = await import("../../shell/socket.js");
  createSocket({ heard() {}, opened: () => (opened += 1), lost: (refused) => told.push(refused) }).connect();
  await pass(t, 60_000);
  const pauses = tries.slice(1).map((at, index) => at - (tries[index] ?? 0));
  assert.deepEqual(pauses.slice(0, 5), [500, 1500, 5000, 10_000, 30_000]);
  assert.deepEqual(told.slice(0, 2), [false, true]);
  assert.equal(opened, 0);
  letIn = true;
  listeners.focus?.();
  await pass(t, 500);
  assert.equal(opened, 1);
});

test("what is asked before the server greets is refused only when it does not", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout", "Date"] });
  page({ letIn: () => false });
  const { createSocket } = await import("../../shell/socket.js");
  const socket = createSocket({ heard() {}, opened() {}, lost() {} });
  socket.connect();
  await assert.rejects(socket.request({ type: "project:list" }), { message: "Liminal Builder is not running." });
  await assert.rejects(socket.request({ type: "project:list" }), { message: "Liminal Builder is not running." });
});
