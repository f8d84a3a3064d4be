import assert from "node:assert/strict";
import test from "node:test";
import { renamedOf } from "../../portlet/match-items.js";

/**
 * A conversation of turns and items, each given by its id and its text.
 * @param {Record<string, Record<string, string>>} turns
 */
function talk(turns) {
  const items = new Map(
    Object.values(turns).flatMap((texts) => Object.entries(texts).map(([id, text]) => [id, /** @type {any} */ (
      text.startsWith("$")
        ? { type: "tool_call", toolName: "run", toolArguments: { command: text } }
        : { type: "message", origin: text.startsWith("?") ? "user" : "agent", text })])),
  );
  return { items, turns: Object.entries(turns).map(([id, texts]) => ({ id, items: Object.keys(texts) })) };
}
const plain = (/** @type {ReturnType<typeof renamedOf>} */ { items, turns }) => ({
  items: Object.fromEntries(items),
  turns: Object.fromEntries(turns),
});

test("items with the same content match, whatever their ids", () => {
  const before = talk({ t1: { a: "?hello", b: "Hello." }, t2: { c: "?run", d: "$ make", e: "Done." } });
  const after = talk({ u1: { v: "?hello", w: "Hello." }, u2: { x: "?run", d: "$ make", z: "Done. " } });
  assert.deepEqual(plain(renamedOf(before, after)), {
    items: { v: "a", w: "b", x: "c", z: "e" },
    turns: { u1: "t1", u2: "t2" },
  });
});

test("items with equal content are matched by their position from the end", () => {
  const before = talk({ t1: { a: "?again" }, t2: { b: "?again" }, t3: { c: "?again" } });
  const after = talk({ u2: { x: "?again" }, u3: { y: "?again" } });
  assert.deepEqual(plain(renamedOf(before, after)), { items: { y: "c", x: "b" }, turns: { u3: "t3", u2: "t2" } });
});

test("an item is matched once, and new items stay new", () => {
  const before = talk({ t1: { a: "?hello" } });
  const after = talk({ u1: { v: "?hello" }, u2: { w: "?hello", x: "News." } });
  assert.deepEqual(plain(renamedOf(before, after)), { items: { w: "a" }, turns: { u2: "t1" } });
});
