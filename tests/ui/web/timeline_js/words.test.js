"use strict";
const assert = require("node:assert/strict");
const fs = require("node:fs");
const { test } = require("node:test");
const { draw, words } = require("./load.js");

const wide = (text) => text.replace(/[\u2068\u2069]/g, "").length * 6;

test("durations and counts are written as Python writes them", { skip: !process.env.CHUNKSCOPE_WORDS }, () => {
  for (const [ns, duration, count] of JSON.parse(fs.readFileSync(process.env.CHUNKSCOPE_WORDS, "utf8"))) {
    assert.deepEqual([words.duration(ns), words.count(ns)], [duration, count], `${ns} ns`);
  }
});

test("what the trace does not know is a dash, and zero is zero", () => {
  assert.deepEqual([words.count(-1), words.count(null), words.count(0)], ["–", "–", "0"]);
});

test("an instant has as many decimals as tell it from its neighbour", () => {
  assert.equal(words.instant(1_200_000_000, 200_000_000), "1.2 s");
  assert.equal(words.instant(412_500_000, 500_000), "412.5 ms");
  assert.equal(words.instant(412_000_000, 1_000_000), "412 ms");
  assert.equal(words.instant(0, 500_000_000), "0.0 s");
  assert.equal(words.instant(3_250, 10), "3.25 µs");
});

test("names stay on one line, keep their direction to themselves, and are cut where there is no room", () => {
  const name = "a\u202eb\u001b[31m\n<b>";
  assert.equal(words.isolate(name), "\u2068a\\u{202e}b\\u{1b}[31m\\u{a}<b>\u2069");
  assert.equal(words.fitted("short", 100, wide), "\u2068short\u2069");
  assert.equal(words.fitted("much too long", 40, wide), "\u2068much \u2069…");
  assert.equal(words.fitted("x".repeat(10_000), 60, wide), `\u2068${"x".repeat(9)}\u2069…`);
  assert.equal(words.fitted("anything", 3, wide), "");
  assert.equal(words.fitted("👩‍💻".repeat(9), 40, wide).includes("\ufffd"), false);
});

test("a chunk says as much of itself as fits", () => {
  const items = { number: [3, 1], of: [16, 1], tokens: [2048, 32768], start_ns: [0, 0], end_ns: [5e6, 1.138e9], count: [1, 1] };
  const label = (i, room) => draw.chunkLabel(items, i, room, wide);
  assert.deepEqual([label(0, 60), label(0, 20), label(0, 4)], ["3/16", "3", ""]);
  assert.equal(label(1, 400), "one forward · 32,768 tokens · 1.14 s");
  assert.equal(label(1, 100), "32,768 tokens");
  assert.equal(label(1, 50), "");
  assert.equal(draw.chunkLabel({ ...items, of: [-1, 1] }, 0, 60, wide), "3");
});

test("both parts of a forward are visible, and one above the scale is torn", () => {
  assert.deepEqual(draw.forwardHeights(2048, 0, 2294, 27), { decode: 0, prefill: 24, torn: false });
  assert.deepEqual(draw.forwardHeights(0, 6, 2294, 27), { decode: 4, prefill: 0, torn: false });
  assert.deepEqual(draw.forwardHeights(2042, 6, 2294, 27), { decode: 4, prefill: 23, torn: false });
  assert.deepEqual(draw.forwardHeights(32768, 0, 2294, 27), { decode: 0, prefill: 27, torn: true });
  assert.deepEqual(draw.forwardHeights(1, -1, 2294, 27), { decode: 0, prefill: 2, torn: false });
});
