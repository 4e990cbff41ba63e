/* Above the bands: the minimap of the focused run with the visible range in it, and the axis. */
(() => {
  "use strict";
  const timeline = ((globalThis.Chunkscope ??= {}).timeline ??= {});
  const draw = (timeline.draw ??= {});

  const LABEL_X = 12;
  const DECODE = 4;
  const HANDLE = 3;

  /** Draw minimap and axis; `view` has both scales, the strip, ticks, range, cursor and hovered instant. */
  function drawHeader(brush, view) {
    const { SIZES } = timeline.layout;
    const { colour } = brush.theme;
    const { scale, whole, extent } = view;
    const axis = SIZES.minimap + SIZES.axis / 2 + 1;
    brush.font(10);
    brush.text(`0 – ${timeline.words.duration(extent[1])}`, LABEL_X, SIZES.minimap / 2, colour.muted);
    brush.text("minimap", scale.left - 8, SIZES.minimap / 2, colour.muted, "right");
    brush.text(view.runs > 1 ? "one clock for all runs" : "since the first request", LABEL_X, axis, colour.muted);
    if (view.strip) minimap(brush, whole, view.strip, SIZES.minimap, view.largest);
    visible(brush, whole, view.range, SIZES.minimap);
    labels(brush, view, axis);
  }

  function minimap(brush, whole, strip, height, largest) {
    const { colour } = brush.theme;
    const runs = brush.runs();
    const decode = (x0, x1) => brush.fill(colour.decode, x0, height - DECODE, x1 - x0, DECODE);
    const most = Math.max(largest ?? 1, 1);
    for (let i = 0; i < strip.start_ns.length; i++) {
      const pixels = draw.span(whole, strip.start_ns[i], strip.end_ns[i]);
      if (!pixels) continue;
      const [x0, x1] = pixels;
      if (strip.extend_tokens[i] > 0) {
        const tall = Math.max(DECODE + 1, Math.round(Math.min(1, strip.extend_tokens[i] / most) * (height - 2)));
        brush.fill(colour.prefill, x0, height - tall, x1 - x0, tall);
      } else {
        runs.add(x0, x1, decode);
      }
    }
    runs.end();
    brush.outline(colour.line, whole.left, 0, whole.right - whole.left, height);
  }

  /** The box that says what part of the whole the bands show; what it leaves out is faded. */
  function visible(brush, whole, range, height) {
    const { colour } = brush.theme;
    const x0 = Math.round(whole.x(range[0]));
    const x1 = Math.max(x0 + 4, Math.round(whole.x(range[1])));
    brush.context.globalAlpha = 0.6;
    brush.fill(colour.page, whole.left, 1, x0 - whole.left, height - 2);
    brush.fill(colour.page, x1, 1, whole.right - x1, height - 2);
    brush.context.globalAlpha = 1;
    brush.outline(colour.text, x0, 0, x1 - x0, height, 1.5);
    brush.fill(colour.text, x0 - 1, 3, HANDLE, height - 6);
    brush.fill(colour.text, x1 - 2, 3, HANDLE, height - 6);
  }

  /** Tick labels; over them the instants of mark, cursor and pointer, with their distance from the mark. */
  function labels(brush, { scale, ticks, selection, cursor, hover, mark }, y) {
    const { colour } = brush.theme;
    const { duration, instant } = timeline.words;
    brush.font(11);
    for (const ns of ticks.at) {
      const text = instant(ns, ticks.step);
      const x = scale.x(ns);
      const half = brush.measure(text) / 2;
      if (x - half < scale.left - 6 || x + half > scale.right + 12) continue;
      brush.text(text, x, y, colour.muted, "center");
    }
    const step = Math.max(1, 10 ** Math.floor(Math.log10(scale.nsPerPixel)));
    const from = (ns) => (mark === null || ns === mark ? "" : ` (${signed(ns - mark)})`);
    if (selection) {
      const [from, to] = selection;
      flag(brush, scale, (from + to) / 2, `↔ ${duration(to - from)}`, y, colour.accent, colour.selected);
    }
    if (mark !== null) flag(brush, scale, mark, `m ${instant(mark, step)}`, y, colour.text, colour.panel);
    if (cursor !== null) {
      flag(brush, scale, cursor, `▼ ${instant(cursor, step)}${from(cursor)}`, y, colour.text, colour.selected);
    }
    if (hover !== null) flag(brush, scale, hover, instant(hover, step) + from(hover), y, colour.accent, colour.page);
  }

  function signed(ns) {
    return (ns < 0 ? "−" : "+") + timeline.words.duration(Math.abs(ns));
  }

  function flag(brush, scale, ns, text, y, style, ground) {
    const x = scale.x(ns);
    if (x < scale.left || x > scale.right) return;
    const width = brush.measure(text) + 6;
    const left = Math.min(Math.max(x - width / 2, scale.left - 8), scale.right + 12 - width);
    brush.plate(text, Math.round(left), y - 8, 16, style, ground);
  }

  draw.header = drawHeader;
})();
