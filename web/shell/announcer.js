// announcer.js: says in words, for those who do not see it, what changed. At most one sentence every three seconds.

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

  function say() {
    const words = waiting.shift();
    busy = words !== undefined;
    if (words === undefined) return;
    root.textContent = words;
    setTimeout(say, PAUSE_MS);
  }

  /** @param {Iterable<SessionSummary>} turned Sessions that are in another state than before. */
  return function update(turned) {
    for (const session of turned) {
      const words = sentence(session, agentName(session.cliType));
      if (words) waiting.push(words);
    }
    waiting.splice(0, waiting.length - 5);
    if (!busy) say();
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
