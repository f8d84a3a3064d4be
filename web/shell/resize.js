// resize.js: the width of the sidebar, by drag or by arrow keys, and whether it is shown.
import { load, save } from "../shared/storage.js";

const MIN = 220;
const MAX = 400;
const NORMAL = 284;
const STEP = 16;

/**
 * @param {HTMLElement} app
 * @param {HTMLElement} separator
 */
export function mountResize(app, separator) {
  const stored = load("sidebar-width");
  let width = typeof stored === "number" ? stored : NORMAL;
  set(width);
  if (load("sidebar-hidden") === true) app.dataset.sidebar = "hidden";

  /** @param {number} wanted */
  function set(wanted) {
    width = Math.max(MIN, Math.min(MAX, Math.round(wanted)));
    app.style.setProperty("--sidebar-width", `${width}px`);
    separator.setAttribute("aria-valuenow", String(width));
  }

  separator.addEventListener("pointerdown", (event) => {
    event.preventDefault();
    separator.setPointerCapture(event.pointerId);
    separator.dataset.dragging = "";
  });
  separator.addEventListener("pointermove", (event) => {
    if (separator.hasPointerCapture(event.pointerId)) set(event.clientX);
  });
  separator.addEventListener("lostpointercapture", () => {
    delete separator.dataset.dragging;
    save("sidebar-width", width);
  });
  separator.addEventListener("dblclick", () => {
    set(NORMAL);
    save("sidebar-width", null);
  });
  separator.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -STEP, ArrowRight: STEP }[event.key];
    if (event.key === "Home") set(MIN);
    else if (event.key === "End") set(MAX);
    else if (step) set(width + step);
    else return;
    event.preventDefault();
    save("sidebar-width", width);
  });

  return {
    isHidden: () => app.dataset.sidebar === "hidden",
    toggle() {
      const hidden = app.dataset.sidebar !== "hidden";
      if (hidden) app.dataset.sidebar = "hidden";
      else delete app.dataset.sidebar;
      save("sidebar-hidden", hidden || null);
    },
  };
}
