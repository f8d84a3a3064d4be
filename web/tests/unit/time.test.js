import assert from "node:assert/strict";
import test from "node:test";
import { compact, duration, elapsed, relativeTime } from "../../shared/time.js";

const now = Date.parse("2026-11-15T12:00:00.000Z");
const SECOND = 1000, MINUTE = 60 * SECOND, HOUR = 60 * MINUTE, DAY = 24 * HOUR;
const ago = (/** @type {number} */ ms) => relativeTime(new Date(now - ms).toISOString(), now);

test("TC-2.1a: ages are shown in short form", () => {
  const table = /** @type {[number, string][]} */ ([
    [0, "now"],
    [59 * SECOND, "now"],
    [MINUTE, "1m"],
    [59 * MINUTE, "59m"],
    [HOUR, "1h"],
    [23 * HOUR, "23h"],
    [2 * DAY, "2d"],
    [6 * DAY, "6d"],
    [7 * DAY, "1w"],
    [51 * 7 * DAY, "51w"],
    [400 * DAY, "1y"],
    [800 * DAY, "2y"],
  ]);
  for (const [ms, text] of table) assert.equal(ago(ms), text);
});

test("a future time and an invalid time are shown as now", () => {
  assert.equal(ago(-DAY), "now");
  assert.equal(relativeTime("never", now), "now");
});

test("durations are exact while short", () => {
  assert.deepEqual([0, 140, 9_990, 12_300, 72_000, 3_720_000].map(duration), [
    "0.0s",
    "0.1s",
    "9.9s",
    "12s",
    "1m 12s",
    "1h 02m",
  ]);
  assert.deepEqual([900, 3_000, 134_000].map(elapsed), ["0s", "3s", "2m 14s"]);
});

test("counts of tokens are short", () => {
  assert.deepEqual([0, 640, 62_000, 199_600, 1_200_000, 2_000_000].map(compact), [
    "0",
    "640",
    "62k",
    "200k",
    "1.2M",
    "2M",
  ]);
});
