// tool-body.js: what a tool call shows when it is open: its output, changes, files or result.
import { h, setText } from "../shared/dom.js";
import { takeBlockChange, WHOLE } from "../shared/patch.js";
import { addCopyButtons, showBlocks, showSection } from "./html.js";
import { noteLiveOutput, sendsLiveOutput } from "./live-output.js";
import { kindOf, stateOf } from "./tool-labels.js";

/** @typedef {import("./tool.js").ToolItem} ToolItem */
/**
 * What each body shows now; `whole` is the item that is shown in full.
 * @type {WeakMap<HTMLElement, {
 *   item: ToolItem | null,
 *   whole: ToolItem | null,
 *   sections: unknown,
 *   blocks: string[],
 *   text: string,
 * }>}
 */
const shown = new WeakMap();
/** Lines of plain output that stay in the page. */
const LINES_MAX = 2000;

/**
 * @param {HTMLElement} body
 * @param {ToolItem} item
 * @param {string} cliType The agent that runs it.
 */
export function drawBody(body, item, cliType) {
  const now = shown.get(body) ?? { item: null, whole: null, sections: undefined, blocks: [], text: "" };
  if (!shown.has(body)) body.append(
    h("div", { class: "tool-sections" }),
    h("div", { class: "terminal tool-output", tabindex: 0, role: "group", "aria-label": "Output" }),
    h("button", { class: "show-whole", type: "button", "data-do": "show-whole" }),
    h("p", { class: "tool-silent", hidden: true }),
  );
  shown.set(body, now);
  if (now.whole === item) return;
  now.item = item;
  const [sections, output, more, silent] = /** @type {HTMLElement[]} */ ([...body.children]);
  if (!sections || !output || !more || !silent) return;
  // An item that was shown in full has grown: it is cut again, and can be shown in full again.
  if (now.whole) {
    output.replaceChildren();
    Object.assign(now, { whole: null, sections: undefined, blocks: [], text: "" });
  }
  if (now.sections !== item.sections) {
    now.sections = item.sections;
    sections.replaceChildren(...(item.sections ?? []).map((section) => {
      const node = h("div", { class: "tool-section", "data-kind": section.kind });
      showSection(node, section.html);
      addCopyButtons(node);
      return node;
    }));
  }
  const atEnd = output.scrollHeight - output.scrollTop - output.clientHeight < 20;
  if (item.html.length) showBlocks(output, item.html, now.blocks, takeBlockChange(item));
  else drawText(output, failureText(item), now);
  output.hidden = item.html.length === 0 && failureText(item) === "";
  drawSilence(silent, item, cliType, !output.hidden);
  if (atEnd && stateOf(item) === "running") output.scrollTop = output.scrollHeight;
  const cut = (item.sections ?? []).reduce((sum, { cutLines }) => sum + (cutLines ?? 0), 0);
  more.hidden = cut === 0 && !item.html.some((line) => line.startsWith('<div class="cut"'));
  more.textContent = cut ? `Show all (${cut.toLocaleString()} more lines)` : "Show all";
}

/**
 * The note for a running command without output: some agents send output only at the end.
 * @param {HTMLElement} node
 * @param {ToolItem} item
 * @param {string} cliType
 * @param {boolean} prints
 */
function drawSilence(node, item, cliType, prints) {
  const isRunning = stateOf(item) === "running" && kindOf(item) === "execute";
  if (isRunning && prints) noteLiveOutput(cliType);
  node.hidden = !isRunning || prints;
  if (!node.hidden) setText(node, sendsLiveOutput(cliType) ? "No output yet" : "Output appears when it ends");
}

/** The output; for a failure without output, the reason we have. @param {ToolItem} item */
function failureText(item) {
  return item.text || (stateOf(item) === "failed" ? (item.errorMessage ?? "Failed without a message") : "");
}

/**
 * Draws plain-text output: its newest lines.
 * @param {HTMLElement} output
 * @param {string} text
 * @param {{ text: string }} now
 */
function drawText(output, text, now) {
  if (text === now.text) return;
  const lines = text.split("\n");
  output.textContent = lines.length > LINES_MAX ? lines.slice(-LINES_MAX).join("\n") : text;
  now.text = text;
}

/**
 * Shows the full output in place of the cut one.
 * @param {HTMLElement} body
 * @param {string[]} html Of each section, then of what was printed.
 */
export function drawWhole(body, html) {
  const now = shown.get(body);
  const [sections, output, more] = /** @type {HTMLElement[]} */ ([...body.children]);
  if (!now || !sections || !output || !more) return;
  now.whole = now.item;
  for (const section of /** @type {HTMLCollectionOf<HTMLElement>} */ (sections.children)) {
    showSection(section, html.shift() ?? "");
    addCopyButtons(section);
  }
  output.hidden = html.length === 0;
  output.replaceChildren();
  showBlocks(output, html, (now.blocks = []), WHOLE);
  more.hidden = true;
}
