import assert from "node:assert/strict";
import test from "node:test";
import { advance, openFrom } from "../../shell/cursor.js";
import { goldens } from "./goldens.js";

const golden = (/** @type {string} */ name) => goldens(name)[0]?.[1];
const history = golden("server.session.history");
const upsert = golden("server.session.upsert");

test("a page that has a cursor sends all of it, and one that has none sends nothing", () => {
  assert.deepEqual(openFrom(null), {});
  const { journalId, epoch, seq } = history;
  assert.deepEqual(openFrom(advance(null, history, true)), { since: seq, epoch, journalId });
  assert.deepEqual(openFrom({ journalId: "j1", epoch: 1, seq: 0 }), { since: 0, epoch: 1, journalId: "j1" });
});

test("messages move the cursor, and never back", () => {
  const start = advance(null, history, true);
  assert.equal(advance(start, upsert, true)?.seq, upsert.seq);
  assert.equal(advance(start, { ...upsert, seq: 1 }, true)?.seq, history.seq);
  assert.deepEqual(advance(start, golden("server.session.state"), true), start);
});

test("messages before the history leave the cursor where it is", () => {
  const start = advance(null, history, true);
  assert.equal(advance(null, upsert, false), null);
  assert.deepEqual(advance(start, upsert, false), start);
});

test("a history sets the cursor, even back to an earlier number", () => {
  const start = advance(null, history, true);
  const other = { ...history, journalId: "j2", epoch: 1, seq: 1 };
  assert.deepEqual(advance(start, other, true), { journalId: "j2", epoch: 1, seq: 1 });
});
