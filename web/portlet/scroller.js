// scroller.js: the only owner of the scroll position. Follows the end until the user scrolls up.

/** Closer to the end than this counts as being there. */
const NEAR_PX = 50;
/** So long after the wheel, a key or a finger, a scroll is the user's. */
const USER_INPUT_MS = 1500;
/** Keys that go up. */
const UPWARDS = ["ArrowUp", "PageUp", "Home"];
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
  /** A pointer is pressed in the conversation: what is under it must not move. */
  let pressed = false;
  let lastTop = 0;
  let lastHeight = 0;
  /**
   * The height when it was last seen, and when the user last reached for the wheel, a key or the bar: the end aimed at.
   */
  let height = 0;
  let aimedHeight = Infinity;
  let userInputAt = -USER_INPUT_MS;

  for (const kind of ["wheel", "touchmove", "keydown", "pointerdown"]) {
    log.addEventListener(kind, () => {
      userInputAt = performance.now();
      aimedHeight = height;
    }, { passive: true });
  }
  // Whoever sets out upwards leaves the end at once: where text streams in, the first step of the way would be undone.
  log.addEventListener("wheel", (event) => event.deltaY < 0 && stopFollowing(event), { passive: true });
  log.addEventListener("keydown", (event) =>
    (UPWARDS.includes(event.key) || (event.key === " " && event.shiftKey)) && stopFollowing(event), { passive: true });
  log.addEventListener("pointerdown", () => (pressed = true), { passive: true });
  for (const kind of ["pointerup", "pointercancel", "blur"]) addEventListener(kind, release, { passive: true });
  // The scroll bar tells nobody that it was let go.
  addEventListener("pointermove", (event) => event.buttons === 0 && release(), { passive: true });

  /** @param {Event} event */
  function stopFollowing(event) {
    if (!following || log.scrollTop === 0) return;
    // A box in the conversation that can itself go up takes the step.
    for (let node = event.target; node instanceof Element && node !== log; node = node.parentElement) {
      if (node.scrollTop > 0) return;
    }
    following = false;
  }

  function release() {
    if (!pressed) return;
    pressed = false;
    userInputAt = performance.now();
    // What was just marked is being read.
    if (getSelection()?.isCollapsed === false) following = false;
    if (following) toEnd();
    look();
  }

  log.addEventListener("scroll", () => {
    const top = log.scrollTop;
    height = log.scrollHeight;
    const distance = height - top - log.clientHeight;
    // Text that comes or goes moves the view as well; that is not the user leaving.
    const isUserActive = pressed || performance.now() - userInputAt < USER_INPUT_MS;
    const byUser = isUserActive || height === lastHeight;
    // Who goes down to where the end was when setting out is at the end, however much came meanwhile.
    const isThere = distance <= NEAR_PX
      || (isUserActive && top > lastTop && aimedHeight - top - log.clientHeight <= NEAR_PX);
    // At the very end one can also be because it came nearer.
    if (top < lastTop && byUser && distance > 1) following = false;
    // A scroll of our own tells of itself later, when the user may have set out already.
    else if (isThere && !pressed && top > lastTop) following = true;
    else if (following && !byUser && distance > NEAR_PX) return toEnd();
    lastTop = top;
    if (top < TOP_PX) nearTop();
    look();
  }, { passive: true });

  /** Whether the view is above the end. */
  function look() {
    const now = !following && log.scrollHeight - log.scrollTop - log.clientHeight > NEAR_PX;
    if (away === now) return;
    away = now;
    moved();
  }

  function toEnd() {
    height = lastHeight = log.scrollHeight;
    log.scrollTop = lastHeight;
    lastTop = log.scrollTop;
  }

  // Whatever makes the conversation or the window change its height, the end stays in view.
  const observer = new ResizeObserver(() => {
    // The room the scroll bar takes is taken off the margins, so that conversation and input stand in one line.
    const gutter = `${(log.offsetWidth - log.clientWidth) / 2}px`;
    if (content.style.getPropertyValue("--gutter") !== gutter) content.style.setProperty("--gutter", gutter);
    if (following && !pressed) return toEnd();
    height = log.scrollHeight;
    look();
  });
  observer.observe(content);
  observer.observe(log);

  return {
    /** The view is above the end. */
    isAway: () => away,
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
