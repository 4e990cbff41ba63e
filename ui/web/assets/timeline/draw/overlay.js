/* Over the bands: selection, cursor, crosshair, the selected gap with its arrow, its like in other bands. */
(() => {
  "use strict";
  const timeline = ((globalThis.Chunkscope ??= {}).timeline ??= {});
  const draw = (timeline.draw ??= {});

  const EDGE = 2;
  const LABEL = 12; // between the arrow and its label
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
    const place = arrowPlace(brush, scale, detail);
    if (!lane || !place) return;
    const down = target.y > lane.y;
    arrow(brush, place.x, lane.y + lane.height / 2, down ? target.y - 1 : target.y + target.height, colour);
    brush.font(11, 600);
    const top = down ? target.y - 17 : target.y + target.height + 2;
    if (place.text) brush.plate(place.text, place.left, top, 14, colour.text, colour.page);
  }

  /** Where the arrow stands, and its label beside it; null when gap or chunk is out of view. */
  function arrowPlace(brush, scale, detail) {
    const { costliest: chunk } = detail;
    const gap = draw.span(scale, detail.start_ns, detail.end_ns);
    const target = chunk && draw.span(scale, chunk.start_ns, chunk.end_ns);
    if (!gap || !target) return null;
    const x = Math.min(Math.max((target[0] + target[1]) / 2, gap[0] + 2), gap[1] - 2);
    brush.font(11, 600);
    const text = timeline.words.fitted(detail.arrow, scale.right - scale.left - 40, brush.measure);
    const width = brush.measure(text) + 6;
    const left = Math.round(x + LABEL + width <= scale.right ? x + LABEL : x - LABEL - width);
    return { x, text, left, right: left + width };
  }

  /** Pixels that the arrow and its label take, or null. */
  function arrowSpan(brush, scale, detail) {
    const place = arrowPlace(brush, scale, detail);
    return place && [Math.min(place.x, place.left) - LABEL, Math.max(place.x, place.right) + LABEL];
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

  draw.overlay = drawOverlay;
  draw.arrowSpan = arrowSpan;
})();
