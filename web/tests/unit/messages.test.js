import assert from "node:assert/strict";
import test from "node:test";
import { isServerMessage, parseServerFrame, SERVER_TYPES } from "../../shared/messages.js";
import { goldens } from "./goldens.js";

test("every message the server can send is understood", () => {
  for (const [name, message] of goldens("server.")) assert.ok(parseServerFrame(JSON.stringify(message)), name);
});

test("every type we understand is one the server can send", () => {
  assert.deepEqual(new Set(goldens("server.").map(([, { type }]) => type)), new Set(SERVER_TYPES));
});

test("a message that lacks a field is rejected", () => {
  for (const [name, message] of goldens("server.")) {
    for (const field of Object.keys(message)) {
      const { [field]: _, ...rest } = message;
      const optional = new Set([
        "requestId",
        "since",
        "reason",
        "hangs",
        "field",
        "detail",
        "sessionId",
        "cliType",
        "installHint",
        "attempt",
        "attemptsMax",
        "retryInMs",
      ]);
      if (
        optional.has(field)
        && !(field === "sessionId" && message.type.startsWith("session:"))
        && !(field === "cliType" && message.type === "agent:status")
      ) continue;
      assert.ok(!isServerMessage(rest), `${name} without ${field}`);
    }
  }
});

test("a frame that is not JSON, not an object or of an unknown type is dropped", () => {
  for (const text of [
    "",
    "{",
    "null",
    "7",
    "[]",
    "{}",
    '{"type":7}',
    '{"type":"no:such"}',
    '{"type":"constructor"}',
    undefined,
    new ArrayBuffer(1),
  ]) {
    assert.equal(parseServerFrame(text), null, String(text));
  }
});
