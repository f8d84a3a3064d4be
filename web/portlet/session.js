// session.js: this portlet's copy of its session. Messages change it at once; `changed` schedules a redraw.
import { mergeUpsert } from "../shared/patch.js";
import { renamedOf } from "./match-items.js";

/** @typedef {import("../shared/patch.js").Item} Item */
/** @typedef {import("../shared/protocol.js").Upsert} Upsert */
/** @typedef {import("../shared/protocol.js").TurnRecord} TurnRecord */
/** @typedef {import("../shared/protocol.js").TurnEvent} TurnEvent */
/** @typedef {import("../shared/protocol.js").SessionFacts} SessionFacts */
/** @typedef {import("../shared/protocol.js").ErrorMessage} ErrorMessage */
/** @typedef {import("../shared/bus.js").Context} Context */
/** @typedef {import("../shared/messages.js").ServerFrame} ServerFrame */
/**
 * A turn and its items in order; `record` is missing if the server sent none for the turn. `unrecorded`: the journal
 * could not write it to disk.
 * @typedef {{ id: string, items: string[], record?: TurnRecord, unrecorded?: boolean }} Turn
 */
/** @typedef {ReturnType<typeof createSession>} Session */

/** @param {() => void} changed */
export function createSession(changed) {
  const state = {
    /** @type {Context | null} */
    context: null,
    /** @type {Map<string, Item>} */
    items: new Map(),
    /** In the order they are shown. @type {Turn[]} */
    turns: [],
    /** The journal that the items come from. */
    journalId: "",
    /** @type {SessionFacts} */
    facts: {},
    /** Counts changes to edits, so that the list of changed files is rebuilt only when needed. */
    edits: 0,
    /** There are older items. */
    more: false,
    loaded: false,
    online: true,
    /** The server has not sent this session's state since the connection was lost. */
    stale: false,
    /** Why it could not be loaded. @type {ErrorMessage | null} */
    failed: null,
    /** The last error that answers no request. @type {ErrorMessage | null} */
    error: null,
    /** A message being sent, not yet confirmed. @type {string | null} */
    pending: null,
  };
  /**
   * What changed since the last draw. `all`: the whole history was replaced; `renamed` maps items that were already
   * shown under other ids.
   */
  const dirty = {
    all: false,
    renamed: /** @type {import("./match-items.js").Renamed[]} */ ([]),
    items: /** @type {Set<string>} */ (new Set()),
    turns: /** @type {Set<string>} */ (new Set()),
  };
  /** @type {Map<string, Turn>} */
  const turnById = new Map();

  /** @param {string} id @param {boolean} [first] @returns {Turn} */
  function turn(id, first = false) {
    const known = turnById.get(id);
    if (known) return known;
    /** @type {Turn} */
    const made = { id, items: [] };
    turnById.set(id, made);
    if (first) state.turns.unshift(made);
    else state.turns.push(made);
    dirty.turns.add(id);
    return made;
  }

  /** @param {Upsert} upsert */
  function put(upsert) {
    const known = state.items.get(upsert.itemId);
    state.items.set(upsert.itemId, mergeUpsert(known, upsert));
    dirty.items.add(upsert.itemId);
    if (upsert.type === "tool_call" && upsert.tool?.kind === "edit") state.edits += 1;
    if (known) return;
    turn(upsert.turnId).items.push(upsert.itemId);
    dirty.turns.add(upsert.turnId);
    if (upsert.type === "message" && upsert.origin === "user") state.pending = null;
  }

  /** @param {TurnRecord} record */
  function putRecord(record) {
    turn(record.turnId).record = record;
    dirty.turns.add(record.turnId);
  }

  /** @param {TurnEvent} event */
  function applyTurn(event) {
    const before = turn(event.turnId).record;
    if (event.type === "turn_started") {
      return putRecord({ turnId: event.turnId, status: "running", startedAt: event.at, modelId: event.modelId });
    }
    const startedAt = before?.startedAt ?? event.at;
    if (event.type === "turn_complete") putRecord({
      ...before,
      turnId: event.turnId,
      status: event.status,
      startedAt,
      endedAt: event.at,
      ...(event.usage ? { usage: event.usage } : {}),
    });
    else putRecord({
      ...before,
      turnId: event.turnId,
      status: "error",
      startedAt,
      endedAt: event.at,
      errorCode: event.errorCode,
      errorMessage: event.errorMessage,
    });
  }

  /** Keeps the items before `first`, if it is shown: a whole history holds only the newest. @param {string} [first] */
  function clear(first) {
    const { items, turns } = state;
    state.items = new Map();
    state.turns = [];
    turnById.clear();
    dirty.all = true;
    state.edits += 1;
    if (first === undefined || !items.has(first)) return;
    for (const { id, items: ids, ...rest } of turns) {
      const end = ids.indexOf(first);
      const kept = end < 0 ? ids : ids.slice(0, end);
      if (kept.length > 0) Object.assign(turn(id), rest).items.push(...kept);
      for (const item of kept) state.items.set(item, /** @type {Item} */ (items.get(item)));
      if (end >= 0) return;
    }
  }

  /** @param {Extract<ServerFrame, { type: "session:history" }>} history */
  function applyHistory(history) {
    const fresh = history.since === undefined;
    const { items, turns } = state;
    if (fresh) {
      // Older items that are shown stay, unless there are none, or they are of another journal.
      clear(history.more && history.journalId === state.journalId ? history.entries[0]?.itemId : undefined);
      state.facts = {};
      if (state.items.size === 0) state.more = history.more;
      state.journalId = history.journalId;
    }
    // A turn is shown where its items are; one without items on this page only if it is running.
    history.entries.forEach(put);
    if (fresh) dirty.renamed.push(renamedOf({ items, turns }, state));
    for (const record of history.turns) {
      if (turnById.has(record.turnId) || record.status === "running") putRecord(record);
    }
    Object.assign(state.facts, history.facts);
    if (state.context) state.context = { ...state.context, session: history.session };
    state.loaded = true;
    state.stale = false;
    state.failed = null;
    state.pending = null;
  }

  /** Adds older items at the top. @param {Extract<ServerFrame, { type: "session:page" }>} page */
  function prepend({ entries, more, turns }) {
    const fresh = entries.filter(({ itemId }) => !state.items.has(itemId));
    for (const upsert of [...fresh].reverse()) {
      state.items.set(upsert.itemId, mergeUpsert(undefined, upsert));
      turn(upsert.turnId, true).items.unshift(upsert.itemId);
      dirty.items.add(upsert.itemId);
      dirty.turns.add(upsert.turnId);
    }
    for (const record of turns) if (turnById.has(record.turnId)) putRecord(record);
    state.edits += 1;
    state.more = more && fresh.length > 0;
    changed();
  }

  /** @param {ServerFrame} frame */
  function apply(frame) {
    const { context } = state;
    switch (frame.type) {
      case "session:history": applyHistory(frame); break;
      case "session:upsert": put(frame.payload); break;
      case "session:turn":
        applyTurn(frame.payload);
        if (frame.recorded === false) turn(frame.payload.turnId).unrecorded = true;
        break;
      case "session:facts": Object.assign(state.facts, frame.facts); break;
      case "session:title-updated":
        if (context) state.context = { ...context, session: { ...context.session, title: frame.title } };
        break;
      case "session:state": {
        const { attention, continuity, hangs, lastActiveAt, reason, since } = frame;
        if (context) state.context = {
          ...context,
          session: { ...context.session, attention, continuity, hangs, lastActiveAt, reason, since },
        };
        break;
      }
      case "agent:status":
        if (context) state.context = { ...context, status: frame };
        if (frame.status === "connected") state.error = null;
        break;
      case "error": state.error = frame; break;
      default: return;
    }
    changed();
  }

  return {
    state, dirty, apply, prepend,
    /** @param {Partial<typeof state>} part */
    set(part) {
      Object.assign(state, part);
      if (!state.online) state.stale = true;
      changed();
    },
    /** The running turn, if the server reports one. */
    running: () => (state.stale ? undefined : state.turns.findLast((one) => one.record?.status === "running")),
    /** The newest item shows what the agent is doing. */
    lastItem: () => state.items.get(state.turns.at(-1)?.items.at(-1) ?? ""),
    drawn() {
      dirty.all = false;
      dirty.renamed.length = 0;
      dirty.items.clear();
      dirty.turns.clear();
    },
  };
}
