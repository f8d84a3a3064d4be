// row-lock.js: when the rows of the sidebar must not move: while the user points at them or moves through them by
// keyboard.

/** @typedef {ReturnType<typeof watchRowLock>} RowLock */

/**
 * A user who has not moved the pointer or pressed a key for this long is not about to click. Pending rows are shown
 * then, even if they push others down.
 */
const IDLE_MS = 3000;

/**
 * @param {HTMLElement} root The container of the rows.
 * @param {() => void} released Rows may move again.
 */
export function watchRowLock(root, released) {
  let isPointed = false;
  let isIdle = true;
  let timer = 0;
  // If rows moved, a keyboard user would lose their place. After a click, focus moves elsewhere anyway.
  const byKeyboard = () =>
    root.contains(document.activeElement) && document.activeElement?.matches(":focus-visible") === true;

  function noteActivity() {
    isIdle = false;
    clearTimeout(timer);
    timer = window.setTimeout(() => {
      isIdle = true;
      released();
    }, IDLE_MS);
  }
  function point(/** @type {PointerEvent} */ event) {
    // Touch has no hover.
    if (event.pointerType === "touch") return;
    isPointed = true;
    noteActivity();
  }
  root.addEventListener("pointermove", point, { passive: true });
  root.addEventListener("pointerenter", point, { passive: true });
  root.addEventListener("pointerleave", () => {
    isPointed = false;
    released();
  });
  root.addEventListener("keydown", noteActivity);
  root.addEventListener("focusout", ({ relatedTarget }) => {
    if (!(relatedTarget instanceof Node && root.contains(relatedTarget))) setTimeout(released);
  });

  return {
    /** Rows keep their order. */
    keepsOrder: () => isPointed || byKeyboard(),
    /** No row is added or removed either. */
    keepsAll: () => !isIdle && (isPointed || byKeyboard()),
  };
}
