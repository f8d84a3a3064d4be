import assert from "node:assert/strict";
import test from "node:test";
import { createMessageBatcher } from "../../shell/message-batcher.js";

/** A clock and its timers, advanced by the test. */
const page = /** @type {any} */ (globalThis);
let now = 0;
/** @type {{ at: number, run: () => void }[]} */
let timers = [];
page.self = {
  setTimeout: (/** @type {() => void} */ run, /** @type {number} */ ms) => timers.push({ at: now + ms, run }),
};
page.clearTimeout = () => (timers = []);
page.performance = { now: () => now };

/** @param {number} ms */
async function wait(ms) {
  now += ms;
  const due = timers.filter(({ at }) => at <= now);
  timers = timers.filter(({ at }) => at > now);
  for (const { run } of due) run();
  await Promise.resolve();
}

/** @param {(first: any, second: any) => any} [join] */
function start(join) {
  timers = [];
  /** @type {any[][]} */
  const sent = [];
  const batcher = createMessageBatcher((messages) => sent.push(messages), () => 16, join);
  return { sent, flush: batcher.flush, add: (/** @type {number} */ item) => batcher.add(/** @type {any} */ (item)) };
}

test("the first message is sent at once, those within the pause follow as one batch in order", async () => {
  const { sent, add } = start();
  add(1);
  add(2);
  await wait(0);
  assert.deepEqual(sent, [[1, 2]]);
  await wait(4);
  add(3);
  await wait(4);
  add(4);
  await wait(0);
  assert.deepEqual(sent, [[1, 2]]);
  await wait(8);
  assert.deepEqual(sent, [[1, 2], [3, 4]]);
  await wait(100);
  add(5);
  await wait(0);
  assert.deepEqual(sent, [[1, 2], [3, 4], [5]]);
});

test("flush sends what waits, once", async () => {
  const { sent, add, flush } = start();
  add(1);
  await wait(0);
  add(2);
  flush();
  flush();
  assert.deepEqual(sent, [[1], [2]]);
  await wait(100);
  assert.deepEqual(sent, [[1], [2]]);
});

test("where timers are delayed, the next message sends what waits", async () => {
  const { sent, add } = start();
  add(1);
  await wait(0);
  add(2);
  now += 1000;
  add(3);
  await wait(0);
  assert.deepEqual(sent, [[1], [2, 3]]);
});

test("two consecutive waiting messages are joined if possible", () => {
  const { sent, add, flush } = start((first, second) => (second === first + 1 ? second : null));
  for (const word of [1, 2, 3, 7, 8, 1]) add(word);
  flush();
  assert.deepEqual(sent, [[3, 8, 1]]);
});
