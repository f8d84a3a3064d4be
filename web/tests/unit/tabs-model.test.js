import assert from "node:assert/strict";
import test from "node:test";
import {
  closeTab,
  fromStored,
  mergeTabs,
  moveTab,
  NO_TABS,
  openTab,
  restoreTabs,
  toStored,
} from "../../shell/tabs-model.js";

const abc = ["a", "b", "c"].reduce(openTab, NO_TABS);

test("TC-4.1b: a newly opened tab is last and in front", () =>
  assert.deepEqual(abc, { order: ["a", "b", "c"], active: "c" }));
test("TC-4.3b: opening an open session changes no tab", () =>
  assert.deepEqual(openTab(abc, "a"), { order: ["a", "b", "c"], active: "a" }));
test("TC-4.4b: closing the tab in front brings the next one, or the previous if it was last", () => {
  assert.equal(closeTab(openTab(abc, "b"), "b").active, "c");
  assert.equal(closeTab(abc, "c").active, "b");
  assert.equal(closeTab(abc, "a").active, "c");
  assert.deepEqual(["a", "b", "c"].reduce(closeTab, abc), NO_TABS);
  assert.equal(closeTab(abc, "x"), abc);
});
test("TC-4.6a: a tab moves to its new place, never past the ends", () => {
  assert.deepEqual(moveTab(abc, "c", 1).order, ["a", "c", "b"]);
  assert.deepEqual(moveTab(abc, "a", 9).order, ["b", "c", "a"]);
  assert.deepEqual(moveTab(abc, "c", -1).order, ["c", "a", "b"]);
  assert.equal(moveTab(abc, "x", 0), abc);
});
test("TC-4.6b: what is stored comes back", () => {
  const moved = moveTab(abc, "c", 0);
  assert.deepEqual(fromStored(JSON.parse(JSON.stringify(toStored(moved)))), moved);
  assert.deepEqual(Object.keys(toStored(moved)), ["openTabs", "activeTab", "tabOrder"]);
});
test("unknown stored values are skipped", () => {
  for (const junk of [null, 7, "x", [], {}, { openTabs: 7 }, { openTabs: [1, null] }]) {
    assert.deepEqual(fromStored(junk), NO_TABS);
  }
  assert.deepEqual(
    fromStored({ openTabs: ["a", "b"], tabOrder: ["b", "gone"], activeTab: "gone" }),
    { order: ["b", "a"], active: "b" },
  );
});

test("tabs that a removal closed come back to their places, with the one that was in front", () => {
  const left = ["a", "c"].reduce(closeTab, abc);
  assert.deepEqual(restoreTabs(openTab(left, "d"), abc, () => true), { order: ["a", "b", "c", "d"], active: "c" });
  assert.deepEqual(restoreTabs(left, abc, (id) => id === "a"), { order: ["a", "b"], active: "b" });
});

test("what one window opens or closes takes nothing from another", () => {
  const shared = { order: ["a", "b", "theirs"], active: "theirs" };
  assert.deepEqual(
    mergeTabs(shared, { order: ["a", "b"], active: "a" }, { order: ["b"], active: "b" }),
    { order: ["b", "theirs"], active: "b" },
  );
  assert.deepEqual(mergeTabs(shared, NO_TABS, openTab(NO_TABS, "mine")), {
    order: ["mine", "a", "b", "theirs"],
    active: "mine",
  });
  assert.deepEqual(mergeTabs(
    shared,
    { order: ["a", "b"], active: "a" },
    NO_TABS,
  ), { order: ["theirs"], active: "theirs" });
  assert.deepEqual(mergeTabs(NO_TABS, NO_TABS, abc), abc);
});
