/* Ranges of time, in nanoseconds since the runs' start, and what they are in pixels. Pure functions. */
(() => {
  "use strict";
  const timeline = ((globalThis.Chunkscope ??= {}).timeline ??= {});

  const LEAST_SPAN_NS = 1_000;
  const MOST_COLUMNS = 4_000;
  const EASE_MS = 45; // time in which the shown range covers 63 % of the way to the wanted one
  const SETTLED = 1e-3; // of the span: nearer than this the shown range is the wanted one

  /** The range inside the extent that is nearest to the given one, whole nanoseconds, its span kept if possible. */
  function clamp([t0, t1], [first, last]) {
    const whole = Math.max(last - first, LEAST_SPAN_NS);
    const span = Math.round(Math.min(Math.max(t1 - t0, LEAST_SPAN_NS), whole));
    const start = Math.round(Math.min(Math.max(t0, first), first + whole - span));
    return [start, start + span];
  }

  /** The range with its span times `factor`, the instant `anchor` staying where it is. */
  function zoom([t0, t1], anchor, factor, extent) {
    const span = t1 - t0;
    const whole = Math.max(extent[1] - extent[0], LEAST_SPAN_NS);
    const ratio = Math.min(Math.max(span * factor, LEAST_SPAN_NS), whole) / span;
    return clamp([anchor - (anchor - t0) * ratio, anchor + (t1 - anchor) * ratio], extent);
  }

  /** The range moved by some nanoseconds, its span kept. */
  function pan([t0, t1], by, extent) {
    return clamp([t0 + by, t1 + by], extent);
  }

  /** Where instants lie on a plot that shows the range from pixel `left` on, `width` pixels wide. */
  function scale([t0, t1], left, width) {
    const pixels = width / (t1 - t0);
    return {
      left,
      right: left + width,
      nsPerPixel: 1 / pixels,
      x: (ns) => left + (ns - t0) * pixels,
      ns: (x) => t0 + (x - left) / pixels,
    };
  }

  /** The shown range after `elapsedMs` on its way to the wanted one. */
  function ease(shown, wanted, elapsedMs) {
    const left = Math.exp(-elapsedMs / EASE_MS);
    const near = (wanted[1] - wanted[0]) * SETTLED;
    const next = shown.map((ns, i) => wanted[i] + (ns - wanted[i]) * left);
    return next.every((ns, i) => Math.abs(ns - wanted[i]) < near) ? wanted : next;
  }

  /** Round instants of the range, no nearer to one another than `leastPixels`, and the step between them. */
  function ticks([t0, t1], width, leastPixels) {
    const least = ((t1 - t0) * leastPixels) / width;
    const power = 10 ** Math.floor(Math.log10(least));
    const step = Math.max(1, power * ([1, 2, 5].find((m) => m * power >= least) ?? 10));
    const at = [];
    for (let k = Math.ceil(t0 / step); k * step <= t1; k++) at.push(k * step);
    return { at, step };
  }

  /**
   * The window to ask for so that the range can be drawn, and moved by half its span without asking again.
   * Windows are the same for ranges near each other: their length steps by half octaves, their start by half
   * a length. `lanes` is the part of it that any such range lies in, `wider` how many times the range it may be.
   */
  function wantedWindow([t0, t1], width, [first, last]) {
    const unit = Math.ceil(2 ** (Math.ceil(2 * Math.log2(t1 - t0)) / 2));
    const half = Math.ceil(unit / 2);
    const start = Math.floor(t0 / half) * half;
    const [end, whole] = [start + 3 * half, Math.max(last, first + 1)];
    const from = Math.max(first, Math.min(start - Math.round(1.5 * half), whole - 1));
    const to = Math.max(from + 1, Math.min(end + Math.round(1.5 * half), whole));
    const columns = Math.min(MOST_COLUMNS, Math.max(1, Math.ceil((width * (to - from)) / unit)));
    const lanes = [Math.max(first, Math.min(start, whole - 1)), Math.max(first + 1, Math.min(end, whole))];
    return { t0: from, t1: to, columns, lanes, wider: Math.max(1, (lanes[1] - lanes[0]) / unit) };
  }

  timeline.viewport = { clamp, zoom, pan, scale, ease, ticks, wantedWindow };
})();
