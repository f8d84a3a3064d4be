import assert from "node:assert/strict";
import test from "node:test";
import { pathOf } from "../../shared/paths.js";

test("an absolute path and one that starts at home are taken as they are", () => {
  for (const path of ["/", "/srv/code", "~", "~/code", "/a path/with spaces"]) assert.equal(pathOf(path), path);
});

test("any other text is below the home directory, and an empty one is nothing", () => {
  assert.equal(pathOf("code/ferry"), "~/code/ferry");
  assert.equal(pathOf("  "), "");
});

test("what surrounds a copied path is not part of it", () => {
  assert.equal(pathOf("  /srv/code \n"), "/srv/code");
  assert.equal(pathOf("'/srv/my code'"), "/srv/my code");
  assert.equal(pathOf('"~/code"'), "~/code");
  assert.equal(pathOf("file:///srv/my%20code"), "/srv/my code");
  assert.equal(pathOf("file:///srv/100%"), "~/file:///srv/100%");
});
