import assert from "node:assert/strict";
import test from "node:test";
import { memoryMarks } from "../../portlet/memory-marks.js";
import { createSession } from "../../portlet/session.js";
import { goldens } from "./goldens.js";

const golden = (/** @type {string} */ name) => goldens(name)[0]?.[1];
const { since: _, ...whole } = golden("server.session.history");
const entry = whole.entries[0];
const record = whole.turns[0];
const items = (/** @type {[string, string][]} */ ...ids) =>
  ids.map(([turnId, itemId]) => ({ ...entry, turnId, itemId }));
const shown = (/** @type {ReturnType<typeof createSession>} */ session) =>
  session.state.turns.map((turn) => [turn.id, ...turn.items]);

test("a whole history of the same journal replaces the newest items and keeps the older ones that are shown", () => {
  const session = createSession(() => {});
  const before = items(["t1", "a"], ["t2", "b"], ["t2", "c"], ["t3", "d"]);
  session.apply({ ...whole, more: true, turns: [], entries: before });
  session.prepend({ ...golden("server.session.page"), entries: items(["t0", "z"]), more: false, turns: [] });
  session.apply({ ...whole, more: true, turns: [], entries: items(["t2", "c"], ["t4", "e"]) });
  assert.deepEqual(shown(session), [["t0", "z"], ["t1", "a"], ["t2", "b", "c"], ["t4", "e"]]);
  assert.deepEqual([...session.state.items.keys()], ["z", "a", "b", "c", "e"]);
  assert.equal(session.state.more, false, "the first item is shown already");
});

test("a whole history of another journal, of all items, or past all that is shown replaces everything", () => {
  for (const other of [{ journalId: "j2" }, { more: false }, { entries: items(["t9", "x"]) }]) {
    const session = createSession(() => {});
    session.apply({ ...whole, more: true, turns: [], entries: items(["t1", "a"], ["t2", "b"]) });
    session.apply({ ...whole, more: true, turns: [], entries: items(["t2", "b"]), ...other });
    assert.equal(session.state.items.has("a"), false, JSON.stringify(other));
    assert.equal(session.state.turns.length, 1);
  }
});

test("the turns of an older page are known as those of the newest are", () => {
  const session = createSession(() => {});
  session.apply({ ...whole, turns: [], entries: items(["t2", "b"]) });
  const turns = [{ ...record, turnId: "t1", status: "cancelled" }, { ...record, turnId: "nowhere" }];
  session.prepend({ ...golden("server.session.page"), entries: items(["t1", "a"]), turns });
  assert.deepEqual(session.state.turns.map(({ id, record }) => [id, record?.status]), [
    ["t1", "cancelled"],
    ["t2", undefined],
  ]);
});

test("a turn that the journal could not record is known as such until a history replaces it", () => {
  const session = createSession(() => {});
  const turn = golden("server.session.turn");
  session.apply(turn);
  assert.equal(session.state.turns[0]?.unrecorded, undefined);
  session.apply({ ...turn, recorded: false });
  assert.equal(session.state.turns[0]?.unrecorded, true);
  session.apply({ ...whole, entries: items(["t1", "a"]) });
  assert.ok(session.state.turns.every(({ unrecorded }) => !unrecorded));
});

test("a line is where the agent's memory begins and where it ends", () => {
  const turns = (/** @type {string} */ text) =>
    [...text].map((letter, at) => ({ id: String(at), items: [], record: { ...record, forgotten: letter === "f" } }));
  const marks = (/** @type {string} */ text) => Object.fromEntries(memoryMarks(turns(text)));
  assert.deepEqual(marks("rrr"), {});
  assert.deepEqual(marks("fff"), { 0: "forgotten" });
  assert.deepEqual(marks("rffrrf"), { 1: "forgotten", 3: "remembered", 5: "forgotten" });
  assert.deepEqual(marks(""), {});
  assert.deepEqual([...memoryMarks([{ id: "0", items: [] }])], [], "a turn without a record is not marked");
});
