// states.js: every state and control on one page, drawn by the product's own modules. For screenshots; `screens.js`
// serves it.
// @ts-nocheck: its imports are addresses of the running product.
import { NAMES, URGENCY } from "/shared/attention.js";
import { h } from "/shared/dom.js";
import { glyph, icon } from "/shared/icons.js";
import { nav } from "/shared/keys.js";
import { openMenu } from "/shared/menu.js";
import { mountTabBar } from "/shell/tab-bar.js";
import { mountToasts } from "/shell/toasts.js";
import { addRowActions, projectRow, sessionRow, updateProjectRow, updateSessionRow } from "/shell/tree-rows.js";
import { mountComposer } from "/portlet/composer.js";
import { createText, updateText } from "/portlet/items.js";
import { createSession } from "/portlet/session.js";
import { mountStatusLine } from "/portlet/status-line.js";
import { createTool, toggleTool, updateTool } from "/portlet/tool.js";

const now = Date.now();
const ago = (minutes) => new Date(now - minutes * 60_000).toISOString();
const place = { root: "/home/dev/atlas-api", home: "/home/dev" };
const EXAMPLES = {
  needs_permission: ["Rotate webhook signing secrets", "codex", 2, "Agent waits for a decision"],
  error: ["Bundle size regression", "claude-code", 60, "Turn failed"],
  finished: ["Fix flaky auth refresh test", "claude-code", 4, "Turn ended while not in view"],
  working: ["Virtualize the activity feed", "codex", 0, "A turn is running"],
  starting: ["Move the relay to a bounded queue", "claude-code", 0, "Agent process is starting"],
  reconnecting: ["Add --json to every command", "claude-code", 0, "Automatic restart under way"],
  disconnected: ["Windows path handling", "gemini", 130, "Restarts given up"],
  idle: ["Explain the retry budget", "claude-code", 2900, "Nothing to see"],
};

const summary = (attention, title, cliType, minutes) => ({
  id: `${cliType}:${title}`,
  title,
  cliType,
  attention,
  lastActiveAt: ago(minutes),
  createdAt: ago(minutes),
  projectId: "p",
  continuity: "live",
});
function row(attention, options = {}) {
  const [title, cliType, minutes] = EXAMPLES[attention];
  const node = sessionRow({ id: title, cliType });
  updateSessionRow(node, {
    session: summary(attention, title, cliType, minutes),
    agentName: cliType,
    current: false,
    now,
    ...options,
  });
  return node;
}
function tabs(...views) {
  const bar = h("div", { class: "tab-bar one-tab" });
  mountTabBar(bar, { activate() {}, close() {}, move() {}, menu() {} }).update(
    views.map(([attention, more]) => ({
      id: attention,
      title: EXAMPLES[attention][0],
      cliType: EXAMPLES[attention][1],
      attention,
      current: false,
      provisional: false,
      controls: "",
      ...more,
    })),
  );
  return bar;
}

const attention = h("table", { class: "states" }, h("thead", {},
  h("tr", {}, ...["Glyph", "State", "Sidebar row", "Tab", "Enters when"].map((text) => h("th", {}, text)))),
  h("tbody", {},
    ...URGENCY.map((state) => h("tr", {},
      h("td", {}, h("span", { class: "glyphs" }, ...[16, 14, 12].map((size) => glyph(state, { size })))),
      h("td", {}, h("b", {}, NAMES[state])),
      h("td", {}, row(state)),
      h("td", {}, tabs([state])),
      h("td", {}, EXAMPLES[state][3])))));

const hovered = row("idle");
addRowActions(hovered);
hovered.id = "hovered";
const focused = row("working");
focused.tabIndex = 0;
focused.id = "focused";
const dragged = tabs(["idle", {}], ["working", { current: true }]);
dragged.querySelector(".tab:last-child").dataset.drop = "before";
const folded = projectRow({ id: "p", path: "/home/dev/atlas-web", name: "atlas-web" });
updateProjectRow(folded, {
  project: { id: "p", path: "/home/dev/atlas-web", name: "atlas-web" },
  expanded: false,
  hint: "",
  count: 4,
  attention: "error",
});

const tool = (kind, status, more = {}, detail = {}) => {
  const node = createTool(`${kind}-${status}`);
  const item = {
    type: "tool_call",
    itemId: node.dataset.item,
    turnId: "t",
    status,
    toolName: kind,
    toolArguments: {},
    startedAt: ago(0.07),
    changedAt: ago(0),
    text: "",
    html: [],
    ...more,
    tool: { kind, interrupted: false, startedAt: ago(0.07), ...(status === "complete"
      ? { endedAt: ago(0) }
      : {}), ...detail },
  };
  updateTool(node, item, { place, isLast: false, now });
  return node;
};
const thinking = createText({ type: "thinking", itemId: "think", origin: "agent" });
thinking.dataset.open = "true";
updateText(thinking, {
  type: "thinking",
  itemId: "think",
  status: "update",
  startedAt: ago(0.1),
  changedAt: ago(0),
  text:
    "The reader can outrun the socket. A queue without a bound only moves the problem, so it needs a high-water mark.",
  html: [],
});
const running = tool("execute", "update", {}, { command: "pnpm test" });
running.querySelector(".tool-head").addEventListener("click", toggleTool);
const calls = h("div", { class: "turn" },
  tool("read", "complete", {}, { locations: [{ path: "/home/dev/atlas-api/src/ws/relay.ts" }] }),
  thinking,
  running,
  tool("execute", "complete", {}, { command: "pnpm lint", exitCode: 0 }),
  tool("execute", "complete", {
    toolOutputIsError: true,
    text: "error TS2345: argument of type 'Frame'",
  }, { command: "pnpm build", exitCode: 2 }));

