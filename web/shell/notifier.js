// notifier.js: desktop notifications, only if the user enabled them and only while the page is not visible.
import { isUnseen } from "../shared/attention.js";
import { load, save } from "../shared/storage.js";
import { reasonOf } from "./needs-you.js";

/** @typedef {import("../shared/protocol.js").SessionSummary} SessionSummary */

/** @param {{ place: (session: SessionSummary) => string, open: (sessionId: string) => void }} deps */
export function createNotifier({ place, open }) {
  const isPossible = () => "Notification" in window;
  const isOn = () => isPossible() && load("notifications") === true && Notification.permission === "granted";

  return {
    isPossible, isOn,
    isRefused: () => isPossible() && Notification.permission === "denied",
    /** @param {boolean} on */
    async set(on) {
      const granted = on && isPossible() && (await Notification.requestPermission()) === "granted";
      save("notifications", granted ? true : null);
    },
    /** @param {SessionSummary[]} changed Sessions whose state changed. */
    notify(changed) {
      if (document.visibilityState !== "hidden" || !isOn()) return;
      for (const session of changed.filter(({ attention }) => isUnseen(attention))) {
        // The tag makes it one per session, however many windows are open.
        const note = new Notification(session.title, {
          body: `${reasonOf(session)} · ${place(session)}`,
          tag: session.id,
        });
        note.addEventListener("click", () => {
          window.focus();
          note.close();
          open(session.id);
        });
      }
    },
  };
}
