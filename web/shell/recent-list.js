// recent-list.js: directories the user worked in before, suggested while the path field is empty.
import { closest, h } from "../shared/dom.js";
import { icon } from "../shared/icons.js";
import { shortPath } from "../shared/paths.js";

/** @typedef {import("../shared/protocol.js").RecentDirectory} RecentDirectory */

/** @type {Record<RecentDirectory["source"], string>} */
const NOTES = { removed: "Removed from the sidebar", agent: "Used by an agent" };

/**
 * @param {{ recent: () => Promise<RecentDirectory[]>, home: () => string, choose: (path: string) => void }} deps
 */
export function createRecentList({ recent, home, choose }) {
  const list = h("div", { class: "recent-list" });
  const root = h("section", { class: "recent", "aria-label": "Recent directories", hidden: true },
    h("h3", {}, "Recent"),
    list);
  let wanted = true;
  list.addEventListener("click", (event) => {
    const path = closest(event, "[data-path]")?.dataset.path;
    if (path) choose(path);
  });
  list.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!step) return;
    const rows = /** @type {HTMLElement[]} */ ([...list.children]);
    rows.at(
      (rows.indexOf(/** @type {HTMLElement} */ (document.activeElement)) + step + rows.length) % rows.length,
    )?.focus();
    event.preventDefault();
  });

  const draw = () => void (root.hidden = !wanted || list.childElementCount === 0);

  return {
    root,
    /** Loads them; on failure the list stays empty. */
    async load() {
      const directories = await recent().catch(() => []);
      list.replaceChildren(...directories.map(({ path, source, isRepository }) =>
        h("button", { class: "recent-option", type: "button", "data-path": path, title: path },
          icon("folder"), h("span", { class: "path-name truncate", dir: "auto" }, shortPath(path, home())),
          isRepository ? h("span", { class: "path-note" }, "git") : null,
          h("span", { class: "path-note" }, NOTES[source]))));
      draw();
    },
    /** @param {boolean} show The path field is empty. */
    show(show) {
      wanted = show;
      draw();
    },
  };
}
