import assert from "node:assert/strict";
import test from "node:test";
import { mostUrgent } from "../../shared/attention.js";
import { listFinished, listNeeds, reasonOf } from "../../shell/needs-you.js";
import { createReview } from "../../shell/review.js";
import { fuzzy } from "../../shell/search.js";
import { goldens } from "./goldens.js";

const base = goldens("server.session.created")[0]?.[1].session;
/** @param {string} id @param {any} attention @param {string} since @param {object} [more] */
const session = (id, attention, since, more = {}) => ({
  ...base,
  id,
  attention,
  since: `2026-11-15T${since}:00.000Z`,
  reason: undefined,
  hangs: undefined,
  ...more,
});
const agent = goldens("server.agent.list")[0]?.[1].agents[0];

test("requests come before errors, the oldest first; what is finished is a list of its own", () => {
  const all = [
    session("f2", "finished", "10:02"),
    session("w", "working", "09:00"),
    session("e", "error", "11:00"),
    session("f1", "finished", "10:01"),
    session("p", "needs_permission", "12:00"),
    session("i", "idle", "01:00"),
  ];
  assert.deepEqual(listNeeds(all, [agent]).map(({ key }) => key), ["p", "e"]);
  assert.deepEqual(listFinished(all).map(({ key }) => key), ["f1", "f2"]);
});

test("a disconnected agent is listed first, once, with its sessions", () => {
  const all = [
    session("p", "needs_permission", "12:00"),
    session("d1", "disconnected", "12:01", { reason: "Interrupted" }),
    session("d2", "disconnected", "11:59", { reason: "Interrupted" }),
  ];
  const [first, second] = listNeeds(all, [agent]);
  assert.equal(first?.kind === "agent" && first.sessions.length, 2);
  assert.equal(first?.since, "2026-11-15T11:59:00.000Z");
  assert.equal(second?.key, "p");
});

test("a session whose agent hangs is listed by itself: the agent is not lost", () => {
  const all = [
    session("h", "disconnected", "12:00", { hangs: true, reason: "Codex hangs" }),
    session("p", "needs_permission", "12:01"),
  ];
  const listed = listNeeds(all, [agent]).map(({ kind, key }) => [kind, key]);
  assert.deepEqual(listed, [["session", "p"], ["session", "h"]]);
  assert.deepEqual(listNeeds(all, [agent], "h").map(({ key }) => key), ["p"]);
});

test("the reason is the server's, otherwise a text for the state", () => {
  assert.equal(
    reasonOf(session("a", "error", "10:00", { reason: "Turn failed: rate limit" })),
    "Turn failed: rate limit",
  );
  assert.equal(reasonOf(session("a", "finished", "10:00")), "Finished");
});

test("the most urgent of many states is shown", () => {
  assert.equal(mostUrgent(["idle", "working", "error", "finished"]), "error");
  assert.equal(mostUrgent([]), "idle");
});

test("a search finds word starts first, then parts of words, then letters in order", () => {
  const score = (/** @type {string} */ text) => fuzzy("re", text)?.score ?? 0;
  assert.ok(score("Move the relay") > score("Core of it"));
  assert.deepEqual(fuzzy("re", "Fix auth refresh")?.ranges, [[9, 11]]);
  assert.deepEqual(fuzzy("mtrl", "Move the relay"), null);
  assert.equal(fuzzy("xyz", "Move the relay"), null);
  assert.deepEqual(fuzzy("  ", "anything"), { score: 0, ranges: [] });
});

test("a turn that ends in view does not flash in the lists; a request stays", () => {
  const all = [
    session("a", "finished", "10:00"),
    session("b", "error", "10:01"),
    session("c", "needs_permission", "10:02"),
  ];
  const ids = (/** @type {string | null} */ watched) =>
    [...listNeeds(all, [], watched), ...listFinished(all, watched)].map(({ key }) => key);
  assert.deepEqual(ids(null), ["c", "b", "a"]);
  assert.deepEqual(ids("a"), ["c", "b"]);
  assert.deepEqual(ids("b"), ["c", "a"]);
  assert.deepEqual(ids("c"), ["c", "b", "a"]);
});

/**
 * Presses the key so often, faster than anything is seen.
 * @param {any[]} all
 * @param {number} presses
 * @param {any} [from]
 */
function press(all, presses, from) {
  const next = createReview();
  let current = from;
  return Array.from({ length: presses }, () => {
    const id = next([...listNeeds(all, [agent], current?.id), ...listFinished(all, current?.id)], current);
    if (id) current = all.find((one) => one.id === id);
    return id;
  });
}

test("the key visits each unread session once, in order, however fast it is pressed", () => {
  const all = ["a", "b", "c"].map((id, at) => session(id, "finished", `10:0${at}`));
  assert.deepEqual(press(all, 4), ["a", "b", "c", null]);
  assert.deepEqual(press(all, 3, all[1]), ["a", "c", null]);
  assert.deepEqual(press(all.slice(0, 2), 3), ["a", "b", null]);
});

test("the key visits requests before what is unread, and goes through them again while they wait", () => {
  const all = [
    session("f", "finished", "09:00"),
    session("p", "needs_permission", "10:00"),
    session("q", "needs_permission", "10:01"),
  ];
  assert.deepEqual(press(all, 7), ["p", "q", "f", "p", "q", "p", "q"]);
  assert.deepEqual(press([session("p", "needs_permission", "10:00")], 2), ["p", null]);
});

test("a key pressed before the list is drawn again visits nothing twice", () => {
  const all = ["a", "b", "c", "d"].map((id, at) => session(id, "finished", `10:0${at}`));
  const next = createReview();
  let drawn = listFinished(all);
  let current;
  const visited = [];
  for (let at = 0; at < 5; at += 1) {
    const id = next(drawn, current);
    visited.push(id);
    // Every other key comes before the list drops the session now in view and shows the previous one again.
    if (at % 2 === 1) drawn = listFinished(all, id);
    current = all.find((one) => one.id === id) ?? current;
  }
  assert.deepEqual(visited, ["a", "b", "c", "d", null]);
});

test("after the user leaves an unread session for another, the next press returns to it", () => {
  const [unread, other] = [session("a", "finished", "10:00"), session("i", "idle", "09:00")];
  const next = createReview();
  assert.equal(next(listFinished([unread]), other), "a");
  assert.equal(next(listFinished([unread]), other), "a");
});

test("a session with a new request is visited again, and a lost agent by one of its sessions", () => {
  const next = createReview();
  const [a, b] = [session("a", "finished", "10:00"), session("b", "finished", "10:01")];
  assert.equal(next(listFinished([a, b]), undefined), "a");
  assert.equal(next(listFinished([a, b]), a), "b");
  const again = session("a", "finished", "10:05");
  assert.equal(next(listFinished([again, b]), b), "a");
  assert.deepEqual(press([session("d", "disconnected", "10:00")], 2), ["d", null]);
});
