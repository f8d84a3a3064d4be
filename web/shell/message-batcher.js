// message-batcher.js: hands on what the server says, in order and at most once per pause: a postMessage costs more than the
// few words it carries while an agent writes. websocket.js hands on to the page, portlets.js to each session.

/** @typedef {import("../shared/messages.js").ServerFrame} ServerFrame */

/**
 * @param {(messages: ServerFrame[]) => void} send
 * @param {() => number} pauseMs How long after the last time the next one may be.
 * @param {(first: ServerFrame, second: ServerFrame) => ServerFrame | null} [join] Two in a row as one, where that can
 *   be.
 */
export function createMessageBatcher(send, pauseMs, join = () => null) {
  /** @type {ServerFrame[]} */
  let waiting = [];
  let sentAt = -Infinity;
  let timer = 0;

  /** Hands over what waits, now. */
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
    /** Nobody is there any more who has to know. */
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
      // What comes in one go goes in one go. A timer may be held back in a window that nobody sees, so the next message
      // counts as well.
      if (wait <= 0) queueMicrotask(flush);
      else if (timer === 0) timer = self.setTimeout(flush, wait);
    },
  };
}
