// drawer.js: the sidebar of a narrow window. While open it overlays the page and makes the rest inert.

/** As in narrow.css. */
const narrow = matchMedia("(max-width: 1023px)");

/**
 * @param {HTMLElement} app
 * @param {{ sidebar: HTMLElement, covered: HTMLElement[], focus: import("./focus.js").Focus }} deps
 */
export function mountDrawer(app, { sidebar, covered, focus }) {
  /** What had focus when it was opened. @type {Element | null} */
  let from = null;
  const isOpen = () => app.dataset.drawer !== undefined;

  /** Makes only the open drawer reachable, even while it is still sliding in; otherwise everything but it. */
  function updateInert() {
    sidebar.inert = narrow.matches && !isOpen();
    for (const node of covered) node.inert = isOpen();
  }
  updateInert();

  function open() {
    from = document.activeElement;
    app.dataset.drawer = "";
    updateInert();
    focus.enter("side");
  }

  /** @param {{ giveBack?: boolean }} [options] */
  function close({ giveBack = true } = {}) {
    if (!isOpen()) return;
    delete app.dataset.drawer;
    updateInert();
    // A session that was inert no longer knows which of its elements had focus.
    if (giveBack) focus.giveBack(from?.matches("iframe") ? null : from);
    from = null;
  }

  // Clicks on the overlay, and on inert elements beneath it, target the app element itself.
  app.addEventListener("click", (event) => {
    if (event.target === app) close();
  });
  narrow.addEventListener("change", () => focus.keep(() => {
    close({ giveBack: false });
    updateInert();
  }));

  return {
    /** The window is narrow, so the sidebar is a drawer. */
    isNeeded: () => narrow.matches,
    isOpen,
    close,
    toggle: () => (isOpen() ? close() : open()),
  };
}
