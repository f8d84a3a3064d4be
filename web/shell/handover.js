// handover.js: what the server says to one portlet, in order and at most once per pause: a postMessage costs more than
// the few words it carries while an agent writes.

/** @typedef {import("../shared/messages.js").ServerFrame} ServerFrame */

/**
 * @param {(messages: ServerFrame[]) => void} send
 * @param {() => number} pauseMs How long after the last time the next one may be.
 */
export function createHandover(send, pauseMs) {
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
      waiting.push(message);
      const wait = sentAt + pauseMs() - performance.now();
      // A timer may be held back in a window that nobody sees, so the next message counts as well.
      if (wait <= 0) flush();
      else if (timer === 0) timer = window.setTimeout(flush, wait);
    },
  };
}
