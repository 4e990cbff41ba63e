/* Counters of a band: KV pages by kind as a stack, middle chunks in flight as a step line. */
(() => {
  "use strict";
  const timeline = ((globalThis.Chunkscope ??= {}).timeline ??= {});
  const draw = (timeline.draw ??= {});

  const CROWDED = 3; // pixels a step below which its line would be a black bar
  const LEAST_MIDDLE = 2; // the scale of the step line ends at least here

  /** Stack of locked, private and evictable pages up to the pool, which is the track's full height. */
  function drawPages(brush, scale, track, { counters, t1 }) {
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
    const steps = stepsOf(scale, counters.t_ns, t1);
    const below = new Float64Array(counters.t_ns.length);
    for (const [pages, style] of layers) {
      const above = below.map((sum, i) => sum + Math.max(pages[i], 0));
      area(brush, steps, below, above, bottom, track.height / total, style);
      below.set(above);
    }
    brush.line(colour.line, scale.left, track.y + 0.5, scale.right, track.y + 0.5);
  }

  /** Fill between two step lines. */
  function area(brush, steps, below, above, bottom, pixelsPerUnit, style) {
    const { context } = brush;
    context.fillStyle = style;
    context.beginPath();
    for (const [i, x0, x1] of steps) {
      const top = bottom - above[i] * pixelsPerUnit;
      context.lineTo(x0, top);
      context.lineTo(x1, top);
    }
    for (const [i, x0, x1] of steps.toReversed()) {
      const base = bottom - below[i] * pixelsPerUnit;
      context.lineTo(x1, base);
      context.lineTo(x0, base);
    }
    context.fill();
  }

  /** Step line of middle chunks in flight, with the top of its scale at the right. */
  function drawMiddle(brush, scale, track, { counters, t1 }) {
    const values = counters.inflight_middle_chunks;
    if (!values.some((value) => value >= 0)) return unknown(brush, scale, track, "not recorded");
    const { context, theme } = brush;
    const most = values.reduce((top, value) => Math.max(top, value), LEAST_MIDDLE);
    const bottom = track.y + track.height - 0.5;
    const steps = stepsOf(scale, counters.t_ns, t1);
    const pixels = (track.height - 1) / most;
    const known = values.map((value) => Math.max(value, 0));
    area(brush, steps, new Float64Array(values.length), known, bottom, pixels, theme.colour.hairline);
    const changes = steps.filter(([i], at) => at > 0 && known[i] !== known[steps[at - 1][0]]).length;
    context.strokeStyle = changes * CROWDED > scale.right - scale.left ? theme.colour.host : theme.colour.text;
    context.lineWidth = 1;
    context.beginPath();
    for (const [i, x0, x1] of steps) {
      context.lineTo(x0, bottom - known[i] * pixels);
      context.lineTo(x1, bottom - known[i] * pixels);
    }
    context.stroke();
    brush.font(10);
    brush.text(timeline.words.count(most), scale.right + 4, track.y + 3, theme.colour.muted);
  }

  /** Visible steps as [index, x0, x1]; the last one holds to the end of what the tile covers. */
  function stepsOf(scale, t, end) {
    const first = Math.max(0, timeline.hit.lastNotAbove(t, scale.ns(scale.left)));
    const last = timeline.hit.lastNotAbove(t, scale.ns(scale.right));
    const steps = [];
    for (let i = first; i <= last; i++) {
      const x0 = Math.max(scale.left, scale.x(t[i]));
      const x1 = Math.min(scale.right, scale.x(i + 1 < t.length ? t[i + 1] : end));
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
