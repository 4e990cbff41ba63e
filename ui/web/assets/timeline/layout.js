/* Where the bands and their tracks lie, from top to bottom. Pure functions; all sizes in CSS pixels. */
(() => {
  "use strict";
  const timeline = ((globalThis.Chunkscope ??= {}).timeline ??= {});

  const SIZES = {
    gutter: 134,
    margin: 12, // right of the plot
    minimap: 13,
    axis: 18,
    title: 17,
    strip: 27,
    kv: 20,
    middle: 9,
    more: 12,
    gap: 3, // between groups of tracks
  };
  const LANES = { decode: 10, long: 15, short: 10 };
  const EMPTY_LANES = 20; // room for the words that say why there are none
  const LANES_A_BAND = 14;

  /** Groups of a tile's lanes: the short ones before the first long prompt are those that decode first. */
  function groupsOf(lanes) {
    let seenLong = false;
    return lanes.map((lane) => {
      seenLong ||= lane.long;
      return lane.long ? "long" : seenLong ? "short" : "decode";
    });
  }

  /** One band from `top` on: its title, a track for each lane, then strip, KV pages and middle chunks. */
  function bandOf(run, tile, top) {
    const tracks = [];
    let y = top;
    const add = (kind, height, more = {}) => {
      tracks.push({ kind, y, height, ...more });
      y += height;
    };
    add("title", SIZES.title);
    y += 1;
    const lanes = tile?.lanes ?? [];
    const groups = groupsOf(lanes);
    lanes.forEach((lane, i) => {
      if (i > 0 && groups[i] !== groups[i - 1]) y += SIZES.gap;
      add("lane", LANES[groups[i]], { lane, group: groups[i] });
    });
    if (!lanes.length) add("empty", EMPTY_LANES);
    if (tile && tile.lanes_total > lanes.length) add("more", SIZES.more, { count: tile.lanes_total - lanes.length });
    y += SIZES.gap;
    add("strip", SIZES.strip);
    y += SIZES.gap;
    add("kv", SIZES.kv);
    y += 2;
    add("middle", SIZES.middle);
    y += SIZES.gap;
    return { run, tile, y: top, height: y - top, tracks };
  }

  /** All bands, one above the other; `heights` remembers each run's, so that a band never shrinks under the pointer. */
  function bands(runs, tileOf, heights) {
    let top = 0;
    return runs.map((run) => {
      const band = bandOf(run, tileOf(run), top);
      band.height = Math.max(band.height, heights.get(run.key) ?? 0);
      heights.set(run.key, band.height);
      top += band.height;
      return band;
    });
  }

  /** The track of a request in a band, or undefined. */
  function laneTrack(band, rid) {
    return band.tracks.find((track) => track.lane?.rid === rid);
  }

  timeline.layout = { SIZES, LANES_A_BAND, bands, groupsOf, laneTrack };
})();
