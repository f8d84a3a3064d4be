import assert from "node:assert/strict";
import test from "node:test";
import { TAB_GAP_PX, TAB_MAX_PX, TAB_MIN_PX, tabWidths } from "../../shell/tab-widths.js";

const sum = (/** @type {number[]} */ widths) =>
  widths.reduce((total, width) => total + width, TAB_GAP_PX * (widths.length - 1));

test("with room for all, each tab takes what its title needs, between minimum and maximum", () => {
  assert.deepEqual(tabWidths([150.2, 60, 400], 1000), { widths: [151, TAB_MIN_PX, TAB_MAX_PX], fits: true });
  assert.deepEqual(tabWidths([], 1000), { widths: [], fits: true });
});

test("with too little room the widest become narrower first, and no more than they must", () => {
  const { widths, fits } = tabWidths([120, 240, 250, 130], 120 + 130 + 200 + 200 + 3 * TAB_GAP_PX);
  assert.deepEqual(widths, [120, 200, 200, 130]);
  assert.equal(fits, true);
});

test("tabs that do not fit even when narrow keep the minimum, and `fits` is false", () => {
  assert.deepEqual(tabWidths(Array(30).fill(200), 1100), { widths: Array(30).fill(TAB_MIN_PX), fits: false });
});

test("the room is never exceeded while all fit, and no title is cut while there is room", () => {
  for (let count = 1; count <= 12; count += 1) {
    for (let room = 300; room <= 1600; room += 37) {
      const needed = Array.from({ length: count }, (_, at) => 90 + ((at * 53) % 190));
      const { widths, fits } = tabWidths(needed, room);
      if (fits) assert.ok(sum(widths) <= room, `${count} tabs in ${room}`);
      const isCut = widths.some((width, at) => width < Math.min(TAB_MAX_PX, needed[at] ?? 0));
      if (isCut) assert.ok(room - sum(widths) < count, `${room - sum(widths)} px are free beside a title that is cut`);
    }
  }
});
