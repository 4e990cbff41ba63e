/* Lanes of requests: waiting, stalls by what filled them, chunks by number, tokens as ticks. */
(() => {
  "use strict";
  const timeline = ((globalThis.Chunkscope ??= {}).timeline ??= {});
  const draw = (timeline.draw ??= {});

  const NUMBER_OF = 32; // pixels from which a chunk says k/n, and not k alone
  const TICK_PITCH = 4; // pixels between ticks from which each is two wide
  const PADDING = 6;

  /** Draw the lane of one track. */
  function drawLane(brush, scale, track) {
    const { lane, group } = track;
    const height = track.height - (group === "long" ? 2 : 1);
    const box = { y: track.y, height };
    drawWaiting(brush, scale, lane, box);
    drawStalls(brush, scale, lane, box);
    drawChunks(brush, scale, lane, box, group === "long");
    drawTokens(brush, scale, lane, box);
    if (group === "long") drawFirstToken(brush, scale, lane, box);
  }

  function drawWaiting(brush, scale, lane, { y, height }) {
    const { colour } = brush.theme;
    const middle = y + Math.floor(height / 2) + 0.5;
    eachOf(lane.items, timeline.hit.KIND.QUEUED, scale, (i, x0, x1) => {
      brush.line(colour.muted, x0, middle, x1, middle, [2, 2]);
      brush.font(10);
      if (x1 - x0 > brush.measure("queued") + 24) brush.plate("queued", x0 + 5, y, height, colour.muted, colour.page);
    });
    if (lane.arrival_ns === null) return;
    const arrival = draw.span(scale, lane.arrival_ns, lane.arrival_ns);
    if (arrival) brush.fill(colour.text, arrival[0] - 1, y, 2, height);
  }

  function drawStalls(brush, scale, lane, { y, height }) {
    const { KIND } = timeline.hit;
    const { pattern, colour } = brush.theme;
    const fills = [
      [KIND.STALL_PREFILL, pattern.stallPrefill],
      [KIND.STALL_MIXED, pattern.stallMixed],
      [KIND.STALL_HELD, pattern.stallHeld],
      [KIND.STALL_UNKNOWN, pattern.stallUnknown],
    ];
    for (const [kind, style] of fills) {
      eachOf(lane.items, kind, scale, (i, x0, x1) => brush.fill(style, x0, y, x1 - x0, height));
    }
    const middle = y + Math.floor(height / 2) + 0.5;
    eachOf(lane.items, KIND.STALL_DEFERRED, scale, (i, x0, x1) =>
      brush.line(colour.text, x0, middle, x1, middle, [5, 2, 1, 2]));
  }

  function drawChunks(brush, scale, lane, { y, height }, labelled) {
    const { colour } = brush.theme;
    eachOf(lane.items, timeline.hit.KIND.CHUNK, scale, (i, x0, x1) => {
      brush.fill(colour.prefill, x0, y, x1 - x0, height);
      if (x1 - x0 > 3) brush.fill(colour.page, x1 - 1, y, 1, height);
      if (!labelled || lane.items.count[i] > 1) return;
      brush.font(10, 600);
      const label = chunkLabel(lane.items, i, x1 - x0 - PADDING, brush.measure);
      if (label) brush.text(label, (x0 + x1) / 2, y + height / 2, "#FFFFFF", "center");
    });
  }

  /** What a chunk says of itself in so many pixels; "" when there is no room. */
  function chunkLabel(items, i, room, measure) {
    const { count, duration } = timeline.words;
    const [number, of] = [items.number[i], items.of[i]];
    const labels = of === 1
      ? [
          `one forward · ${count(items.tokens[i])} tokens · ${duration(items.end_ns[i] - items.start_ns[i])}`,
          `${count(items.tokens[i])} tokens`,
        ]
      : of > 0 && room + PADDING >= NUMBER_OF ? [`${number}/${of}`, `${number}`] : [`${number}`];
    return labels.find((label) => measure(label) <= room) ?? "";
  }

  function drawTokens(brush, scale, lane, { y, height }) {
    const { KIND } = timeline.hit;
    const { items } = lane;
    const { colour } = brush.theme;
    const runs = brush.runs();
    const paint = (x0, x1) => brush.fill(colour.decode, x0, y, x1 - x0, height);
    let last = -Infinity;
    eachOf(items, KIND.TOKEN, scale, (i, x0, x1) => {
      const wide = x0 - last >= TICK_PITCH && items.count[i] === 1;
      last = x0;
      runs.add(wide ? x0 - 1 : x0, x1, paint);
    });
    runs.end();
  }

  function drawFirstToken(brush, scale, lane, { y, height }) {
    if (lane.first_token_ns === null) return;
    const { colour } = brush.theme;
    const x = Math.round(scale.x(lane.first_token_ns));
    if (x < scale.left || x > scale.right) return;
    const label = lane.ttft === null ? "" : `TTFT ${lane.ttft}`;
    brush.font(10, 600);
    const width = 14 + brush.measure(label) + (label ? 5 : 0);
    if (x + width > scale.right) return diamond(brush, Math.min(x + 1, scale.right - 4), y + height / 2);
    brush.fill(colour.page, x + 2, y, width, height);
    diamond(brush, x + 9, y + height / 2);
    brush.text(label, x + 16, y + height / 2, colour.text);
  }

  function diamond(brush, x, y) {
    const { context, theme } = brush;
    context.fillStyle = theme.colour.decode;
    context.beginPath();
    context.moveTo(x, y - 4);
    context.lineTo(x + 4, y);
    context.lineTo(x, y + 4);
    context.lineTo(x - 4, y);
    context.fill();
  }

  /** Calls `paint(i, x0, x1)` for the visible items of a kind, in order of start. */
  function eachOf(items, kind, scale, paint) {
    const last = timeline.hit.lastNotAbove(items.start_ns, scale.ns(scale.right));
    for (let i = 0; i <= last; i++) {
      if (items.kind[i] !== kind) continue;
      const pixels = draw.span(scale, items.start_ns[i], items.end_ns[i]);
      if (pixels) paint(i, pixels[0], pixels[1]);
    }
  }

  draw.lane = drawLane;
  draw.chunkLabel = chunkLabel;
})();
