// scroller.js: the only owner of the scroll position. Follows the end until the user scrolls up.

/** Closer to the end than this counts as being there. */
const NEAR_PX = 50;
/** So long after the wheel, a key or a finger, a scroll is the user's. */
const HAND_MS = 1500;
/** Closer to the top than this, older items are asked for. */
const TOP_PX = 1600;

/**
 * @param {HTMLElement} log
 * @param {HTMLElement} content
 * @param {{ moved: () => void, nearTop: () => void }} deps
 */
export function mountScroller(log, content, { moved, nearTop }) {
  let following = true;
  let away = false;
  let lastTop = 0;
  let lastHeight = 0;
  let handAt = -HAND_MS;

  for (const kind of ["wheel", "touchmove", "keydown", "pointerdown"]) log.addEventListener(kind, () => (handAt = performance.now()), { passive: true });

  log.addEventListener("scroll", () => {
    const top = log.scrollTop;
    const distance = log.scrollHeight - top - log.clientHeight;
    // Text that comes or goes moves the view as well; that is not the user leaving.
    const byHand = performance.now() - handAt < HAND_MS || log.scrollHeight === lastHeight;
    if (distance <= NEAR_PX) following = true;
    else if (top < lastTop && byHand) following = false;
    else if (following && !byHand) return toEnd();
    lastTop = top;
    if (top < TOP_PX) nearTop();
    if (away !== distance > NEAR_PX) {
      away = distance > NEAR_PX;
      moved();
    }
  }, { passive: true });

  function toEnd() {
    lastHeight = log.scrollHeight;
    log.scrollTop = lastHeight;
    lastTop = log.scrollTop;
  }

  // Whatever makes the conversation or the window change its height, the end stays in view.
  const observer = new ResizeObserver(() => {
    // The room the scroll bar takes is taken off the margins, so that conversation and input stand in one line.
    const gutter = `${(log.offsetWidth - log.clientWidth) / 2}px`;
    if (content.style.getPropertyValue("--gutter") !== gutter) content.style.setProperty("--gutter", gutter);
    if (following) toEnd();
  });
  observer.observe(content);
  observer.observe(log);

  return {
    /** The view is above the end. */
    isAway: () => away && !following,
    /** Older items will soon be wanted. */
    isNearTop: () => log.scrollTop < TOP_PX,
    follow() {
      following = true;
      away = false;
      toEnd();
      moved();
    },
    /** Writes above the view without moving what is in view. @param {() => void} write */
    keepPlace(write) {
      const before = log.scrollHeight;
      const top = log.scrollTop;
      write();
      if (following) return;
      const grown = log.scrollHeight - before;
      // The browser's own anchoring may have done it already.
      if (grown > 0 && log.scrollTop === top) log.scrollTop = top + grown;
      lastTop = log.scrollTop;
    },
    /** @param {Element} node */
    reveal(node) {
      following = false;
      node.scrollIntoView({ block: "center" });
    },
  };
}
