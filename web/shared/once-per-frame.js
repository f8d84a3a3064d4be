// once-per-frame.js: at most one write per frame. A hidden window has no frames, so it uses a timer.

/** A frame is followed by a pause of this many times its cost, so that writes use at most a sixth of the thread. */
const PAUSE = 5;
/** The longest such pause, however slow the machine. */
const BEHIND_MS_MAX = 60;

/**
 * @param {() => void} write
 * @param {{ sparing?: boolean }} [options] `sparing`: expensive frames are drawn less often, to leave time for user
 *   input.
 * @returns {() => void} Schedules one call of `write`; further calls before it runs do nothing.
 */
export function oncePerFrame(write, { sparing = false } = {}) {
  let asked = false;
  let notBefore = 0;
  const run = () => {
    asked = false;
    const start = performance.now();
    write();
    if (!sparing) return;
    // After the frame's layout and paint.
    setTimeout(() => {
      const cost = performance.now() - start;
      notBefore = start + cost + Math.min(BEHIND_MS_MAX, PAUSE * cost);
    });
  };
  return () => {
    if (asked) return;
    asked = true;
    const wait = notBefore - performance.now();
    if (document.visibilityState === "hidden") setTimeout(run, 50);
    else if (wait > 4) setTimeout(() => requestAnimationFrame(run), wait - 4);
    else requestAnimationFrame(run);
  };
}
