import assert from "node:assert/strict";
import test from "node:test";
import { CONTINUITY, listMark, markOf, meaningOf } from "../../shared/continuity.js";

test("live and resumed are shown only while the agent is connected, copy only always, dormant never", () => {
  const marks = (/** @type {boolean} */ connected) =>
    /** @type {const} */ (["live", "resumed", "copy", "dormant"]).map((continuity) => markOf(continuity, connected));
  assert.deepEqual(marks(true), ["live", "resumed", "copy", null]);
  assert.deepEqual(marks(false), [null, null, "copy", null]);
});

test("the marks have the words of the design, and a list marks only what is unusual", () => {
  assert.deepEqual(Object.values(CONTINUITY).map(({ label }) => label), ["Live", "Resumed by the agent", "Copy only"]);
  const icons = (/** @type {import("../../shared/protocol.js").Attention} */ attention) =>
    /** @type {const} */ (["live", "resumed", "copy", "dormant"]).map((continuity) =>
      listMark({ continuity, attention })?.icon);
  assert.deepEqual(icons("idle"), [undefined, "refresh", "copy", undefined]);
  assert.deepEqual(icons("disconnected"), [undefined, undefined, "copy", undefined]);
});

test("an agent that has forgotten turns is not said to remember everything", () => {
  assert.match(meaningOf("live", false), /everything/);
  assert.doesNotMatch(meaningOf("live", true), /everything/);
  assert.match(meaningOf("live", true), /does not remember/);
  assert.match(meaningOf("resumed", true), /does not remember/);
});
