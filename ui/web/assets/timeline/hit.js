/* What lies under a point: the track by its height, then the item by binary search. Pure functions. */
(() => {
  "use strict";
  const timeline = ((globalThis.Chunkscope ??= {}).timeline ??= {});

  /** Codes of profiler.timeline.tiles.LaneKind. */
  const KIND = {
    QUEUED: 0, CHUNK: 1, TOKEN: 2, STALL_PREFILL: 3, STALL_MIXED: 4, STALL_HELD: 5, STALL_DEFERRED: 6,
    STALL_UNKNOWN: 7,
  };
  const PREFERRED = [KIND.CHUNK, KIND.TOKEN, KIND.STALL_PREFILL, KIND.STALL_MIXED, KIND.STALL_HELD,
    KIND.STALL_DEFERRED, KIND.STALL_UNKNOWN, KIND.QUEUED];
  const reaches = new WeakMap(); // array of ends -> the furthest end up to each item

  /** Index of the last value that is not above `wanted`, -1 where all are. */
  function lastNotAbove(sorted, wanted) {
    let [least, most] = [0, sorted.length];
    while (least < most) {
      const middle = (least + most) >> 1;
      if (sorted[middle] <= wanted) least = middle + 1;
      else most = middle;
    }
    return least - 1;
  }

  /** Indices of the items, in order of start, that reach into [from, to]; the last to start comes first. */
  function within(items, from, to) {
    const furthest = reachOf(items.end_ns);
    const found = [];
    for (let i = lastNotAbove(items.start_ns, to); i >= 0 && furthest[i] >= from; i--) {
      if (items.end_ns[i] >= from) found.push(i);
    }
    return found;
  }

  /** Whether any item, in order of start, reaches into [from, to]. */
  function anyWithin(items, from, to) {
    const last = lastNotAbove(items.start_ns, to);
    return last >= 0 && reachOf(items.end_ns)[last] >= from;
  }

  function reachOf(ends) {
    let furthest = reaches.get(ends);
    if (!furthest) {
      furthest = new Float64Array(ends.length);
      ends.forEach((end, i) => (furthest[i] = Math.max(end, i > 0 ? furthest[i - 1] : -Infinity)));
      reaches.set(ends, furthest);
    }
    return furthest;
  }

  /** The item of a lane at an instant, give or take some nanoseconds: the topmost of those drawn there, or -1. */
  function laneItem(items, ns, slack) {
    const rank = (i) => PREFERRED.indexOf(items.kind[i]) * 4 * slack + distance(items, i, ns);
    return within(items, ns - slack, ns + slack).reduce(
      (best, i) => (best < 0 || rank(i) < rank(best) ? i : best), -1);
  }

  /** The forward of a strip at an instant, give or take some nanoseconds: the nearest, or -1. */
  function stripItem(strip, ns, slack) {
    return within(strip, ns - slack, ns + slack).reduce(
      (best, i) => (best < 0 || distance(strip, i, ns) < distance(strip, best, ns) ? i : best), -1);
  }

  function distance(items, i, ns) {
    return Math.max(items.start_ns[i] - ns, ns - items.end_ns[i], 0);
  }

  /** The band and the track at a height, each or both undefined. */
  function trackAt(bands, y) {
    const band = bands.find((b) => y >= b.y && y < b.y + b.height);
    return { band, track: band?.tracks.find((t) => y >= t.y && y < t.y + t.height) };
  }

  timeline.hit = { KIND, lastNotAbove, within, anyWithin, laneItem, stripItem, trackAt };
})();
