// message-batcher.js: passes server messages on in order, at most one batch per pause. While an agent writes, a
// postMessage costs more than the little text it carries. websocket.js batches for the page, portlets.js per session.

/** @typedef {import("../shared/messages.js").ServerFrame} ServerFrame */

/**
 * @param {(messages: ServerFrame[]) => void} send
 * @param {() => number} pauseMs The minimum pause between two batches.
 * @param {(first: ServerFrame, second: ServerFrame) => ServerFrame | null} [join] Joins two consecutive messages into
 *   one, or returns `null`.
 */
export function createMessageBatcher(send, pauseMs, join = () => null) {
  /** @type {ServerFrame[]} */
  let waiting = [];
  let sentAt = -Infinity;
  let timer = 0;

  /** Sends what is waiting, now. */
  function flush() {
    clearTimeout(timer);
    timer = 0;
    if (waiting.length === 0) return;
    const messages = waiting;
    waiting = [];
    sentAt = performance.now();
    send(messages);
  }

  return {
    flush,
    /** Drops what is waiting: the receiver is gone. */
    clear() {
      clearTimeout(timer);
      timer = 0;
      waiting = [];
    },
    /** @param {ServerFrame} message */
    add(message) {
      const last = waiting.pop();
      const joined = last && join(last, message);
      if (joined) waiting.push(joined);
      else waiting.push(...(last ? [last, message] : [message]));
      const wait = sentAt + pauseMs() - performance.now();
      // Messages that arrive together are sent together. Browsers delay timers in hidden windows, so the next message
      // also checks the time.
      if (wait <= 0) queueMicrotask(flush);
      else if (timer === 0) timer = self.setTimeout(flush, wait);
    },
  };
}
