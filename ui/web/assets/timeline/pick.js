/* What a click means. A pure function of what is drawn there. */
(() => {
  "use strict";
  const timeline = ((globalThis.Chunkscope ??= {}).timeline ??= {});

  /**
   * {run, kind, rid, tok, forwardId, t} of a track at an instant, give or take some nanoseconds; t is null on the
   * labels. kind is "gap", "chunk", "forward", "lane" for a request's lane with nothing there, or null elsewhere.
   */
  function pickAt(band, track, t, slack) {
    const nothing = { run: band.run.key, kind: null, rid: null, tok: null, forwardId: null, t };
    if (track?.kind === "lane") return laneAt(track.lane, t, slack, nothing);
    if (track?.kind === "strip" && t !== null && band.tile) return forwardAt(band.tile.strip, t, slack, nothing);
    return nothing;
  }

  function laneAt(lane, t, slack, nothing) {
    const found = { ...nothing, kind: "lane", rid: lane.rid };
    const { items } = lane;
    const i = t === null ? -1 : timeline.hit.laneItem(items, t, slack);
    if (i < 0) return found;
    const { KIND } = timeline.hit;
    if (items.kind[i] === KIND.CHUNK) {
      return { ...found, kind: "chunk", forwardId: items.forward_id[i], t: items.start_ns[i] };
    }
    // A token or a stall belongs to the gap that its token ends; the first token ends none.
    const ends = items.kind[i] !== KIND.QUEUED && items.number[i] > 0;
    return ends ? { ...found, kind: "gap", tok: items.number[i], forwardId: items.forward_id[i] } : found;
  }

  function forwardAt(strip, t, slack, nothing) {
    const i = timeline.hit.stripItem(strip, t, slack);
    if (i < 0) return nothing;
    return { ...nothing, kind: "forward", forwardId: strip.forward_id[i], t: strip.start_ns[i] };
  }

  timeline.pickAt = pickAt;
})();
