// scroller.js: the only owner of the scroll position. Follows the end until the user scrolls up.

/** Closer to the end than this counts as being at the end. */
const NEAR_PX = 50;
/** A scroll within this time after a wheel, key or touch event counts as the user's. */
const USER_INPUT_MS = 1500;
/** Keys that scroll up. */
const UPWARDS = ["ArrowUp", "PageUp", "Home"];
/** Closer to the top than this, older items are requested. */
const TOP_PX = 1600;

/**
 * @param {HTMLElement} log
 * @param {HTMLElement} content
 * @param {{ moved: () => void, nearTop: () => void }} deps
 */
export function mountScroller(log, content, { moved, nearTop }) {
  let following = true;
  let away = false;
  /** A pointer is pressed in the conversation: the content under it must not move. */
  let pressed = false;
  let lastTop = 0;
  let lastHeight = 0;
  /** The scroll height when last measured. */
  let height = 0;
  /** The scroll height at the user's last input: the end they were scrolling to. */
  let aimedHeight = Infinity;
  let userInputAt = -USER_INPUT_MS;

  for (const kind of ["wheel", "touchmove", "keydown", "pointerdown"]) {
    log.addEventListener(kind, () => {
      userInputAt = performance.now();
      aimedHeight = height;
    }, { passive: true });
  }
  // Scrolling up stops following at once: otherwise streaming text would undo the first step.
  log.addEventListener("wheel", (event) => event.deltaY < 0 && stopFollowing(event), { passive: true });
  log.addEventListener("keydown", (event) =>
    (UPWARDS.includes(event.key) || (event.key === " " && event.shiftKey)) && stopFollowing(event), { passive: true });
  log.addEventListener("pointerdown", () => (pressed = true), { passive: true });
  for (const kind of ["pointerup", "pointercancel", "blur"]) addEventListener(kind, release, { passive: true });
  // Releasing the scroll bar fires no event.
  addEventListener("pointermove", (event) => event.buttons === 0 && release(), { passive: true });

  /** @param {Event} event */
  function stopFollowing(event) {
    if (!following || log.scrollTop === 0) return;
    // A scrollable box inside the conversation scrolls instead.
    for (let node = event.target; node instanceof Element && node !== log; node = node.parentElement) {
      if (node.scrollTop > 0) return;
    }
    following = false;
  }

  function release() {
    if (!pressed) return;
    pressed = false;
    userInputAt = performance.now();
    // The user has selected text and is reading it.
    if (getSelection()?.isCollapsed === false) following = false;
    if (following) toEnd();
    look();
  }

  log.addEventListener("scroll", () => {
    const top = log.scrollTop;
    height = log.scrollHeight;
    const distance = height - top - log.clientHeight;
    // Text that is added or removed also scrolls the view; that is not the user.
    const isUserActive = pressed || performance.now() - userInputAt < USER_INPUT_MS;
    const byUser = isUserActive || height === lastHeight;
    // A user who scrolls down to where the end was at their last input is at the end, however much was added since.
    const isThere = distance <= NEAR_PX
      || (isUserActive && top > lastTop && aimedHeight - top - log.clientHeight <= NEAR_PX);
    // At the very end, `top` may have shrunk because the content did.
    if (top < lastTop && byUser && distance > 1) following = false;
    // The event of our own scroll arrives late, when the user may already be scrolling.
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
    // The margins shrink by the width of the scroll bar, so that conversation and input stay aligned.
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
    /** Older items will soon be needed. */
    isNearTop: () => log.scrollTop < TOP_PX,
    follow() {
      following = true;
      away = false;
      toEnd();
      moved();
    },
    /** Inserts content above the view without moving what is in view. @param {() => void} write */
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
