"use strict";
const assert = require("node:assert/strict");
const { test } = require("node:test");
const { viewport } = require("./load.js");

const EXTENT = [0, 2_000_000_000];

/** Numbers that are the same in every run. */
function* numbers(seed, count) {
  let state = seed;
  for (let i = 0; i < count; i++) {
    state = (state * 1103515245 + 12345) % 2147483648;
    yield state / 2147483648;
  }
}

test("a range stays inside its extent, whole, and as long as it was", () => {
  assert.deepEqual(viewport.clamp([-500_000, 500_000], EXTENT), [0, 1_000_000]);
  assert.deepEqual(viewport.clamp([1_999_999_000, 2_000_001_000], EXTENT), [1_999_998_000, 2_000_000_000]);
  assert.deepEqual(viewport.clamp([-5, 9e9], EXTENT), EXTENT);
  assert.deepEqual(viewport.clamp([7.4, 7.4], EXTENT), [7, 1007]);
});

test("zoom keeps the instant at the pointer where it is", () => {
  const before = [400_000_000, 800_000_000];
  for (const factor of [0.2, 0.9, 1.1, 1.5]) {
    const after = viewport.zoom(before, 500_000_000, factor, EXTENT);
    assert.ok(Math.abs((500_000_000 - after[0]) / (after[1] - after[0]) - 0.25) < 1e-6);
    assert.ok(Math.abs(after[1] - after[0] - 400_000_000 * factor) <= 1);
  }
});

test("zoom ends at a microsecond and at the whole extent", () => {
  assert.deepEqual(viewport.zoom([500, 1500], 1000, 0.1, EXTENT), [500, 1500]);
  assert.deepEqual(viewport.zoom([500_000_000, 900_000_000], 600_000_000, 100, EXTENT), EXTENT);
});

test("pan keeps the span, also at the ends", () => {
  assert.deepEqual(viewport.pan([100, 5100], 50, EXTENT), [150, 5150]);
  assert.deepEqual(viewport.pan([100, 5100], -500, EXTENT), [0, 5000]);
});

test("pixels and nanoseconds are inverse to one another", () => {
  const scale = viewport.scale([1_000, 501_000], 134, 1000);
  assert.equal(scale.x(1_000), 134);
  assert.equal(scale.x(501_000), 1134);
  assert.ok(Math.abs(scale.ns(scale.x(123_456)) - 123_456) < 1e-6);
  assert.equal(scale.nsPerPixel, 500);
});

test("an eased range gets there, and never beyond", () => {
  let shown = [0, 1000];
  const wanted = [5_000, 9_000];
  for (let i = 0; i < 200 && shown !== wanted; i++) {
    const next = viewport.ease(shown, wanted, 16);
    assert.ok(next[0] >= shown[0] && next[0] <= wanted[0] && next[1] <= wanted[1]);
    shown = next;
  }
  assert.equal(shown, wanted);
});

test("ticks are round, inside the range, and apart", () => {
  for (const [from, length, width] of [[0, 2e9, 962], [123_456_789, 3_333, 962], [5, 1000, 400], [0, 3.6e12, 1500]]) {
    const { at, step } = viewport.ticks([from, from + length], width, 90);
    assert.ok(at.length >= 1 && at.length <= width / 90 + 1, `${at.length} ticks`);
    assert.ok(/^[125]0*$/.test(String(step)), String(step));
    assert.ok(at.every((ns) => ns >= from && ns <= from + length));
    assert.ok((step / length) * width >= 90 - 1e-6);
  }
});

test("the wanted window holds the range, its lanes' part too, at a column a pixel or nearly", () => {
  const extent = [0, 60_000_000_000];
  const random = [...numbers(7, 600)];
  for (let i = 0; i < random.length; i += 3) {
    const span = Math.round(1000 * 6e7 ** random[i]);
    const t0 = Math.round(random[i + 1] * (extent[1] - span));
    const range = [t0, t0 + span];
    const window = viewport.wantedWindow(range, 962, extent);
    assert.ok(window.t0 <= range[0] && window.t1 >= range[1], "window");
    assert.ok(window.lanes[0] <= range[0] && window.lanes[1] >= range[1], "lanes");
    assert.ok(window.t0 >= 0 && window.t1 <= extent[1] && window.t1 - window.t0 <= 4.3 * span + 10);
    assert.ok(window.columns >= 1 && window.columns <= 4000);
    assert.ok((window.t1 - window.t0) / window.columns <= (1.42 * span) / 962 + 1, "columns");
    for (const ns of [window.t0, window.t1, ...window.lanes]) assert.ok(Number.isInteger(ns));
  }
});

test("a small pan needs no other window", () => {
  const extent = [0, 60_000_000_000];
  const windows = new Set();
  for (let by = 0; by < 10_000_000_000; by += 100_000_000) {
    const { t0, t1, columns } = viewport.wantedWindow([by, by + 10_000_000_000], 962, extent);
    windows.add(`${t0} ${t1} ${columns}`);
  }
  assert.ok(windows.size <= 3, `${windows.size} windows for a pan by one span`);
});

test("a run shorter than the range, and an empty one, have a window", () => {
  assert.deepEqual(viewport.wantedWindow([900, 5000], 962, [0, 800]).t1, 800);
  const empty = viewport.wantedWindow([0, 1000], 962, [0, 0]);
  assert.deepEqual([empty.t0, empty.t1, empty.lanes], [0, 1, [0, 1]]);
});
