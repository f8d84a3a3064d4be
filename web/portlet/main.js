// main.js: assembles one session's page and exchanges messages with the shell.
import { listenToShell, sendToShell } from "../shared/bus.js";
import { copyPromised, copyText } from "../shared/clipboard.js";
import { isDemo } from "../shared/demo.js";
import { closest, find, h, reconcile, setAttribute } from "../shared/dom.js";
import { oncePerFrame } from "../shared/once-per-frame.js";
import { mark } from "../shared/icons.js";
import { shortcutOf } from "../shared/keys.js";
import { mergeUpsert } from "../shared/patch.js";
import { load, save } from "../shared/storage.js";
import { showTheme } from "../shared/theme.js";
import { mountBanners } from "./banner.js";
import { lastUserText, mountComposer } from "./composer.js";
import { agentName } from "./connection.js";
import { mountHeader } from "./header.js";
import { conversationMarkdown } from "./markdown.js";
import { mountPlan } from "./plan.js";
import { createRequests } from "./requests.js";
import { mountScroller } from "./scroller.js";
import { createSession } from "./session.js";
import { mountStatusLine } from "./status-line.js";
import { drawWhole } from "./tool-body.js";
import { mountTranscript } from "./transcript.js";

/** The rail stands beside the conversation from this width on. */
const RAIL_FROM_PX = 980;
/** How long "Esc again to stop" is valid. */
const ESCAPE_MS = 2000;
/** If loading takes longer than this, a skeleton is shown. */
const SKELETON_MS = 150;
/** Older items per page: few enough to draw within a frame or two. */
const PAGE_ITEMS = 50;
/** Older items per page when copying; these are not drawn. */
const COPY_PAGE_ITEMS = 500;
/** How long after a failure older items are requested again. */
const PAGE_RETRY_MS = 5000;

const byId = (/** @type {string} */ id) => find(document, `#${id}`);
const root = byId("session");
const log = byId("log");
const empty = byId("empty");
const older = byId("older");
let visible = false;
let railWanted = true;
let narrow = innerWidth < RAIL_FROM_PX;
let escapeUntil = 0;
let paging = false;
let waited = false;
let shown = false;

const draw = oncePerFrame(drawAll, { sparing: true });
const session = createSession(() => visible && draw());
const { state } = session;
const requests = createRequests();
const scroller = mountScroller(log, byId("log-content"), {
  moved: () => drawStatus(),
  nearTop: () => void pageOlder(),
});
const transcript = mountTranscript(byId("turns"), { session, redraw: draw });
const header = mountHeader(byId("header"), {
  session,
  command: (name) => sendToShell({ kind: "command", name }),
  makeDefaults: (options) => sendToShell({ kind: "defaults", options }),
  toggleRail,
  copyConversation: () => void copyConversation(),
});
const banners = mountBanners(byId("banners"), { session, reconnect, retry: () => sendToShell({ kind: "retry" }) });
const drawStatus = mountStatusLine(byId("status-line"), {
  session,
  isAway: scroller.isAway,
  toEnd: scroller.follow,
  act,
  note: () => (Date.now() < escapeUntil ? "Esc again to stop" : ""),
});
const composer = mountComposer(byId("composer"), { session, send, stop, setOption });
const plan = mountPlan({ rail: byId("rail"), strip: byId("plan-strip") }, { session, reveal });

function drawAll() {
  if (!visible) return;
  const first = session.dirty.all;
  setAttribute(root, "data-stale", state.stale);
  transcript.draw();
  session.drawn();
  header.draw({ railOffered: !narrow && plan.offers(), railShown: railWanted });
  banners.draw();
  plan.draw(narrow, railWanted);
  drawStatus();
  composer.draw();
  drawEmpty();
  if (first && !shown) scroller.follow();
  shown ||= first;
}

function drawEmpty() {
  const { context, loaded, turns, pending, failed } = state;
  const nothing = loaded && turns.length === 0 && pending === null;
  empty.hidden = !nothing && (loaded || !waited || failed !== null);
  older.hidden = !state.more;
  if (empty.hidden || !context) return;
  const key = nothing
    ? `ready ${context.session.cliType} ${context.project?.name} ${state.facts.commands?.length ?? 0}`
    : "skeleton";
  if (empty.dataset.key === key) return;
  empty.dataset.key = key;
  reconcile(empty, nothing ? readyPage() : [1, 2, 3].map(() => h("div", { class: "skeleton" })));
}

