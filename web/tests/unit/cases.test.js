import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import { CASES, describe, DOCUMENT, findTests, isRustTest, key } from "../cases.js";

test("every acceptance case of both documents has a test, or the decision that supersedes it", () => {
  const found = findTests();
  const missing = CASES.filter((of) =>
    !of.superseded && !of.tests?.length && !found.get(key(of))?.some(({ folder }) => folder === "browser"));
  assert.deepEqual(missing.map(key), []);
  assert.deepEqual(CASES.filter((of) => of.superseded && of.tests).map(key), [], "superseded, and yet tested");
});

test("every case of the feature specification is a test in the browser, by its name", () => {
  const found = findTests();
  const missing = CASES.filter((of) =>
    of.document === "M" && !found.get(key(of))?.some(({ folder }) => folder === "browser"));
  assert.deepEqual(missing.map(key), []);
});

test("no case is lost, listed twice or made up", () => {
  const keys = CASES.map(key);
  assert.equal(new Set(keys).size, keys.length);
  assert.equal(keys.filter((of) => of.startsWith("M ")).length, 68);
  assert.equal(keys.filter((of) => of.startsWith("E ")).length, 87);
  assert.deepEqual([...findTests().keys()].filter((of) => !keys.includes(of)), [], "cases nobody asked for");
});

test("every Rust test that a case names is there", () => {
  assert.deepEqual(CASES.flatMap((of) => of.tests ?? []).filter((named) => !isRustTest(named)), []);
  assert.ok(!isRustTest("crates/upserts/tests/it/batching.rs::emitted_at"), "a function that is no test is none");
  assert.ok(!isRustTest("crates/upserts/tests/it/batching.rs::no_such_test") && !isRustTest("crates/no/such.rs::test"));
});

test("the table of cases lists the current test names (npm run cases writes it)", () => {
  assert.equal(readFileSync(DOCUMENT, "utf8"), describe());
});
