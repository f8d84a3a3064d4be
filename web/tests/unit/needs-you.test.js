import assert from "node:assert/strict";
import test from "node:test";
import { mostUrgent } from "../../shared/attention.js";
import { listNeeds, reasonOf } from "../../shell/needs-you.js";
import { fuzzy } from "../../shell/search.js";
import { goldens } from "./goldens.js";

const base = goldens("server.session.created")[0]?.[1].session;
/** @param {string} id @param {any} attention @param {string} since @param {object} [more] */
const session = (id, attention, since, more = {}) => ({ ...base, id, attention, since: `2026-11-15T${since}:00.000Z`, reason: undefined, ...more });
const agent = goldens("server.agent.list")[0]?.[1].agents[0];

test("permission comes before error before finished, the oldest first", () => {
  const all = [session("f2", "finished", "10:02"), session("w", "working", "09:00"), session("e", "error", "11:00"), session("f1", "finished", "10:01"), session("p", "needs_permission", "12:00"), session("i", "idle", "01:00")];
  assert.deepEqual(listNeeds(all, [agent]).map(({ key }) => key), ["p", "e", "f1", "f2"]);
});

test("an agent that was lost stands first, once, with its sessions", () => {
  const all = [session("p", "needs_permission", "12:00"), session("d1", "disconnected", "12:01", { reason: "Interrupted" }), session("d2", "disconnected", "11:59", { reason: "Interrupted" })];
  const [first, second] = listNeeds(all, [agent]);
  assert.equal(first?.kind === "agent" && first.sessions.length, 2);
  assert.equal(first?.since, "2026-11-15T11:59:00.000Z");
  assert.equal(second?.key, "p");
});

test("the reason is the server's, else the state's own words", () => {
  assert.equal(reasonOf(session("a", "error", "10:00", { reason: "Turn failed: rate limit" })), "Turn failed: rate limit");
  assert.equal(reasonOf(session("a", "finished", "10:00")), "Finished");
});

test("the most urgent of many states is shown", () => {
  assert.equal(mostUrgent(["idle", "working", "error", "finished"]), "error");
  assert.equal(mostUrgent([]), "idle");
});

test("a search finds beginnings of words first, then inside words, then letters in order", () => {
  const score = (/** @type {string} */ text) => fuzzy("re", text)?.score ?? 0;
  assert.ok(score("Move the relay") > score("Core of it"));
  assert.deepEqual(fuzzy("re", "Fix auth refresh")?.ranges, [[9, 11]]);
  assert.deepEqual(fuzzy("mtrl", "Move the relay"), null);
  assert.equal(fuzzy("xyz", "Move the relay"), null);
  assert.deepEqual(fuzzy("  ", "anything"), { score: 0, ranges: [] });
});

test("what ends before the user's eyes does not come and go in the list; what asks for leave stays", () => {
  const session = (/** @type {string} */ id, /** @type {string} */ attention) => /** @type {any} */ ({ id, attention, cliType: "x", lastActiveAt: "2026-01-01T00:00:00Z" });
  const all = [session("a", "finished"), session("b", "error"), session("c", "needs_permission")];
  const ids = (/** @type {string | null} */ watched) => listNeeds(all, [], watched).map(({ key }) => key);
  assert.deepEqual(ids(null), ["c", "b", "a"]);
  assert.deepEqual(ids("a"), ["c", "b"]);
  assert.deepEqual(ids("b"), ["c", "a"]);
  assert.deepEqual(ids("c"), ["c", "b", "a"]);
});
