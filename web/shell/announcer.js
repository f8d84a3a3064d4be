// announcer.js: announces changes to screen readers, at most one sentence every three seconds.

const PAUSE_MS = 3000;

/** @typedef {import("../shared/protocol.js").SessionSummary} SessionSummary */

/**
 * @param {HTMLElement} root A polite live region.
 * @param {(cliType: string) => string} agentName
 */
export function mountAnnouncer(root, agentName) {
  /** @type {string[]} */
  const waiting = [];
  let busy = false;

  function announceNext() {
    const text = waiting.shift();
    busy = text !== undefined;
    if (text === undefined) return;
    root.textContent = text;
    setTimeout(announceNext, PAUSE_MS);
  }

  /** @param {Iterable<SessionSummary>} changed Sessions whose state changed. */
  return function update(changed) {
    for (const session of changed) {
      const text = sentence(session, agentName(session.cliType));
      if (text) waiting.push(text);
    }
    waiting.splice(0, waiting.length - 5);
    if (!busy) announceNext();
  };
}

/** @param {SessionSummary} session @param {string} agent */
function sentence({ attention, title, reason, hangs }, agent) {
  if (attention === "needs_permission") return `${agent} needs permission in ${title}`;
  if (attention === "finished") return `Finished: ${title}`;
  if (attention === "error") return `${reason ?? "Turn failed"}: ${title}`;
  if (attention === "disconnected" && hangs) return `${agent} hangs: ${title}`;
  if (attention === "disconnected") return `Connection to ${agent} lost: ${title}`;
  return "";
}
