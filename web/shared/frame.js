// frame.js: at most one write per frame. A window that is not shown has no frames, so there a timer stands in.

/**
 * @param {() => void} write
 * @returns {() => void} Asks for one call of `write`, soon; further calls before it happens are free.
 */
export function oncePerFrame(write) {
  let asked = false;
  const run = () => {
    asked = false;
    write();
  };
  return () => {
    if (asked) return;
    asked = true;
    if (document.visibilityState === "hidden") setTimeout(run, 50);
    else requestAnimationFrame(run);
  };
}
