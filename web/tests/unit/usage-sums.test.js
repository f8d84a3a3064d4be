import assert from "node:assert/strict";
import { test } from "node:test";
import { money } from "../../shared/money.js";
import { sumUsage } from "../../shell/usage-sums.js";

const row = (/** @type {Partial<import("../../shell/usage-sums.js").UsageRow>} */ more) => ({
  day: "2026-11-18", sessionId: "demo:a", title: "A", projectId: "p", projectName: "atlas", turns: 1,
  inputTokens: 1, outputTokens: 2, cacheReadInputTokens: 3, cacheCreationInputTokens: 4, ...more,
});

const rows = [
  row({ costUsd: 0.5 }),
  row({ day: "2026-11-17", costUsd: 0.25 }),
  row({
    day: "2026-11-17",
    sessionId: "demo:b",
    title: "B",
    projectId: "q",
    projectName: undefined,
    inputTokens: 1000,
  }),
];

test("usage is summed by day, newest first, and by project and session, largest first", () => {
  const names = (/** @type {import("../../shell/usage-sums.js").Grouping} */ grouping) =>
    sumUsage(rows, grouping).sums.map(({ name, turns, tokens, costUsd }) => [name, turns, tokens, costUsd]);
  assert.deepEqual(names("day"), [["2026-11-18", 1, 10, 0.5], ["2026-11-17", 2, 1019, 0.25]]);
  assert.deepEqual(names("project"), [["Removed project", 1, 1009, null], ["atlas", 2, 20, 0.75]]);
  assert.deepEqual(names("session"), [["B", 1, 1009, null], ["A", 2, 20, 0.75]]);
  assert.deepEqual(sumUsage(rows, "day").total, { key: "", name: "Total", turns: 3, tokens: 1029, costUsd: 0.75 });
});

test("a cost below a cent is not shown as zero", () => {
  assert.deepEqual([0, 0.004, 0.01, 12.345].map(money), ["$0.00", "<$0.01", "$0.01", "$12.35"]);
});
