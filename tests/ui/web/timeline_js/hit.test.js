"use strict";
const assert = require("node:assert/strict");
const { test } = require("node:test");
const { hit, layout, pickAt } = require("./load.js");

const { KIND } = hit;

function lane(...rows) {
  const sorted = rows.toSorted((a, b) => a[1] - b[1]);
  const column = (i) => sorted.map((row) => row[i]);
  return {
    kind: Uint8Array.from(column(0)),
    start_ns: Float64Array.from(column(1)),
    end_ns: Float64Array.from(column(2)),
    number: Int32Array.from(column(3)),
    forward_id: Int32Array.from(column(4)),
    count: Int32Array.from(column(3), () => 1),
  };
}

const ITEMS = lane(
  [KIND.QUEUED, 0, 1000, 0, -1],
  [KIND.CHUNK, 1000, 2000, 1, 10],
  [KIND.CHUNK, 2000, 3000, 2, 11],
  [KIND.TOKEN, 3010, 3010, 0, 11],
  [KIND.TOKEN, 3510, 3510, 1, 12],
  [KIND.STALL_PREFILL, 3510, 9000, 2, 20],
  [KIND.TOKEN, 9500, 9500, 2, 20],
);

test("the last value that is not above another", () => {
  assert.equal(hit.lastNotAbove([], 5), -1);
  assert.deepEqual([0, 1, 2, 3, 9].map((wanted) => hit.lastNotAbove([1, 2, 2, 3], wanted)), [-1, 0, 2, 3, 3]);
});

test("items that reach into a window are found, however early they began", () => {
  const rows = Array.from({ length: 400 }, (_, i) => [KIND.TOKEN, 10 * i, 10 * i + ((i * 37) % 90), 1, i]);
  const items = lane([KIND.QUEUED, 0, 4000, 0, -1], ...rows);
  for (const [from, to] of [[0, 0], [5, 6], [1234, 1301], [3990, 4100], [9000, 9001]]) {
    assert.equal(hit.anyWithin(items, from, to), hit.within(items, from, to).length > 0);
    const slowly = [...items.start_ns.keys()].filter((i) => items.start_ns[i] <= to && items.end_ns[i] >= from);
    assert.deepEqual(hit.within(items, from, to).toSorted((a, b) => a - b), slowly);
  }
});

test("what is drawn on top is hit first", () => {
  const kindAt = (ns, slack) => ITEMS.kind[hit.laneItem(ITEMS, ns, slack)];
  assert.equal(kindAt(500, 2), KIND.QUEUED);
  assert.equal(kindAt(1500, 2), KIND.CHUNK);
  assert.equal(kindAt(3512, 5), KIND.TOKEN);
  assert.equal(kindAt(6000, 5), KIND.STALL_PREFILL);
  assert.equal(hit.laneItem(ITEMS, 9200, 5), -1);
});

test("of two chunks side by side the one under the pointer is hit", () => {
  assert.equal(ITEMS.number[hit.laneItem(ITEMS, 1990, 20)], 1);
  assert.equal(ITEMS.number[hit.laneItem(ITEMS, 2010, 20)], 2);
});

test("a click means a gap, a chunk, a forward or a lane", () => {
  const request = { rid: 7, items: ITEMS };
  const strip = lane([1, 0, 500, 0, 30], [0, 500, 900, 0, 31]);
  const band = { run: { key: 1 }, tile: { strip } };
  const at = (track, t) => {
    const { kind, tok, forwardId, t: when } = pickAt(band, track, t, 5);
    return [kind, tok, forwardId, when];
  };
  const track = { kind: "lane", lane: request };
  assert.deepEqual(at(track, 6000), ["gap", 2, 20, 6000]);
  assert.deepEqual(at(track, 3511), ["gap", 1, 12, 3511]);
  assert.deepEqual(at(track, 3011), ["lane", null, null, 3011]);
  assert.deepEqual(at(track, 1500), ["chunk", null, 10, 1000]);
  assert.deepEqual(at(track, 9200), ["lane", null, null, 9200]);
  assert.deepEqual(at(track, null), ["lane", null, null, null]);
  assert.deepEqual(at({ kind: "strip" }, 700), ["forward", null, 31, 500]);
  assert.deepEqual(at({ kind: "strip" }, null), [null, null, null, null]);
  assert.deepEqual(at({ kind: "kv" }, 700), [null, null, null, 700]);
});

test("bands lie one below the other, lanes in groups, and never shrink", () => {
  const request = (rid, long) => ({ rid, long, items: ITEMS });
  const tile = { lanes: [request(0, false), request(1, false), request(2, true), request(3, false)], lanes_total: 9 };
  const heights = new Map();
  const runs = [{ key: 0 }, { key: 4 }];
  const content = (shown) => () => ({ tile: shown, kept: [] });
  const [first, second] = layout.bands(runs, [0, 9000], content(tile), heights);
  assert.deepEqual(first.tracks.map((t) => t.kind),
    ["title", "lane", "lane", "lane", "lane", "more", "strip", "kv", "middle"]);
  assert.deepEqual(first.tracks.filter((t) => t.lane).map((t) => [t.group, t.height]),
    [["decode", 10], ["decode", 10], ["long", 15], ["short", 10]]);
  assert.equal(first.tracks.find((t) => t.kind === "more").count, 5);
  assert.equal(second.y, first.height);
  for (const [i, track] of first.tracks.entries()) {
    if (i) assert.ok(track.y >= first.tracks[i - 1].y + first.tracks[i - 1].height);
  }
  const emptier = layout.bands(runs, [0, 9000], content(null), heights);
  assert.equal(emptier[0].height, first.height);
  const middle = second.tracks[3].y + 1;
  assert.equal(hit.trackAt([first, second], middle).track.lane.rid, 2);
  assert.equal(hit.trackAt([first, second], 1e6).band, undefined);
});

test("of many requests those in view are drawn, a gap's and long prompts first", () => {
  const request = (rid) => ({ rid, long: rid % 7 === 0, items: lane([KIND.TOKEN, 100 * rid, 100 * rid + 50, 1, 0]) });
  const tile = { lanes: Array.from({ length: 21 }, (_, rid) => request(rid)), lanes_total: 900 };
  const ridsIn = (range, kept) => layout.bands([{ key: 0 }], range, () => ({ tile, kept }), new Map())[0]
    .tracks.filter((t) => t.lane).map((t) => t.lane.rid);
  assert.deepEqual(ridsIn([230, 410], []), [2, 3, 4]);
  assert.deepEqual(ridsIn([230, 410], [17]), [2, 3, 4, 17]);
  assert.deepEqual(ridsIn([0, 9000], [20]), [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 14, 20]);
  const few = { ...tile, lanes_total: 14 };
  assert.equal(layout.bands([{ key: 0 }], [0, 1], () => ({ tile: few, kept: [] }), new Map())[0]
    .tracks.filter((t) => t.lane).length, 21);
});
