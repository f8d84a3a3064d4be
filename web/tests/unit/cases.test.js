import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import { CASES, describe, DOCUMENT, findTests } from "../cases.js";

test("every acceptance case is a test in the browser, by its name", () => {
  const found = findTests();
  const missing = CASES.filter((id) => !found.get(id)?.some(({ folder }) => folder === "browser"));
  assert.deepEqual(missing, []);
  assert.deepEqual([...found.keys()].filter((id) => !CASES.includes(id)), [], "cases nobody asked for");
});

test("the table of cases says what the tests are called (npm run cases writes it)", () => {
  assert.equal(readFileSync(DOCUMENT, "utf8"), describe());
});
