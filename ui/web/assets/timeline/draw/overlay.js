/* Over the bands: selection, cursor, crosshair, the selected gap with its arrow, its like in other bands. */
(() => {
  "use strict";
  const timeline = ((globalThis.Chunkscope ??= {}).timeline ??= {});
  const draw = (timeline.draw ??= {});

  const EDGE = 2;
  const HEAD = 5; // half the width of the arrow's head

  /** Draw over all bands; `view` has scale, height, selection, cursor, hover, gap details by run and gap. */
  function drawOverlay(brush, bands, view) {
    const { scale, height } = view;
    const { colour } = brush.theme;
    if (view.selection) selected(brush, scale, view.selection, height);
    for (const band of bands) outlines(brush, band, view);
    if (view.mark !== null) upright(brush, scale, view.mark, height, colour.text, [6, 3]);
    if (view.cursor !== null) upright(brush, scale, view.cursor, height, colour.text, []);
    if (view.hover !== null) upright(brush, scale, view.hover, height, colour.accent, [2, 2]);
  }

  function selected(brush, scale, [from, to], height) {
    const { colour } = brush.theme;
    const pixels = draw.span(scale, from, to);
    if (!pixels) return;
    const [x0, x1] = pixels;
    brush.context.globalAlpha = 0.13;
    brush.fill(colour.accent, x0, 0, x1 - x0, height);
    brush.context.globalAlpha = 1;
    brush.line(colour.accent, x0 + 0.5, 0, x0 + 0.5, height);
    brush.line(colour.accent, x1 - 0.5, 0, x1 - 0.5, height);
  }

  function upright(brush, scale, ns, height, style, dash) {
    const x = Math.round(scale.x(ns)) + 0.5;
    if (x >= scale.left && x <= scale.right) brush.line(style, x, 0, x, height, dash);
  }

  function outlines(brush, band, { scale, gap, details }) {
    const detail = details.get(band.run.key);
    if (!detail) return;
    const { colour } = brush.theme;
    const lane = timeline.layout.laneTrack(band, detail.rid);
    const pixels = draw.span(scale, detail.start_ns, detail.end_ns);
    const own = gap?.run === band.run.key;
    if (lane && pixels) {
      const [x, width] = [pixels[0] - 1, pixels[1] - pixels[0] + 2];
      brush.outline(colour.page, x - 1, lane.y - 2, width + 2, lane.height + 3, 1);
      brush.outline(colour.selectionEdge, x, lane.y - 1, width, lane.height + 1, own ? EDGE : 1.5, own ? [] : [4, 3]);
    }
    if (own && detail.costliest) costliest(brush, band, scale, detail, lane);
  }

  /** Edge on the costliest chunk, and an arrow to it from the gap. */
  function costliest(brush, band, scale, detail, lane) {
    const { colour } = brush.theme;
    const chunk = detail.costliest;
    const target = timeline.layout.laneTrack(band, chunk.rid);
    const pixels = draw.span(scale, chunk.start_ns, chunk.end_ns);
    if (!target || !pixels) return;
    const [x0, x1] = pixels;
    brush.outline(colour.selectionEdge, x0 - 1, target.y - 1, x1 - x0 + 1, target.height, EDGE);
    const gap = draw.span(scale, detail.start_ns, detail.end_ns);
    if (!lane || !gap) return;
    const x = Math.min(Math.max((x0 + x1) / 2, gap[0] + 2), gap[1] - 2);
    const from = lane.y + lane.height / 2;
    const down = target.y > lane.y;
    arrow(brush, x, from, down ? target.y - 1 : target.y + target.height, colour);
    if (detail.arrow) arrowLabel(brush, scale, detail.arrow, x, down ? target.y - 17 : target.y + target.height + 2);
  }

  function arrow(brush, x, from, to, colour) {
    const { context } = brush;
    const away = Math.sign(to - from);
    for (const [style, wide] of [[colour.page, 5], [colour.selectionEdge, 2]]) {
      context.strokeStyle = context.fillStyle = style;
      context.lineWidth = wide;
      context.beginPath();
      context.moveTo(x, from);
      context.lineTo(x, to - away * HEAD);
      context.stroke();
      context.beginPath();
      context.arc(x, from, wide === 2 ? 3 : 4.5, 0, 2 * Math.PI);
      context.fill();
    }
    context.beginPath();
    context.moveTo(x, to);
    context.lineTo(x - HEAD, to - away * HEAD * 1.6);
    context.lineTo(x + HEAD, to - away * HEAD * 1.6);
    context.fill();
  }

  function arrowLabel(brush, scale, text, x, y) {
    const { colour } = brush.theme;
    brush.font(11, 600);
    const shown = timeline.words.fitted(text, scale.right - scale.left - 40, brush.measure);
    const width = brush.measure(shown) + 6;
    const left = x + 12 + width <= scale.right ? x + 12 : x - 12 - width;
    brush.plate(shown, Math.round(left), y, 14, colour.text, colour.page);
  }

  draw.overlay = drawOverlay;
})();
