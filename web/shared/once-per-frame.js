// once-per-frame.js: at most one write per frame. A window that is not shown has no frames, so there a timer stands in.

/** A frame is followed by so many times its own cost, so that writing takes at most a sixth of the main thread. */
const PAUSE = 5;
/** However slow the machine, the page is never further behind than this. */
const BEHIND_MS_MAX = 60;

/**
 * @param {() => void} write
 * @param {{ sparing?: boolean }} [options] `sparing`: frames that are expensive are made rarer, so that there is time
 *   left for the user.
 * @returns {() => void} Asks for one call of `write`, soon; further calls before it happens are free.
 */
export function oncePerFrame(write, { sparing = false } = {}) {
  let asked = false;
  let notBefore = 0;
  const run = () => {
    asked = false;
    const start = performance.now();
    write();
    if (!sparing) return;
    // Behind the frame's layout and paint.
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
