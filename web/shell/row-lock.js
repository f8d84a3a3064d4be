// row-lock.js: says when the rows of the sidebar must keep their places: while the user points at them, or walks them by
// keyboard.

/** @typedef {ReturnType<typeof watchRowLock>} Hold */

/**
 * Who has not moved the pointer or pressed a key for so long is not about to: what waits is shown then, even if it
 * pushes rows down.
 */
const REST_MS = 3000;

/**
 * @param {HTMLElement} root What holds the rows.
 * @param {() => void} released Rows may move again.
 */
export function watchRowLock(root, released) {
  let over = false;
  let rests = true;
  let timer = 0;
  // Rows that follow a key would leave the one who pressed it behind. A click moves focus on by itself.
  const byKeyboard = () =>
    root.contains(document.activeElement) && document.activeElement?.matches(":focus-visible") === true;

  function stir() {
    rests = false;
    clearTimeout(timer);
    timer = window.setTimeout(() => {
      rests = true;
      released();
    }, REST_MS);
  }
  function point(/** @type {PointerEvent} */ event) {
    // A finger points at nothing before it presses.
    if (event.pointerType === "touch") return;
    over = true;
    stir();
  }
  root.addEventListener("pointermove", point, { passive: true });
  root.addEventListener("pointerenter", point, { passive: true });
  root.addEventListener("pointerleave", () => {
    over = false;
    released();
  });
  root.addEventListener("keydown", stir);
  root.addEventListener("focusout", ({ relatedTarget }) => {
    if (!(relatedTarget instanceof Node && root.contains(relatedTarget))) setTimeout(released);
  });

  return {
    /** Rows keep their order. */
    keepsOrder: () => over || byKeyboard(),
    /** No row comes or goes either. */
    keepsAll: () => !rests && (over || byKeyboard()),
  };
}
