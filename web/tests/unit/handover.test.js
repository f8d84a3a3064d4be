import assert from "node:assert/strict";
import test from "node:test";
import { createHandover } from "../../shell/handover.js";

/** A clock and its timers, moved by hand. */
const page = /** @type {any} */ (globalThis);
let now = 0;
/** @type {{ at: number, run: () => void }[]} */
let timers = [];
page.window = { setTimeout: (/** @type {() => void} */ run, /** @type {number} */ ms) => timers.push({ at: now + ms, run }) };
page.clearTimeout = () => (timers = []);
page.performance = { now: () => now };

/** @param {number} ms */
function wait(ms) {
  now += ms;
  const due = timers.filter(({ at }) => at <= now);
  timers = timers.filter(({ at }) => at > now);
  for (const { run } of due) run();
}

function start() {
  timers = [];
  /** @type {any[][]} */
  const sent = [];
  const handover = createHandover((messages) => sent.push(messages), () => 16);
  return { sent, flush: handover.flush, add: (/** @type {number} */ word) => handover.add(/** @type {any} */ (word)) };
}

test("the first message goes at once, what follows within the pause goes together and in order", () => {
  const { sent, add } = start();
  add(1);
  assert.deepEqual(sent, [[1]]);
  wait(4);
  add(2);
  wait(4);
  add(3);
  assert.deepEqual(sent, [[1]]);
  wait(8);
  assert.deepEqual(sent, [[1], [2, 3]]);
  wait(100);
  add(4);
  assert.deepEqual(sent, [[1], [2, 3], [4]]);
});

test("something else that is told takes what waits along, once", () => {
  const { sent, add, flush } = start();
  add(1);
  add(2);
  flush();
  flush();
  assert.deepEqual(sent, [[1], [2]]);
  wait(100);
  assert.deepEqual(sent, [[1], [2]]);
});

test("where timers are held back, the next message takes along what waits", () => {
  const { sent, add } = start();
  add(1);
  add(2);
  now += 1000;
  add(3);
  assert.deepEqual(sent, [[1], [2, 3]]);
});
