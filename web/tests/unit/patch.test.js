import assert from "node:assert/strict";
import test from "node:test";
import { applyBlocks, joinPatches, joinUpserts, mergeUpsert, takeBlockChange } from "../../shared/patch.js";
import { goldens } from "./goldens.js";

const [, message] = /** @type {[string, any]} */ (goldens("upsert.message")[0]);
const [, call] = /** @type {[string, any]} */ (goldens("upsert.tool_call")[0]);
const [, view] = /** @type {[string, any]} */ (goldens("upsert.view")[0]);

test("a patch keeps finished blocks and continues the open one", () => {
  assert.deepEqual(applyBlocks(["<p>a</p>", "<p>b</p>"], { from: 1, keep: 4, html: ["c</p>", "<p>d</p>"] }), [
    "<p>a</p>",
    "<p>bc</p>",
    "<p>d</p>",
  ]);
});

test("a patch without html keeps only the first blocks", () => {
  assert.deepEqual(applyBlocks(["a", "b", "c"], { from: 1, keep: 0, html: [] }), ["a"]);
});

test("a patch on nothing is the whole", () => {
  assert.deepEqual(applyBlocks([], { from: 0, keep: 0, html: ["<p>a</p>"] }), ["<p>a</p>"]);
});

test("applying a patch twice is the same as once", () => {
  const patches = [
    { from: 0, keep: 0, html: ["<p>a</p>"] },
    { from: 0, keep: 4, html: [" b</p>"] },
    { from: 1, keep: 0, html: ["<pre>x</pre>"] },
    { from: 1, keep: 6, html: ["\ny</pre>", "<p>end</p>"] },
  ];
  let once = /** @type {string[]} */ ([]);
  for (const patch of patches) {
    const again = applyBlocks(applyBlocks(once, patch), patch);
    once = applyBlocks(once, patch);
    assert.deepEqual(again, once);
  }
  assert.deepEqual(once, ["<p>a b</p>", "<pre>x\ny</pre>", "<p>end</p>"]);
});

test("two patches joined do what both do in turn", () => {
  const list = ["<p>a</p>", "<p>b</p>"];
  const pairs = [
    [{ from: 1, keep: 4, html: ["c</p>"] }, { from: 1, keep: 5, html: ["d</p>"] }],
    [{ from: 1, keep: 4, html: ["c</p>", "<p>x</p>"] }, { from: 2, keep: 4, html: ["y</p>", "<p>z</p>"] }],
    [{ from: 1, keep: 4, html: ["c</p>"] }, { from: 1, keep: 4, html: ["again</p>"] }],
  ];
  for (const [first, second] of pairs) {
    if (!first || !second) continue;
    const joined = joinPatches(first, second);
    assert.ok(joined);
    assert.deepEqual(applyBlocks(list, joined), applyBlocks(applyBlocks(list, first), second));
  }
  assert.equal(joinPatches({ from: 1, keep: 4, html: ["c</p>"] }, { from: 0, keep: 3, html: ["new</p>"] }), null);
  assert.equal(joinPatches({ from: 1, keep: 4, html: ["c</p>"] }, { from: 1, keep: 2, html: ["new</p>"] }), null);
  assert.equal(joinPatches({ from: 1, keep: 4, html: ["c</p>"] }, { from: 1, keep: 0, html: [] }), null);
});

test("offsets count as JavaScript does, also beyond the basic plane", () => {
  assert.deepEqual(applyBlocks(["<p>😀a</p>"], { from: 0, keep: 6, html: ["b</p>"] }), ["<p>😀ab</p>"]);
});

test("text that grew is appended where it belongs", () => {
  const first = mergeUpsert(undefined, message);
  assert.equal(first.text, "Hello");
  const second = mergeUpsert(first, { ...message, content: " world", contentFrom: 5 });
  assert.equal(second.text, "Hello world");
  assert.equal(mergeUpsert(second, { ...message, content: " world", contentFrom: 5 }).text, "Hello world");
  assert.equal(mergeUpsert(second, { ...message, content: "Anew" }).text, "Anew");
});

test("the view's golden continues what is there", () => {
  const known = mergeUpsert(undefined, {
    ...message,
    blocks: { from: 0, keep: 0, html: ["<h1>T</h1>", "<p>xyz</p>"] },
  });
  assert.deepEqual(mergeUpsert(known, view).html, ["<h1>T</h1>", "<p>Hello</p>"]);
  assert.equal(mergeUpsert(known, view).sections?.[0]?.added, 1);
});

