// drawer.js: the sidebar of a narrow window. While it is open it lies over the page, and what it covers is out of
// reach.

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

  /** What can be reached: the drawer while it is open, also as long as it still moves; else all but it. */
  function reach() {
    sidebar.inert = narrow.matches && !isOpen();
    for (const node of covered) node.inert = isOpen();
  }
  reach();

  function open() {
    from = document.activeElement;
    app.dataset.drawer = "";
    reach();
    focus.enter("side");
  }

  /** @param {{ giveBack?: boolean }} [options] */
  function close({ giveBack = true } = {}) {
    if (!isOpen()) return;
    delete app.dataset.drawer;
    reach();
    // A session that was out of reach does not know any more what had focus in it.
    if (giveBack) focus.giveBack(from?.matches("iframe") ? null : from);
    from = null;
  }

  // What is drawn over the page, and what nobody can reach through it, counts as the app itself.
  app.addEventListener("click", (event) => {
    if (event.target === app) close();
  });
  narrow.addEventListener("change", () => focus.keep(() => {
    close({ giveBack: false });
    reach();
  }));

  return {
    /** The sidebar is a drawer here. */
    isNeeded: () => narrow.matches,
    isOpen,
    close,
    toggle: () => (isOpen() ? close() : open()),
  };
}
