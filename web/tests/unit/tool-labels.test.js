import assert from "node:assert/strict";
import test from "node:test";
import { projectPath, shortPath } from "../../shared/paths.js";
import { mergeUpsert } from "../../shared/patch.js";
import { groupItems } from "../../portlet/group-items.js";
import { createSession } from "../../portlet/session.js";
import { groupLabel, isQuiet, linesRead, permissionLabel, stateOf, labelOf } from "../../portlet/tool-labels.js";
import { goldens } from "./goldens.js";

const golden = goldens("upsert.tool_call")[0]?.[1];
const place = { root: "/home/dev/demo", home: "/home/dev" };
/** @param {string} kind @param {object} [more] @param {object} [detail] */
const call = (kind, more = {}, detail = {}) => ({
  ...golden,
  startedAt: golden.sourceTimestamp,
  changedAt: golden.emittedAt,
  text: "",
  html: [],
  ...more,
  tool: { kind, interrupted: false, ...detail },
});

test("TC-3.3a: a call is named by what it does to what", () => {
  assert.deepEqual(labelOf(call("execute", { status: "update" }, { command: "cargo test" }), place), {
    icon: "terminal",
    verb: "Run",
    target: "cargo test",
    isCode: true,
  });
  assert.equal(labelOf(call("execute", {}, { command: "cargo test" }), place).verb, "Ran");
  assert.equal(labelOf(call("execute", {}, { command: "cargo test", interrupted: true }), place).verb, "Run");
  assert.equal(
    labelOf(call("read", {}, { locations: [{ path: "/home/dev/demo/src/lib.rs" }] }), place).target,
    "src/lib.rs",
  );
  assert.equal(
    labelOf(call("edit", { toolName: "Write" }, { locations: [{ path: "/etc/hosts" }] }), place).verb,
    "Create",
  );
  assert.equal(labelOf(call("search", { toolArguments: { pattern: "TODO" } }), place).target, "TODO");
  assert.equal(labelOf(call("other", { toolName: "mcp_ask" }), place).verb, "mcp_ask");
});

test("TC-3.3c: a failed or interrupted call is never quiet", () => {
  assert.equal(stateOf(call("read", { toolOutputIsError: true })), "failed");
  assert.equal(stateOf(call("read", { status: "error" })), "failed");
  assert.equal(stateOf(call("read", {}, { interrupted: true })), "interrupted");
  assert.equal(isQuiet(call("read", { status: "error" })), false);
  assert.equal(isQuiet(call("read")), true);
  assert.equal(isQuiet(call("execute")), false);
});

test("three quiet calls in a row fold into one line, two do not", () => {
  const reads = ["1", "2", "3"].map((itemId) => call("read", { itemId }));
  assert.equal(groupItems(reads).length, 1);
  assert.equal(groupItems(reads.slice(0, 2)).length, 2);
  assert.equal(groupItems([...reads.slice(0, 2), call("execute"), reads[2]]).length, 4);
  assert.equal(groupLabel([...reads, call("search")]), "3 files, 1 search");
});

test("a file that was read shows which lines", () => {
  const lines = (/** @type {number[]} */ numbers) =>
    numbers.map((n) => `<div class="line"><span class="num">${n}</span><span class="src">x</span></div>`).join("");
  const read = (/** @type {object[]} */ sections) => linesRead(call("read", { sections }));
  assert.equal(read([{ kind: "file", html: lines([7, 8, 9]) }]), "7–9");
  assert.equal(read([{ kind: "file", html: lines([1, 2, 184]), cutLines: 181 }]), "1–184");
  assert.equal(read([{ kind: "file", html: lines([3]) }]), "3");
  assert.equal(read([{ kind: "text", html: "<p>1</p>" }]), "");
  assert.equal(read([]), "");
});

test("automatic permission is shown", () => {
  assert.equal(
    permissionLabel(call("execute", {}, { permission: { decision: "allowed_automatically" } })),
    "allowed automatically",
  );
  assert.equal(permissionLabel(call("execute")), "");
});

test("paths are shown short", () => {
  assert.equal(shortPath("/home/dev/demo", "/home/dev"), "~/demo");
  assert.equal(shortPath("/home/developer", "/home/dev"), "/home/developer");
  assert.equal(projectPath("/home/dev/demo/a/b", "/home/dev/demo", "/home/dev"), "a/b");
});

test("TC-7.2a: an upsert for an item that is known replaces its state in place", () => {
  const session = createSession(() => {});
  const upsert = goldens("server.session.upsert")[0]?.[1];
  session.apply(upsert);
  session.apply({ ...upsert, seq: 11, payload: { ...upsert.payload, content: "Hello again" } });
  assert.equal(session.state.items.size, 1);
  assert.equal(session.state.turns[0]?.items.length, 1);
  assert.equal(session.state.items.get("item-1")?.text, "Hello again");
});

test("a turn's events mark its beginning and its end", () => {
  const session = createSession(() => {});
  session.apply(goldens("server.session.turn")[0]?.[1]);
  assert.ok(session.running());
  const end = goldens("turn.turn_complete")[0]?.[1];
  session.apply({ type: "session:turn", sessionId: end.sessionId, seq: 12, payload: end });
  assert.equal(session.running(), undefined);
  assert.equal(session.state.turns[0]?.record?.status, "completed");
});

test("TC-7.2c: several items grow independently of each other", () => {
  const session = createSession(() => {});
  const upsert = goldens("server.session.upsert")[0]?.[1];
  const put = (/** @type {object} */ part) =>
    session.apply({ ...upsert, payload: { ...upsert.payload, status: "update", ...part } });
  put({ itemId: "a", content: "One" });
  put({ itemId: "b", content: "Two" });
  put({ itemId: "a", content: " more", contentFrom: 3 });
  assert.deepEqual([...session.state.items.values()].map(({ text }) => text), ["One more", "Two"]);
  assert.deepEqual(session.state.turns[0]?.items, ["a", "b"]);
});

test("a history without `since` replaces everything, one with it is merged", () => {
  const session = createSession(() => {});
  const history = goldens("server.session.history")[0]?.[1];
  const { since: _, ...whole } = history;
  session.apply({ ...whole, entries: [{ ...history.entries[0], itemId: "old" }] });
  session.apply(history);
  assert.deepEqual([...session.state.items.keys()], ["old", "item-1"]);
  session.apply({ ...whole, more: false });
  assert.deepEqual([...session.state.items.keys()], ["item-1"]);
});

test("older items are added before the known ones, once", () => {
  const session = createSession(() => {});
  const { since: _, ...history } = goldens("server.session.history")[0]?.[1];
  const entry = history.entries[0];
  session.apply({ ...history, entries: [{ ...entry, itemId: "c" }] });
  const page = goldens("server.session.page")[0]?.[1];
  const entries = [{ ...entry, itemId: "a", turnId: "t0" }, { ...entry, itemId: "b" }, { ...entry, itemId: "c" }];
  session.prepend({ ...page, entries });
  assert.deepEqual(session.state.turns.map(({ id, items }) => [id, items]), [["t0", ["a"]], ["turn-1", ["b", "c"]]]);
  assert.equal(session.state.more, false);
  assert.ok(mergeUpsert(undefined, entry));
});
