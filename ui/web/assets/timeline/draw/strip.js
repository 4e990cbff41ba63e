/* The strip of forwards: tokens against the chunk budget, decode below and prefill above it. */
(() => {
  "use strict";
  const timeline = ((globalThis.Chunkscope ??= {}).timeline ??= {});
  const draw = (timeline.draw ??= {});

  const HEADROOM = 1.12; // the scale ends this far above the budget line
  const LEAST_DECODE = 4;
  const LEAST_PREFILL = 2;
  const TORN = 3;

  /** Draw the strip of one track; `budget` is the tokens of the dashed line, null when no run has one. */
  function drawStrip(brush, scale, track, strip, budget, largest) {
    const { colour } = brush.theme;
    const bottom = track.y + track.height;
    const most = budget ? budget * HEADROOM : Math.max(largest ?? 1, 1);
    const geometry = { bottom, height: track.height, most, budget };
    brush.line(colour.hairline, scale.left, bottom - 0.5, scale.right, bottom - 0.5);
    const decodes = brush.runs();
    const decode = (x0, x1) => brush.fill(colour.decode, x0, bottom - LEAST_DECODE, x1 - x0, LEAST_DECODE);
    const last = timeline.hit.lastNotAbove(strip.start_ns, scale.ns(scale.right));
    for (let i = 0; i <= last; i++) {
      const pixels = draw.span(scale, strip.start_ns[i], strip.end_ns[i]);
      if (!pixels) continue;
      if (isLow(strip, i, geometry)) decodes.add(pixels[0], pixels[1] - gapOf(pixels), decode);
      else drawForward(brush, strip, i, pixels, geometry);
    }
    decodes.end();
    if (!budget) return;
    const y = Math.round(bottom - (budget / most) * track.height) + 0.5;
    brush.line(colour.muted, scale.left, y, scale.right, y, [4, 3]);
  }

  /** Whether a forward is nothing but decode, no higher than the least that is drawn. */
  function isLow(strip, i, { most, height }) {
    return strip.extend_tokens[i] <= 0 && (Math.max(strip.decode_tokens[i], 0) / most) * height <= LEAST_DECODE;
  }

  function drawForward(brush, strip, i, [x0, x1], { bottom, height, most, budget }) {
    const { colour, pattern } = brush.theme;
    const { decode, prefill, torn } = forwardHeights(strip.extend_tokens[i], strip.decode_tokens[i], most, height);
    const width = x1 - x0 - gapOf([x0, x1]);
    brush.context.globalAlpha = share(strip, i);
    brush.fill(pattern.strip, x0, bottom - decode - prefill, width, prefill);
    brush.fill(colour.decode, x0, bottom - decode, width, decode);
    brush.context.globalAlpha = 1;
    if (!torn) return;
    tear(brush, x0, width, bottom - height);
    const tokens = Math.max(strip.extend_tokens[i], 0) + Math.max(strip.decode_tokens[i], 0);
    const label = tornLabel(tokens, budget, width - 12, brush);
    if (!label) return;
    const box = brush.measure(label) + 10;
    brush.fill(colour.prefill, x0 + (width - box) / 2, bottom - 18, box, 14);
    brush.text(label, x0 + width / 2, bottom - 11, "#FFFFFF", "center");
  }

  /** Pixels left free after a forward that is wide enough to be told from the next. */
  function gapOf([x0, x1]) {
    return x1 - x0 > 3 ? 1 : 0;
  }

  /** Of a bucket, how much of its length its forwards took; a forward by itself is opaque. */
  function share(strip, i) {
    if (strip.count[i] <= 1) return 1;
    const length = strip.end_ns[i] - strip.start_ns[i];
    return length > 0 ? Math.min(1, Math.max(0.35, strip.busy_ns[i] / length)) : 1;
  }

  /** Pixels of a forward's two parts, and whether they end above the scale; what is there is never invisible. */
  function forwardHeights(extend, decode, most, height) {
    const pixels = (tokens, least) => (tokens > 0 ? Math.max(least, Math.round((tokens / most) * height)) : 0);
    const below = Math.min(pixels(decode, LEAST_DECODE), height);
    const above = pixels(extend, LEAST_PREFILL);
    const torn = Math.max(extend, 0) + Math.max(decode, 0) > most;
    return { decode: below, prefill: Math.min(above, height - below), torn };
  }

  /** A zigzag at the top of a bar that would be higher than the strip. */
  function tear(brush, x, width, top) {
    const { context, theme } = brush;
    context.fillStyle = theme.colour.page;
    context.beginPath();
    context.moveTo(x, top);
    for (let i = 0; i * TORN <= width; i++) context.lineTo(x + i * TORN, top + (i % 2 ? TORN + 1 : 1));
    context.lineTo(x + width, top);
    context.fill();
  }

  function tornLabel(tokens, budget, room, brush) {
    const { count } = timeline.words;
    brush.font(10, 600);
    const labels = [`${count(tokens)} tokens`, count(tokens)];
    if (budget) labels.unshift(`${count(tokens)} tokens, above the ${count(budget)} line`);
    return labels.find((label) => brush.measure(label) <= room) ?? "";
  }

  draw.strip = drawStrip;
  draw.forwardHeights = forwardHeights;
})();
