// mark-seen.js: reports to the server that the user has seen how a turn ended, once it was in view for a second.
import { isUnseen } from "../shared/attention.js";

const IN_VIEW_MS = 1000;

/**
 * @param {{
 *   session: () => import("../shared/protocol.js").SessionSummary | undefined,
 *   seen: (sessionId: string) => void,
 * }} deps
 */
export function watchSeen({ session, seen }) {
  /** @type {{ id: string, timer: number } | null} */
  let watching = null;

  function check() {
    const current = document.visibilityState === "visible" ? session() : undefined;
    const id = current && isUnseen(current.attention) && current.attention !== "needs_permission" ? current.id : null;
    if (watching?.id === id) return;
    if (watching) clearTimeout(watching.timer);
    watching = null;
    if (id === null) return;
    watching = { id, timer: window.setTimeout(() => {
      watching = null;
      seen(id);
    }, IN_VIEW_MS) };
  }
  document.addEventListener("visibilitychange", check);
  return check;
}
