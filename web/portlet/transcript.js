// transcript.js: draws turns and their items. It knows items and nodes; never the shell.
import { h, reconcile, setAttribute, setText } from "../shared/dom.js";
import { icon } from "../shared/icons.js";
import { duration } from "../shared/time.js";
import { groupItems } from "./group-items.js";
import { answerText } from "./markdown.js";
import { createText, markUser, memoryMark, notice, toggleText, updateText } from "./items.js";
import { memoryMarks } from "./memory-marks.js";
import { createTool, tickTool, toggleTool, updateTool } from "./tool.js";
import { groupLabel, stateOf, timeOf } from "./tool-labels.js";

/** @typedef {import("./session.js").Session} Session */
/** @typedef {import("./session.js").Item} Item */
/** @typedef {import("./session.js").Turn} Turn */
/** @typedef {Extract<Item, { type: "tool_call" }>} ToolItem */

/**
 * @param {HTMLElement} root
 * @param {{ session: Session, redraw: () => void }} deps
 */
export function mountTranscript(root, { session, redraw }) {
  const { state, dirty } = session;
  /** @type {Map<string, HTMLElement>} */
  const nodes = new Map();
  /** @type {Map<string, HTMLElement>} */
  const turns = new Map();
  /** @type {Map<string, HTMLElement>} */
  const groups = new Map();
  /** Lines above turns, where the agent's memory begins or ends. @type {Map<string, HTMLElement>} */
  let marks = new Map();
  /** The item that was the last one when it was drawn. */
  let last = "";
  const pending = h("section", { class: "turn" }, h("article", { class: "user-turn", "data-pending": true },
    h("span", { class: "visually-hidden" }, "You: "),
    h("div", { class: "user-text", dir: "auto" })));

  root.addEventListener("click", (event) => {
    const id = toggleTool(event) ?? toggleText(event);
    const group = event.target instanceof Element ? event.target.closest(".group") : null;
    if (id) dirty.items.add(id);
    else if (
      group instanceof HTMLElement
      && event.target instanceof Element
      && event.target.closest(".group > .tool-head")
    ) {
      group.dataset.open = String(group.dataset.open !== "true");
      drawGroupOpen(group);
    }
    if (id) redraw();
  });

  /** @param {Item} item */
  function node(item) {
    const known = nodes.get(item.itemId);
    if (known) return known;
    const made = item.type === "tool_call" ? createTool(item.itemId) : createText(item);
    nodes.set(item.itemId, made);
    dirty.items.add(item.itemId);
    return made;
  }

  /** @param {ToolItem[]} calls */
  function group(calls) {
    const key = calls[0]?.itemId ?? "";
    let own = groups.get(key);
    if (!own) {
      const chevron = icon("chevron-right");
      chevron.classList.add("chevron");
      own = h("div", { class: "group" }, h("button", { class: "tool-head", type: "button", "aria-expanded": "false" },
        icon("layers"), h("span", { class: "tool-verb" }, "Explored"), h("span", { class: "tool-detail" }),
        h("span", { class: "tool-end" }, h("span", { class: "tool-time" }), icon("check")),
        chevron), h("div", { class: "group-body", hidden: true }));
      groups.set(key, own);
    }
    const took = calls.reduce((sum, call) => sum + timeOf(call, 0), 0);
    setText(/** @type {Element} */ (own.querySelector(".tool-detail")), groupLabel(calls));
    setText(/** @type {Element} */ (own.querySelector(".tool-time")), took >= 50 ? duration(took) : "");
    reconcile(/** @type {Element} */ (own.lastElementChild), calls.map(node));
    drawGroupOpen(own);
    return own;
  }

  /** @param {HTMLElement} own */
  function drawGroupOpen(own) {
    const open = own.dataset.open === "true";
    setAttribute(/** @type {Element} */ (own.firstElementChild), "aria-expanded", String(open));
    /** @type {HTMLElement} */ (own.lastElementChild).hidden = !open;
  }

  /** @param {string[]} ids @param {string | undefined} parent */
  function steps(ids, parent) {
    const items = ids.flatMap((id) => {
      const item = state.items.get(id);
      const owner = item?.parentItemId && state.items.has(item.parentItemId) ? item.parentItemId : undefined;
      return item && owner === parent ? [item] : [];
    });
    return groupItems(items).map((step) => ("group" in step ? group(step.group) : node(step.item)));
  }

  /** @param {Turn} turn */
  function drawTurn(turn) {
    let own = turns.get(turn.id);
    if (!own) {
      own = h("section", { class: "turn", "data-turn": turn.id });
      turns.set(turn.id, own);
    }
    const status = turn.record?.status;
    const { unrecorded = false } = turn;
    const { forgotten = false } = turn.record ?? {};
    setAttribute(own, "aria-busy", status === "running" ? "true" : null);
    setAttribute(own, "data-forgotten", forgotten);
    const children = steps(turn.items, undefined);
    if (status === "cancelled") children.push(endNote(own, "info", "Stopped", "note"));
    if (status === "error") children.push(
      endNote(own, "info", `Turn failed: ${turn.record?.errorMessage ?? "no reason given"}`, "error"),
    );
    if (status !== "running" && answerText(itemsOf(turn))) children.push(copyButton(own));
    reconcile(own, children);
    if (status === "error") turn.items.forEach((id) => dropRepeatedError(nodes.get(id), turn.record?.errorMessage));
    for (const id of turn.items) {
      const item = state.items.get(id);
      const owner = nodes.get(id);
      if (item?.type === "message" && item.origin === "user" && owner) markUser(owner, { forgotten, unrecorded });
      if (item?.type === "tool_call" && item.tool?.kind === "agent" && owner) {
        reconcile(/** @type {Element} */ (owner.querySelector(":scope > .tool-nested")), steps(turn.items, id));
      }
    }
    return own;
  }

  /** @param {Turn} turn */
  const itemsOf = (turn) => turn.items.flatMap((id) => state.items.get(id) ?? []);

  /** @param {HTMLElement} own */
  function copyButton(own) {
    const known = own.querySelector(":scope > .copy-answer");
    return known instanceof HTMLElement ? known : h("button", {
      class: "copy-answer",
      type: "button",
      "data-do": "copy-answer",
    }, icon("copy"), h("span", { "data-copy-label": true }, "Copy answer"));
  }

  /** @param {HTMLElement} own @param {string} picture @param {string} text @param {string} kind */
  function endNote(own, picture, text, kind) {
    const known = own.querySelector(":scope > .turn-end");
    if (known instanceof HTMLElement && known.dataset.text === text) return known;
    const made = notice(picture, text, kind);
    made.classList.add("turn-end");
    made.dataset.text = text;
    return made;
  }

  /** @param {string} id */
  function drawItem(id) {
    const item = state.items.get(id);
    const own = nodes.get(id);
    if (!item || !own) return;
    if (item.type !== "tool_call") {
      updateText(own, item);
      return dropRepeatedError(
        own,
        own.dataset.error && state.turns.find(({ id: turn }) => turn === item.turnId)?.record?.errorMessage,
      );
    }
    const place = { root: state.context?.project?.path ?? "", home: state.context?.home ?? "" };
    updateTool(own, item, {
      place,
      cliType: state.context?.session.cliType ?? "",
      isLast: session.lastItem() === item,
      now: Date.now(),
    });
  }

  /** A call whose state changed may now belong to a group. @param {string} id */
  function touchTurnOf(id) {
    const item = state.items.get(id);
    if (item?.type === "tool_call" && stateOf(item) !== "running") dirty.turns.add(item.turnId);
    if (item && item.type !== "tool_call" && (!nodes.has(id) || (item.status === "complete" && item.text === ""))) {
      dirty.turns.add(item.turnId);
    }
  }

  /** An item that is still there keeps its node, and with it its position, its folding and the selection in it. */
  function keepNodes() {
    for (const renamed of dirty.renamed) {
      rekey(turns, renamed.turns);
      for (const map of [nodes, groups]) rekey(map, renamed.items);
    }
    for (const id of nodes.keys()) if (!state.items.has(id)) nodes.delete(id);
    for (const id of groups.keys()) if (!state.items.has(id)) groups.delete(id);
    const known = new Set(state.turns.map(({ id }) => id));
    for (const id of turns.keys()) if (!known.has(id)) turns.delete(id);
    for (const [id, own] of nodes) setAttribute(own, "data-item", own.dataset.item === undefined ? null : id);
    for (const [id, own] of turns) setAttribute(own, "data-turn", id);
    known.forEach((id) => dirty.turns.add(id));
  }

  /** Every turn in order, with the lines between those the agent remembers and those it does not. */
  function sections() {
    const now = memoryMarks(state.turns);
    marks = new Map([...now].map(([id, kind]) => {
      const known = marks.get(id);
      return [id, known?.dataset.memory === kind ? known : memoryMark(kind)];
    }));
    return state.turns.flatMap(({ id }) => [marks.get(id) ?? [], turns.get(id) ?? []].flat());
  }

  /** A command folds once something follows it. */
  function touchLast() {
    const now = session.lastItem()?.itemId ?? "";
    if (now === last) return;
    dirty.items.add(last).add(now);
    last = now;
  }

  return {
    node: (/** @type {string} */ id) => nodes.get(id),
    /** The agent's text in the turn that contains a node. @param {Element} node */
    answerAt(node) {
      const id = node.closest(".turn")?.getAttribute("data-turn");
      const turn = state.turns.find((one) => one.id === id);
      return turn ? answerText(itemsOf(turn)) : "";
    },
    draw() {
      if (dirty.all) keepNodes();
      touchLast();
      dirty.items.forEach(touchTurnOf);
      if (dirty.turns.size) {
        for (const turn of state.turns) if (dirty.turns.has(turn.id)) drawTurn(turn);
        reconcile(root, sections());
      }
      dirty.items.forEach(drawItem);
      if (state.pending !== null) {
        setText(/** @type {Element} */ (pending.querySelector(".user-text")), state.pending);
        root.append(pending);
      } else pending.remove();
    },
    tick(/** @type {number} */ now) {
      for (const id of session.running()?.items ?? []) {
        const item = state.items.get(id);
        const own = nodes.get(id);
        if (own && item?.type === "tool_call") tickTool(own, item, now);
      }
    },
  };
}

/**
 * The error that ended a turn is shown once, at its end.
 * @param {HTMLElement | undefined} own
 * @param {string | undefined} error
 */
function dropRepeatedError(own, error) {
  if (own && error && own.dataset.error === error) delete own.dataset.error;
}

/**
 * Nodes move to the ids their items have now.
 * @param {Map<string, HTMLElement>} map
 * @param {Map<string, string>} renamed
 */
function rekey(map, renamed) {
  const moved = [...renamed].flatMap(([now, was]) => {
    const own = map.get(was);
    return own ? [/** @type {const} */ ([now, own])] : [];
  });
  for (const was of renamed.values()) map.delete(was);
  for (const [now, own] of moved) map.set(now, own);
}