/** A session in a given state, as a portlet holds it. */
function session({ attention = "idle", status = "connected", facts = {}, record } = {}) {
  const made = createSession(() => {});
  Object.assign(made.state, { loaded: true, facts: { context: { used: 62_000, size: 200_000 }, options: [
    { id: "mode", name: "Mode", category: "mode", value: "a", choices: [{ value: "a", name: "Accept edits" }] },
    { id: "model", name: "Model", category: "model", value: "o", choices: [{ value: "o", name: "Opus" }] },
  ], ...facts } });
  made.state.context = {
    session: summary(attention, `s${Math.random()}`, "claude-code", 0),
    agent: { cliType: "claude-code", name: "Claude Code", installed: true, status },
    project: null,
    home: "/home/dev",
    status: { type: "agent:status", cliType: "claude-code", status },
  };
  if (record) made.state.turns.push({ id: "t", items: [], record: { turnId: "t", startedAt: ago(1.2), ...record } });
  return { ...made, running: () => (record?.status === "running" ? made.state.turns[0] : undefined) };
}
function statusLine(own) {
  const root = h("div", { class: "status-line" });
  mountStatusLine(root, { session: own, isAway: () => false, toEnd() {}, act() {}, note: () => "" })();
  return root;
}
const statuses = h("div", { class: "card" }, ...[
  session({ attention: "working", facts: { activity: "running tests" }, record: { status: "running" } }),
  session({ attention: "needs_permission", record: { status: "running" } }),
  session({ attention: "working", facts: { silentMs: 30_000 }, record: { status: "running" } }),
  session({ record: { status: "error", endedAt: ago(0), errorMessage: "rate limit, try again in 40 s" } }),
  session({ record: { status: "completed", endedAt: ago(0), usage: { inputTokens: 70_000, outputTokens: 4000 } } }),
].map(statusLine));

function composer(own, text = "") {
  const root = h("div", { class: "composer-box" });
  const made = mountComposer(root, { session: own, send: async () => true, stop() {}, setOption() {} });
  made.draw();
  const input = root.querySelector("textarea");
  input.value = text;
  input.dispatchEvent(new Event("input"));
  return root;
}
const toasts = h("div", { class: "toasts here" });
mountToasts(toasts, { giveBack() {} })("Session archived", { action: { label: "Undo", run() {} } });
const chip = (state, text) => h("span", { class: "chip", "data-state": state },
  h("span", { class: "dot", "data-state": state }),
  text);
const controls = h("div", { class: "card controls" },
  ...["primary", "secondary", "ghost"].map((kind) => h("button", { class: "button", type: "button", "data-kind": kind },
    kind[0].toUpperCase() + kind.slice(1))),
  h("button", { class: "icon-button", type: "button", "aria-pressed": "true", "aria-label": "Rail" }, icon("rail")),
  h("button", { class: "button", type: "button", "data-kind": "primary", id: "focused-button" }, "Focused"),
  h("button", { class: "button", type: "button", "data-kind": "secondary", disabled: true }, "Disabled"),
  chip("connected", "Connected"), chip("reconnecting", "Reconnecting"), chip("disconnected", "Disconnected"));

const part = (title, area, ...nodes) => h("section", { class: `part ${area}` }, h("h2", {}, title), ...nodes);
const caption = (text) => h("h3", {}, text);
document.body.append(h("main", { class: "gallery" },
  part("Attention states, most urgent first", "attention", attention),
  part("Tool calls and thinking", "calls", h("div", { class: "card" }, calls)),
  part(
    "Row and tab, interaction",
    "rows",
    caption("Row hovered: time becomes Archive and More"),
    hovered,
    caption("Row focused by keyboard"),
    focused,
    caption("Tab dragged: 2 px insertion line"),
    dragged,
    caption("Collapsed project shows its most urgent state"),
    folded,
  ),
  part("Status line above the input", "status", statuses, h("h2", { class: "next" }, "Toast, 6 s, with undo"), toasts),
  part("Controls", "controls-part", controls, h("h2", { class: "next" }, "Menu"), h("div", { id: "menu-place" })),
  part("Input bar: ready, working, disconnected", "inputs", h("div", { class: "three" },
    composer(session(), "Also cover the case where the socket closes mid-frame."),
    composer(session({ attention: "working", record: { status: "running" } })),
    composer(session({
      attention: "disconnected",
      status: "disconnected",
      facts: { context: { used: 182_000, size: 200_000 } },
    }))))));
const at = document.getElementById("menu-place").getBoundingClientRect();
openMenu({ x: at.left, y: at.top }, "atlas-web", [
  { label: "New session", icon: "plus", hint: nav("N"), run() {} },
  { label: "Copy path", icon: "copy", run() {} },
  "line",
  { label: "Remove from sidebar", icon: "close", run() {} },
]);
document.documentElement.dataset.ready = "";
