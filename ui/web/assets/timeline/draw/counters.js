/* Counters of a band: KV pages by kind as a stack, middle chunks in flight as a step line. */
(() => {
  "use strict";
  const timeline = ((globalThis.Chunkscope ??= {}).timeline ??= {});
  const draw = (timeline.draw ??= {});

  const LEAST_MIDDLE = 2; // the scale of the step line ends at least here

  /** Stack of locked, private and evictable pages up to the pool, which is the track's full height. */
  function drawPages(brush, scale, track, counters) {
    const { colour, pattern } = brush.theme;
    const known = counters.pages_total.some((total) => total > 0);
    if (!known) return unknown(brush, scale, track, "pages were not recorded");
    const total = counters.pages_total.reduce((most, value) => Math.max(most, value), 1);
    const bottom = track.y + track.height;
    const layers = [
      [counters.pages_protected, colour.kvLocked],
      [counters.pages_private, pattern.kvPrivate],
      [counters.pages_evictable, pattern.kvEvictable],
    ];
    const below = new Float64Array(counters.t_ns.length);
    for (const [pages, style] of layers) {
      const above = below.map((sum, i) => sum + Math.max(pages[i], 0));
      area(brush, scale, counters.t_ns, below, above, bottom, track.height / total, style);
      below.set(above);
    }
    brush.line(colour.line, scale.left, track.y + 0.5, scale.right, track.y + 0.5);
  }

  /** Fill between two step lines. */
  function area(brush, scale, t, below, above, bottom, pixelsPerUnit, style) {
    const { context } = brush;
    const steps = stepsOf(scale, t);
    context.fillStyle = style;
    context.beginPath();
    for (const [i, x0, x1] of steps) {
      const top = bottom - above[i] * pixelsPerUnit;
      context.lineTo(x0, top);
      context.lineTo(x1, top);
    }
    for (const [i, x0, x1] of steps.reverse()) {
      const base = bottom - below[i] * pixelsPerUnit;
      context.lineTo(x1, base);
      context.lineTo(x0, base);
    }
    context.fill();
  }

  /** Step line of middle chunks in flight, with the top of its scale at the right. */
  function drawMiddle(brush, scale, track, counters) {
    const values = counters.inflight_middle_chunks;
    if (!values.some((value) => value >= 0)) return unknown(brush, scale, track, "not recorded");
    const { context, theme } = brush;
    const most = values.reduce((top, value) => Math.max(top, value), LEAST_MIDDLE);
    const bottom = track.y + track.height - 0.5;
    const height = (value) => bottom - (Math.max(value, 0) / most) * (track.height - 1);
    area(brush, scale, counters.t_ns, new Float64Array(values.length), values, bottom, (track.height - 1) / most,
      theme.colour.hairline);
    context.strokeStyle = theme.colour.text;
    context.lineWidth = 1;
    context.beginPath();
    for (const [i, x0, x1] of stepsOf(scale, counters.t_ns)) {
      context.lineTo(x0, height(values[i]));
      context.lineTo(x1, height(values[i]));
    }
    context.stroke();
    brush.font(10);
    brush.text(timeline.words.count(most), scale.right + 4, track.y + 3, theme.colour.muted);
  }

  /** Visible steps as [index, x0, x1]: several of a pixel are there only as the first and the extreme ones. */
  function stepsOf(scale, t) {
    const first = Math.max(0, timeline.hit.lastNotAbove(t, scale.ns(scale.left)));
    const last = timeline.hit.lastNotAbove(t, scale.ns(scale.right));
    const steps = [];
    for (let i = first; i <= last; i++) {
      const x0 = Math.max(scale.left, scale.x(t[i]));
      const x1 = i + 1 < t.length ? Math.min(scale.right, scale.x(t[i + 1])) : x0;
      if (x1 >= x0) steps.push([i, x0, x1]);
    }
    return steps;
  }

  function unknown(brush, scale, track, words) {
    brush.font(10);
    brush.text(words, scale.left + 4, track.y + track.height / 2, brush.theme.colour.muted);
  }

  draw.pages = drawPages;
  draw.middle = drawMiddle;
})();
