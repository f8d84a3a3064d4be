// path-field.js: an input for a directory, with inline completion and a list.
import { closest, h, reconcile, setAttribute } from "../shared/dom.js";
import { glyph, icon } from "../shared/icons.js";
import { HOME, pathOf } from "../shared/paths.js";

/** @typedef {import("../shared/protocol.js").PathCompletion} PathCompletion */

/** The error when Add is pressed without a directory. */
export const NO_DIRECTORY = "Type or choose a directory";

let fields = 0;

/** Resolves when no pointer is pressed: an element that moves during a press loses its click. */
let released = Promise.resolve();
/** @type {(() => void) | null} */
let release = null;
addEventListener("pointerdown", ({ button }) => {
  if (button === 0 && !release) released = new Promise((resolve) => (release = resolve));
}, { capture: true });
// A menu or another frame may swallow the end of a press. A key press shows that the pointer is up.
for (const kind of ["pointerup", "pointercancel", "contextmenu", "keydown"]) {
  addEventListener(kind, () => {
    // The click follows right after.
    if (release) setTimeout(release);
    release = null;
  }, { capture: true });
}

/**
 * @param {{ complete: (prefix: string) => Promise<PathCompletion[]>, submit: () => void, changed?: () => void }} deps
 */
export function createPathField({ complete, submit, changed }) {
  const id = `path-${(fields += 1)}`;
  const ghost = h("span", { class: "path-ghost", "aria-hidden": "true" });
  const input = h("input", {
    class: "path-input",
    id,
    type: "text",
    role: "combobox",
    "aria-label": "Directory",
    "aria-autocomplete": "both",
    "aria-expanded": "false",
    "aria-controls": `${id}-list`, autocomplete: "off", autocapitalize: "off", spellcheck: "false", placeholder: HOME,
  });
  const tab = h("kbd", { class: "kbd", "aria-hidden": "true" }, "Tab");
  const field = h("div", { class: "path-field" }, icon("folder"), h("span", { class: "path-wrap" }, ghost, input), tab);
  const list = h("div", { class: "path-list", id: `${id}-list`, role: "listbox", "aria-label": "Directories" });
  const errorText = h("span");
  const alert = h("p", { class: "path-error", id: `${id}-error`, role: "alert", hidden: true },
    glyph("error"),
    errorText);
  /** @type {PathCompletion[]} */
  let options = [];
  let active = 0;
  /**
   * The user moved in the list. Only then does Enter pick the highlighted directory; otherwise it submits the text.
   */
  let isListActive = false;
  let asked = 0;

  input.addEventListener("input", () => {
    showError("");
    isListActive = false;
    void refresh();
  });
  input.addEventListener("keydown", onKey);
  list.addEventListener("pointerdown", (event) => event.preventDefault());
  list.addEventListener("click", (event) => {
    const option = closest(event, '[role="option"]');
    if (option) accept(options[Number(option.dataset.index)]);
  });

  async function refresh() {
    const turn = (asked += 1);
    const prefix = pathOf(input.value) || HOME;
    draw();
    const found = await complete(prefix).catch(() => []);
    await released;
    if (turn !== asked) return;
    options = [...found].sort((a, b) => Number(a.isProject) - Number(b.isProject));
    active = Math.max(0, options.findIndex(({ path }) => same(path, prefix)));
    isListActive = false;
    draw();
  }

  /** @param {KeyboardEvent} event */
  function onKey(event) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (event.isComposing) return;
    if (step && options.length) {
      active = isListActive ? (active + step + options.length) % options.length : step > 0 ? 0 : options.length - 1;
      isListActive = true;
      draw();
    } else if (event.key === "Tab" && !event.shiftKey && options[active] && options[active]?.path !== input.value) {
      accept(options[active]);
    } else if (event.key === "ArrowRight" && rest() && input.selectionStart === input.value.length) {
      accept(options[active]);
    } else if (event.key === "Enter") submit();
    else return;
    event.preventDefault();
  }

  /** @param {PathCompletion | undefined} option */
  function accept(option) {
    if (!option) return;
    input.value = option.path;
    input.focus();
    input.setSelectionRange(option.path.length, option.path.length);
    input.scrollLeft = input.scrollWidth;
    isListActive = false;
    showError("");
    void refresh();
  }

  /** The rest of the highlighted directory's path, after the typed text. */
  function rest() {
    const path = options[active]?.path ?? "";
    const typed = pathOf(input.value);
    return typed !== "" && begins(path, typed) ? path.slice(typed.length).replace(/\/$/, "") : "";
  }

  function draw() {
    const typed = pathOf(input.value) || HOME;
    if (!options.some(({ path }) => begins(path, typed))) options = [];
    const shown = options.filter(({ path }) => path !== typed);
    reconcile(ghost, [document.createTextNode(input.value), h("span", {}, rest())]);
    tab.hidden = shown.length === 0;
    reconcile(list, options.map((option, index) => row(option, index, typed)));
    list.hidden = options.length === 0;
    setAttribute(input, "aria-expanded", String(options.length > 0));
    setAttribute(input, "aria-activedescendant", isListActive && options[active] ? `${id}-${active}` : null);
    list.querySelector('[aria-selected="true"]')?.scrollIntoView({ block: "nearest" });
    changed?.();
  }

  /** @param {PathCompletion} option @param {number} index @param {string} typed */
  function row(option, index, typed) {
    const cut = option.path.replace(/\/$/, "").lastIndexOf("/") + 1;
    const name = option.path.slice(cut);
    const matched = typed.slice(cut).length;
    return h("div", {
      class: "path-option",
      role: "option",
      id: `${id}-${index}`,
      "data-index": index,
      "aria-selected": String(isListActive && index === active),
      "data-offered": !isListActive && index === active && typed !== option.path,
      "data-known": option.isProject,
    },
      icon("folder"),
      h("span", { class: "path-name truncate" }, h("b", {}, name.slice(0, matched)), name.slice(matched)),
      option.isProject ? h("span", { class: "path-note" }, "Already added")
        : option.isRepository ? h("span", { class: "path-note" }, "git")
        : null);
  }

  /** @param {string} text */
  function showError(text) {
    errorText.textContent = text;
    alert.hidden = text === "";
    setAttribute(input, "aria-invalid", text ? "true" : null);
    setAttribute(input, "aria-describedby", text ? alert.id : null);
    if (text) {
      options = [];
      draw();
    }
  }

  return {
    field, list, alert, input, showError, refresh,
    /** The directory: the one highlighted in the list, otherwise the typed text; empty if the field is empty. */
    value: () => (isListActive ? options[active]?.path : undefined) ?? pathOf(input.value),
  };
}

/** @param {string} a @param {string} b */
const same = (a, b) => a.replace(/\/+$/, "") === b.replace(/\/+$/, "");

/** Names are completed whatever their case. @param {string} path @param {string} typed */
const begins = (path, typed) => path.toLowerCase().startsWith(typed.toLowerCase());
