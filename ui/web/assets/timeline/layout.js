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
    gap: 2, // between groups of tracks
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

  /**
   * The lanes to draw, in the tile's order: all of a run that has no more than fit, else those with something in
   * the range, where these are too many those of `kept` requests and of long prompts first.
   */
  function lanesInView(tile, range, kept) {
    if (tile.lanes_total <= LANES_A_BAND) return tile.lanes;
    const isKept = (lane) => kept.includes(lane.rid);
    const there = tile.lanes.filter((lane) => isKept(lane) || timeline.hit.anyWithin(lane.items, ...range));
    const rank = (lane) => (isKept(lane) ? 0 : lane.long ? 1 : 2);
    const chosen = new Set(there.toSorted((a, b) => rank(a) - rank(b)).slice(0, LANES_A_BAND));
    return there.filter((lane) => chosen.has(lane));
  }

  /** One band from `top` on: its title, a track for each lane, then strip, KV pages and middle chunks. */
  function bandOf(run, tile, lanes, top) {
    const tracks = [];
    let y = top;
    const add = (kind, height, more = {}) => {
      tracks.push({ kind, y, height, ...more });
      y += height;
    };
    add("title", SIZES.title);
    y += 1;
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

  /**
   * All bands for a range, one above the other. `contentOf` a run is its tile or null, and the requests whose lanes
   * must be there; `heights` remembers each run's, so that a band never shrinks under the pointer.
   */
  function bands(runs, range, contentOf, heights) {
    let top = 0;
    return runs.map((run) => {
      const { tile, kept } = contentOf(run);
      const band = bandOf(run, tile, tile ? lanesInView(tile, range, kept) : [], top);
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

  timeline.layout = { SIZES, LANES_A_BAND, bands, laneTrack };
})();
