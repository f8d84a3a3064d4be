// composer.js: the message input. Enter sends, drafts are saved, `/` lists the agent's commands.
import { closest, h, setAttribute, setText } from "../shared/dom.js";
import { icon } from "../shared/icons.js";
import { drafts, watch } from "../shared/storage.js";
import { compact } from "../shared/time.js";
import { mountCommandList } from "./command-list.js";
import { agentName, connectionOf } from "./connection.js";
import { contextRing } from "./context-ring.js";
import { mountOptions } from "./options.js";

/** @typedef {import("./session.js").Session} Session */

/** The pause in typing after which the draft is saved. */
const DRAFT_MS = 300;

/**
 * @param {HTMLElement} root
 * @param {{
 *   session: Session,
 *   send: (text: string) => Promise<boolean>,
 *   stop: () => void,
 *   setOption: (id: string, value: string) => void,
 * }} deps
 */
export function mountComposer(root, { session, send, stop, setOption }) {
  const input = h("textarea", {
    class: "composer-input",
    dir: "auto",
    rows: 1,
    "aria-label": "Message",
    "aria-controls": "command-list",
  });
  const options = h("div", { class: "composer-options" });
  const ring = contextRing();
  const used = h("span", { class: "context-text tabular" });
  const context = h("span", { class: "context", hidden: true }, ring.node, used);
  const stopButton = h("button", { class: "button stop", type: "button", "data-kind": "secondary", hidden: true },
    icon("stop"),
    "Stop",
    h("kbd", { class: "kbd" }, "Esc"));
  const sendButton = h("button", { class: "send", type: "submit", "aria-label": "Send", title: "Send", disabled: true },
    icon("arrow-up"));
  const form = h("form", { class: "composer" },
    input,
    h("div", { class: "composer-bar" }, options, h("span", { class: "space" }), context, stopButton, sendButton));
  root.append(form);
  const list = mountCommandList(root, { input, commands: () => session.state.facts.commands ?? [], onPick: changed });
  const drawOptions = mountOptions(options, { session, setOption });
  let draftOf = "";
  /** The saved draft, as this window last read or wrote it. */
  let draft = "";
  let timer = 0;
  let sending = false;
  /** The input gets focus once it is enabled again: disabling it removes focus. */
  let awaitsFocus = false;
  /** The commands in the list: an agent may send them after the user started to type one. */
  let offered = session.state.facts.commands;

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    void submit();
  });
  form.addEventListener("pointerdown", (event) => {
    if (closest(event, "button, textarea")) return;
    event.preventDefault();
    input.focus();
  });
  stopButton.addEventListener("click", stop);
  input.addEventListener("input", changed);
  input.addEventListener("keydown", (event) => {
    if (event.isComposing || list.key(event)) return;
    if (event.key === "Enter" && !event.shiftKey && !event.altKey) {
      event.preventDefault();
      void submit();
    } else if (event.key === "ArrowUp" && input.value === "") recall(event);
  });

  /** @param {Event} event */
  function recall(event) {
    const last = lastUserText(session);
    if (!last) return;
    event.preventDefault();
    input.value = last;
    changed();
  }

  function changed() {
    list.draw();
    drawButtons();
    clearTimeout(timer);
    timer = window.setTimeout(keepDraft, DRAFT_MS);
  }

  /** Saves only changes made here: another window may have a newer draft. */
  function keepDraft() {
    if (!draftOf || input.value === draft) return;
    draft = input.value;
    drafts.write(draftOf, draft);
  }
  addEventListener("pagehide", keepDraft);
  watch("drafts", readDraft);

  /** Follows drafts saved by other windows, unless the text was changed here. */
  function readDraft() {
    if (!draftOf || input.value !== draft) return;
    draft = drafts.read(draftOf);
    if (input.value === draft) return;
    input.value = draft;
    list.draw();
    drawButtons();
  }

  /** @param {string} sessionId */
  function takeDraftOf(sessionId) {
    if (draftOf === sessionId) return;
    // A session that got another id keeps its draft.
    if (draftOf) {
      drafts.write(draftOf, "");
      drafts.write(sessionId, input.value);
      draft = input.value;
    }
    const isFirst = !draftOf;
    draftOf = sessionId;
    // Text typed before the session was known goes after its draft.
    if (isFirst && input.value) {
      draft = drafts.read(sessionId);
      input.value = draft + input.value;
      changed();
    } else readDraft();
  }

  async function submit() {
    const text = input.value;
    if (!canSend()) return;
    sending = true;
    input.value = "";
    changed();
    keepDraft();
    const sent = await send(text);
    sending = false;
    // Text that could not be sent returns to the input, before what was typed since.
    if (!sent) input.value = input.value ? `${text}\n${input.value}` : text;
    changed();
  }

  const isReady = () => {
    const { loaded, stale, failed } = session.state;
    const connection = connectionOf(session.state);
    return loaded && (!stale || failed !== null) && !["unknown", "disconnected", "reconnecting"].includes(connection);
  };
  const canSend = () =>
    isReady() && !sending && !session.running() && session.state.pending === null && input.value.trim() !== "";

  function drawButtons() {
    const running = session.running() !== undefined;
    sendButton.disabled = !canSend();
    stopButton.hidden = !running;
    stopButton.disabled = !session.state.online;
  }

  function draw() {
    const { context: sessionContext, facts } = session.state;
    if (!sessionContext) return;
    const name = agentName(sessionContext);
    takeDraftOf(sessionContext.session.id);
    const connection = connectionOf(session.state);
    const off = !isReady();
    setAttribute(input, "aria-label", `Message ${name}`);
    setAttribute(input, "placeholder", connection === "disconnected"
      ? `${sessionContext.session.hangs ? "Restart" : "Reconnect"} to send a message`
      : connection === "reconnecting" ? `Reconnecting to ${name}…`
      : connection === "unknown" ? "Liminal Builder is not running"
      : `Message ${name}…`);
    setAttribute(form, "data-off", off);
    const isOff = connection === "disconnected" || connection === "reconnecting";
    if (isOff && document.activeElement === input) awaitsFocus = true;
    input.disabled = isOff;
    takeFocus();
    drawOptions(input.disabled || connection === "unknown");
    if (offered !== facts.commands) {
      offered = facts.commands;
      list.draw();
    }
    context.hidden = !facts.context;
    if (facts.context) {
      const { used: now, size } = facts.context;
      ring.draw(size ? now / size : 0);
      setText(used, `${compact(now)} / ${compact(size)}`);
      setAttribute(context, "title", `Context: ${now.toLocaleString()} of ${size.toLocaleString()} tokens`);
      setAttribute(context, "data-full", size > 0 && now / size > 0.85);
    }
    drawButtons();
  }

  /** Takes focus only if nothing else has it. */
  function takeFocus() {
    if (!awaitsFocus || input.disabled || !document.hasFocus()) return;
    awaitsFocus = false;
    if (document.activeElement === document.body || document.activeElement === null) input.focus();
  }
  addEventListener("focus", takeFocus);
  document.addEventListener("focusin", () => (awaitsFocus = false));

  function focus() {
    awaitsFocus = input.disabled;
    input.focus();
  }

  return { draw, focus, isEmpty: () => input.value === "", hasFocus: () => document.activeElement === input };
}

/** @param {Session} session */
export function lastUserText({ state }) {
  for (const turn of [...state.turns].reverse()) {
    for (const id of turn.items) {
      const item = state.items.get(id);
      if (item?.type === "message" && item.origin === "user") return item.text;
    }
  }
  return "";
}