function readyPage() {
  const { context, facts } = state;
  if (!context) return [];
  return [
    h("span", { class: "state-tile" }, mark(context.session.cliType)),
    h("h2", {}, `${agentName(context)} in ${context.project?.name ?? "this project"}`),
    h("p", {}, ...(isDemo(context.session.cliType)
      ? ["There is no model behind it. Send ", h("code", {}, "tour"), " to see everything it can show."]
      : ["Describe the task. The first message becomes the title."])),
    h("p", { class: "hints" },
      ...(facts.commands?.length ? [h("kbd", { class: "kbd" }, "/"), "commands"] : []),
      h("kbd", { class: "kbd" }, "⇧ ↵"),
      "new line"),
  ];
}

/** @param {string} text @returns {Promise<boolean>} */
async function send(text) {
  session.set({ pending: text, error: null });
  scroller.follow();
  const answer = await requests.ask({ type: "session:send", sessionId: sessionId(), content: text });
  if (answer.type !== "error") return true;
  session.set({ pending: null });
  sendToShell({ kind: "report", text: answer.message, detail: answer.detail ?? null });
  return false;
}

async function stop() {
  escapeUntil = 0;
  if (session.running()) await reportIfFailed(requests.ask({ type: "session:cancel", sessionId: sessionId() }));
}

async function reconnect() {
  const cliType = state.context?.session.cliType ?? "";
  const answer = await requests.ask({ type: "session:reconnect", cliType, sessionId: sessionId() });
  if (answer.type === "error") session.set({ error: answer });
  else session.set({ error: null });
}

/** @param {string} optionId @param {string} value */
function setOption(optionId, value) {
  void reportIfFailed(requests.ask({ type: "session:set-option", sessionId: sessionId(), optionId, value }));
}

/** @param {Promise<import("../shared/messages.js").ServerFrame>} asked */
async function reportIfFailed(asked) {
  const answer = await asked;
  if (answer.type === "error") sendToShell({ kind: "report", text: answer.message, detail: answer.detail ?? null });
}

/** @param {"cancel" | "restart" | "retry"} what */
function act(what) {
  if (what === "cancel") void stop();
  else if (what === "restart") void reconnect();
  else void send(lastUserText(session));
}

const sessionId = () => state.context?.session.id ?? "";

async function pageOlder() {
  const before = state.turns[0]?.items[0];
  if (!state.more || paging || !before) return;
  paging = true;
  const answer = await requests.ask({ type: "session:page", sessionId: sessionId(), before, limit: PAGE_ITEMS });
  if (answer.type === "session:page") scroller.keepPlace(() => {
    session.prepend(answer);
    drawAll();
  });
  if (answer.type !== "error") return void (paging = false);
  if (state.online) sendToShell({ kind: "report", text: answer.message, detail: answer.detail ?? null });
  setTimeout(() => {
    paging = false;
    if (scroller.isNearTop()) void pageOlder();
  }, PAGE_RETRY_MS);
}

/** @param {string} itemId */
function reveal(itemId) {
  const node = transcript.node(itemId);
  if (!node) return;
  scroller.reveal(node);
  node.dataset.flash = "";
  setTimeout(() => delete node.dataset.flash, 1200);
}

function toggleRail() {
  railWanted = !railWanted;
  save("rail-hidden", railWanted ? null : true);
  draw();
}

/** @param {HTMLElement} button */
async function showWhole(button) {
  const body = button.closest(".tool-body");
  const itemId = button.closest(".tool")?.getAttribute("data-item") ?? "";
  const answer = await requests.ask({ type: "session:output", sessionId: sessionId(), itemId });
  if (answer.type === "session:output" && body instanceof HTMLElement) drawWhole(body, answer.html);
  else if (answer.type === "error") {
    sendToShell({ kind: "report", text: answer.message, detail: answer.detail ?? null });
  }
}

/** @param {string} text @param {HTMLElement} node */
async function copyOrReport(text, node) {
  if (!(await copyText(text, node))) sendToShell({ kind: "report", text: "Could not copy", detail: null });
}

/**
 * All items of the conversation, oldest first, and its turns, including what this page has not loaded.
 * @returns {Promise<Pick<import("./markdown.js").Conversation, "items" | "records">>}
 */
