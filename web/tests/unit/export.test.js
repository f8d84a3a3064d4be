import assert from "node:assert/strict";
import test from "node:test";
import { exportAddress, fileName } from "../../shell/export.js";

test("the address of an export names the session, the format, and masking only if wanted", () => {
  assert.equal(exportAddress("claude-code:a/b?", "md", false), "/api/session/claude-code%3Aa%2Fb%3F/export?format=md");
  assert.equal(exportAddress("codex:1", "html", true), "/api/session/codex%3A1/export?format=html&redact=true");
});

test("the file has the name that the server suggests, without any directory, or a plain one", () => {
  assert.equal(fileName('attachment; filename="Fix it.md"', "x.md"), "Fix it.md");
  assert.equal(fileName("attachment; filename=plain.json", "x.json"), "plain.json");
  assert.equal(fileName("attachment; filename=\"a.md\"; filename*=UTF-8''%C3%A4.md", "x.md"), "ä.md");
  assert.equal(fileName("attachment; filename=\"a.md\"; filename*=UTF-8''%zz.md", "x.md"), "a.md");
  assert.equal(fileName('attachment; filename="../../etc/a.md"', "x.md"), "a.md");
  for (const none of [null, "", "attachment", 'attachment; filename=""', 'attachment; filename="/"']) {
    assert.equal(fileName(none, "x.md"), "x.md", String(none));
  }
});