test("TC-7.2b: a tool call keeps its output and sections when an update does not repeat them", () => {
  const first = mergeUpsert(undefined, { ...call, sections: view.sections });
  const { toolOutput: _, ...bare } = call;
  const second = mergeUpsert(first, bare);
  assert.equal(second.text, "ok\n");
  assert.deepEqual(second.sections, view.sections);
});

test("joined updates of one text give the same result as separate ones", () => {
  const grown = (
    /** @type {string} */ content,
    /** @type {number} */ contentFrom,
    /** @type {string[]} */ html,
    keep = 0,
    from = 0,
  ) => ({
    turnId: "t",
    itemId: "i",
    status: "update",
    type: "message",
    origin: "agent",
    content,
    contentFrom,
    blocks: { from, keep, html },
  });
  const first = /** @type {any} */ (grown("a", 0, ["<p>a</p>"]));
  const pieces = /** @type {any[]} */ ([
    grown("b", 1, ["b</p>"], 4),
    grown(" c\n", 2, [" c</p>", "<p>"], 5),
    grown("d", 5, ["d</p>"], 3, 1),
  ]);
  const apart = pieces.reduce(mergeUpsert, mergeUpsert(undefined, first));
  const joined = pieces.reduce((whole, piece) => joinUpserts(whole, piece) ?? assert.fail("not joined"));
  const together = mergeUpsert(mergeUpsert(undefined, first), joined);
  assert.equal(together.text, "ab c\nd");
  assert.deepEqual([together.text, together.html], [apart.text, apart.html]);
});

test("starts, ends, other items, gaps and tool calls are not joined", () => {
  const one = /** @type {any} */ ({
    turnId: "t",
    itemId: "i",
    status: "update",
    type: "message",
    origin: "agent",
    content: "a",
    contentFrom: 0,
    blocks: { from: 0, keep: 0, html: ["a"] },
  });
  const two = { ...one, content: "b", contentFrom: 1, blocks: { from: 0, keep: 1, html: ["b"] } };
  assert.ok(joinUpserts(one, two));
  for (const [first, second] of [
    [{ ...one, status: "create" }, two],
    [one, { ...two, status: "complete" }],
    [one, { ...two, itemId: "j" }],
    [one, { ...two, contentFrom: 2 }],
    [one, { ...two, type: "tool_call" }],
    [one, { ...two, blocks: { from: 2, keep: 0, html: ["b"] } }],
  ]) assert.equal(joinUpserts(first, second), null);
});

test("what is read from history claims no duration, whenever it was sent; what came live has its own", () => {
  const finished = mergeUpsert(undefined, {
    ...message,
    status: "complete",
    sourceTimestamp: "2026-11-15T21:00:00.000Z",
    emittedAt: "2026-11-15T21:08:23.000Z",
  });
  assert.equal(finished.changedAt, finished.startedAt);
  const { sourceTimestamp: _, ...untimed } = message;
  assert.equal(
    mergeUpsert(undefined, { ...untimed, status: "complete" }).startedAt,
    "",
    "no time rather than a false one",
  );
  const begun = mergeUpsert(undefined, { ...message, status: "create", sourceTimestamp: "2026-11-15T21:00:00.000Z" });
  const ended = mergeUpsert(begun, { ...message, status: "complete", sourceTimestamp: "2026-11-15T21:00:07.000Z" });
  assert.equal(Date.parse(ended.changedAt) - Date.parse(ended.startedAt), 7000);
});

test("what is drawn next starts at the first change since it was last drawn", () => {
  const upsert = (/** @type {import("../../shared/protocol.js").BlockPatch} */ blocks) =>
    /** @type {any} */ ({
      type: "message",
      itemId: "i",
      turnId: "t",
      status: "update",
      content: "",
      contentFrom: 0,
      blocks,
    });
  let item = mergeUpsert(undefined, upsert({ from: 0, keep: 0, html: ["<p>a</p>", "<p>b</p>"] }));
  assert.deepEqual(takeBlockChange(item), { from: 0, keep: 0 });
  assert.deepEqual(takeBlockChange(item), { from: Infinity, keep: 0 }, "nothing changed since");
  item = mergeUpsert(item, upsert({ from: 1, keep: 4, html: ["c</p>"] }));
  item = mergeUpsert(item, upsert({ from: 1, keep: 3, html: ["bd</p>"] }));
  item = mergeUpsert(item, upsert({ from: 2, keep: 0, html: ["<p>e</p>"] }));
  assert.deepEqual(takeBlockChange(item), { from: 1, keep: 3 });
  assert.deepEqual(item.html, ["<p>a</p>", "<p>bd</p>", "<p>e</p>"]);
});