async function wholeHistory() {
  const items = state.turns.flatMap((turn) => turn.items.flatMap((id) => state.items.get(id) ?? []));
  const records = new Map(state.turns.map((turn) => [turn.id, turn.record]));
  for (let more = state.more; more && items[0]; ) {
    const answer = await requests.ask({
      type: "session:page",
      sessionId: sessionId(),
      before: items[0].itemId,
      limit: COPY_PAGE_ITEMS,
    });
    if (answer.type !== "session:page") {
      throw new Error(answer.type === "error" ? answer.message : "Could not load the conversation");
    }
    items.unshift(...answer.entries.map((entry) => mergeUpsert(undefined, entry)));
    for (const record of answer.turns) records.set(record.turnId, record);
    more = answer.more && answer.entries.length > 0;
  }
  return { items, records };
}

async function copyConversation() {
  const { context } = state;
  if (!context) return;
  const place = { root: context.project?.path ?? "", home: context.home };
  const coming = wholeHistory().then((history) =>
    conversationMarkdown({ title: context.session.title, agent: agentName(context), place, ...history }));
  const copied = await copyPromised(coming).catch(() => false);
  if (copied) sendToShell({ kind: "command", name: "conversation-copied" });
  else sendToShell({ kind: "report", text: "Could not copy the conversation", detail: null });
}

log.addEventListener("click", (event) => {
  const answer = closest(event, '[data-do="copy-answer"]');
  if (answer) void copyText(transcript.answerAt(answer), answer);
  const copy = closest(event, ".copy-code");
  if (copy) void copyText(copy.closest("figure")?.querySelector("pre > code")?.textContent ?? "", copy);
  const whole = closest(event, '[data-do="show-whole"]');
  if (whole) void showWhole(whole);
  const place = closest(event, "a.ref");
  if (place) void copyOrReport(
    place.dataset.line ? `${place.dataset.path}:${place.dataset.line}` : (place.dataset.path ?? ""),
    place,
  );
});

const nothingHasFocus = () => document.activeElement === document.body || document.activeElement === null;

addEventListener("keydown", (event) => {
  const shortcut = shortcutOf(event);
  // Text typed while nothing has focus is meant for the agent: focusing the input makes the key go there.
  if (!shortcut && event.key.length === 1 && !event.ctrlKey && !event.metaKey && !event.altKey && nothingHasFocus()) {
    composer.focus();
  }
  if (shortcut) {
    event.preventDefault();
    const name = shortcut.name === "region"
      ? (composer.hasFocus() ? "region-from-input" : "region-from-log")
      : shortcut.name;
    if (name === "rail") toggleRail();
    else sendToShell({ kind: "shortcut", name, index: shortcut.index ?? null });
  } else if (event.key === "Escape" && !event.defaultPrevented && session.running()) {
    // In the input, Esc may be meant for the text; elsewhere it stops the turn.
    if (!composer.hasFocus() || Date.now() < escapeUntil) void stop();
    else {
      escapeUntil = Date.now() + ESCAPE_MS;
      setTimeout(drawStatus, ESCAPE_MS + 50);
    }
    drawStatus();
  }
});

addEventListener("resize", () => {
  narrow = innerWidth < RAIL_FROM_PX;
  draw();
});

/** The page may be preloaded long before it gets a session. */
function begin() {
  railWanted = load("rail-hidden") !== true;
  setTimeout(() => {
    waited = true;
    if (visible) drawEmpty();
  }, SKELETON_MS);
}

listenToShell((message) => {
  switch (message.kind) {
    case "context":
      if (!state.context) begin();
      return session.set({ context: message.context });
    case "server": return message.messages.forEach(session.apply);
    case "answer": return requests.answer(message.id, message.message);
    case "failed": return session.set({ failed: message.error });
    case "online": return session.set({ online: message.online });
    case "theme": return showTheme(message.theme);
    case "focus":
      if (message.target === "log") return log.focus();
      // `lost`: focus the input only if nothing else in this page has focus.
      return message.target === "input" || nothingHasFocus() ? composer.focus() : undefined;
    case "command":
      if (message.name === "rail") toggleRail();
      if (message.name === "copy-conversation") {
        // The palette had focus, and only the focused page may write to the clipboard.
        window.focus();
        void copyConversation();
      }
      return;
    case "visible":
      visible = message.visible;
      if (visible) drawAll();
  }
});

setInterval(() => {
  if (!visible || !session.running()) return void (visible && banners.tick());
  drawStatus();
  transcript.tick(Date.now());
}, 1000);
root.dataset.ready = "";
sendToShell({ kind: "ready" });
