/* One band: title, labels in the gutter, and its tracks on the plot. */
(() => {
  "use strict";
  const timeline = ((globalThis.Chunkscope ??= {}).timeline ??= {});
  const draw = (timeline.draw ??= {});

  const TITLE_X = 12;
  const LABEL_X = 28;
  const OPTIONS_X = 36; // right of the plot's left end
  const BRACKET_X = 22;
  const MIDDLE = "inflight_middle_chunks";
  const WALL_LANES = 3; // lanes that a plate covers
  const WALL_HEIGHT = 30;
  const LEAST_BRACKET = 48; // pixels of height for the word beside it

  /** Draw a band; `view` has scale, ticks, number of runs, focused run and selected gap. */
  function drawBand(brush, band, view) {
    const { scale } = view;
    grid(brush, band, view);
    for (const track of band.tracks) drawTrack(brush, band, track, view);
    bracket(brush, band, scale);
    walls(brush, band, view);
    if (band.error) failure(brush, band, scale);
  }

  function grid(brush, band, { scale, ticks }) {
    const { colour } = brush.theme;
    for (const ns of ticks.at) {
      const x = Math.round(scale.x(ns)) + 0.5;
      brush.line(colour.hairline, x, band.y, x, band.y + band.height);
    }
    for (const { lane, y, group } of band.tracks) {
      if (group !== "long" || lane.arrival_ns === null) continue;
      const x = Math.round(scale.x(lane.arrival_ns)) - 0.5;
      if (x < scale.left || x > scale.right) continue;
      brush.line(colour.muted, x, y, x, band.y + band.height, [1, 3]);
    }
  }

  function drawTrack(brush, band, track, view) {
    const { scale } = view;
    const { colour } = brush.theme;
    const tile = band.tile;
    if (track.kind === "title") return title(brush, band, track, view);
    if (track.kind === "lane") {
      laneLabel(brush, track, view.gap?.run === band.run.key && view.gap.rid === track.lane.rid);
      return draw.lane(brush, scale, track);
    }
    if (track.kind === "empty") return note(brush, scale, track, tile ? "no requests recorded" : "loading");
    if (track.kind === "more") {
      const requests = track.count === 1 ? "request" : "requests";
      brush.font(10);
      return brush.text(`+${timeline.words.count(track.count)} more ${requests}`, 8, track.y + 6, colour.muted);
    }
    return measures(brush, band, track, view);
  }

  function measures(brush, band, track, { scale }) {
    const { count } = timeline.words;
    const { colour } = brush.theme;
    const counters = band.tile?.counters;
    if (track.kind === "strip") {
      const { budget, run, tile } = band;
      label(brush, track, "tokens / forward", budget ? `budget line ${count(budget)}` : "no budget");
      if (tile) draw.strip(brush, scale, track, tile.strip, budget, run.maxTokens);
      const whole = tile?.t0 === 0 && tile.t1 >= run.endNs - run.startNs;
      if (whole && !tile.strip.count.length) note(brush, scale, track, "no forwards recorded");
    } else if (track.kind === "kv") {
      const total = counters?.pages_total.reduce((most, pages) => Math.max(most, pages), -1) ?? -1;
      label(brush, track, "KV pages", `pool ${count(total)}`);
      if (counters) draw.pages(brush, scale, track, band.tile);
    } else {
      brush.font(10);
      const room = timeline.layout.SIZES.gutter - 4 - brush.measure(MIDDLE);
      brush.text(MIDDLE, Math.min(LABEL_X, room), track.y + 4, colour.muted);
      if (counters) draw.middle(brush, scale, track, band.tile);
    }
  }

  function title(brush, band, track, { scale, run, runs }) {
    const { colour, mono } = brush.theme;
    const focused = runs > 1 && run === band.run.key;
    brush.fill(colour.panel, 0, track.y, scale.right + 12, track.height);
    brush.line(colour.line, 0, track.y + 0.5, scale.right + 12, track.y + 0.5);
    if (focused) brush.fill(colour.accent, 0, track.y + 1, 3, track.height);
    brush.font(12, 600);
    const name = timeline.words.fitted(band.run.title, scale.left + OPTIONS_X - TITLE_X - 8, brush.measure);
    brush.text(name, TITLE_X, track.y + 9, colour.text);
    brush.font(11, 400, mono);
    const room = scale.right - scale.left - OPTIONS_X;
    const options = timeline.words.fitted(band.run.options ?? "", room, brush.measure);
    brush.text(options, scale.left + OPTIONS_X, track.y + 9, colour.muted);
  }

  /** Name of a request, and its prompt where there is room for both. */
  function laneLabel(brush, track, selected) {
    const { colour } = brush.theme;
    const { lane, group } = track;
    const long = group === "long";
    brush.font(long ? 11 : 10, long || selected ? 600 : 400);
    const room = timeline.layout.SIZES.gutter - LABEL_X - 6;
    const { UNKNOWN, count, fitted, isolate } = timeline.words;
    const prompt = group === "decode" || lane.prompt_tokens === null ? "" : ` ${count(lane.prompt_tokens)}`;
    const name = lane.name || UNKNOWN;
    const whole = name.length < 60 ? isolate(name) + prompt : "";
    const text = whole && brush.measure(whole) <= room ? whole : fitted(name, room, brush.measure);
    brush.text(text, LABEL_X, track.y + track.height / 2 - 0.5, long || selected ? colour.text : colour.muted);
  }

  function label(brush, track, name, detail) {
    const { colour } = brush.theme;
    brush.font(11);
    brush.text(name, LABEL_X, track.y + 5, colour.text);
    brush.font(10);
    brush.text(detail, LABEL_X, track.y + track.height - 4, colour.muted);
  }

  /** A bracket around the lanes that decode first, where other groups follow. */
  function bracket(brush, band, scale) {
    const decoding = band.tracks.filter((track) => track.group === "decode");
    if (decoding.length < 2 || !band.tracks.some((track) => track.group === "long")) return;
    const { context, theme } = brush;
    const last = decoding[decoding.length - 1];
    const [top, height] = [decoding[0].y, last.y + last.height - decoding[0].y];
    brush.fill(theme.colour.decode, BRACKET_X, top, 2, height - 1);
    if (height < LEAST_BRACKET) return;
    context.save();
    context.translate(BRACKET_X - 8, top + height / 2);
    context.rotate(-Math.PI / 2);
    brush.font(10);
    brush.text("decoding", 0, 0, theme.colour.muted, "center");
    context.restore();
  }

  /** Plates over decoding lanes that say how long they were silent, where they fit and hide no selection. */
  function walls(brush, band, view) {
    const { scale } = view;
    const decoding = band.tracks.filter((track) => track.group === "decode");
    const detail = view.details.get(band.run.key);
    const at = detail ? decoding.findIndex(({ lane }) => lane.rid === detail.rid) : -1;
    const lanes = at >= 0 && at < WALL_LANES ? decoding.slice(at + 1) : decoding;
    if (lanes.length < WALL_LANES) return;
    const pointed = lanes !== decoding && view.gap?.run === band.run.key;
    const taken = pointed ? draw.arrowSpan(brush, scale, detail) : null;
    for (const wall of band.walls) {
      const from = Math.max(scale.x(wall.start_ns), scale.left);
      const to = Math.min(scale.x(wall.end_ns), scale.right);
      brush.font(12, 600);
      const title = brush.measure(wall.title);
      brush.font(10);
      const width = Math.round(Math.max(title, brush.measure(wall.detail)) + 20);
      const room = widest(from, to, taken);
      if (room[1] - room[0] < width + 8) continue;
      plate(brush, wall, Math.round((room[0] + room[1] - width) / 2), lanes[0].y, width, WALL_HEIGHT);
    }
  }

  /** The wider part of an interval that is left beside a taken one. */
  function widest(from, to, taken) {
    if (!taken || taken[1] < from || taken[0] > to) return [from, to];
    return taken[0] - from > to - taken[1] ? [from, taken[0]] : [taken[1], to];
  }

  function plate(brush, wall, x, top, width, height) {
    const { context, theme } = brush;
    context.fillStyle = theme.colour.page;
    context.strokeStyle = theme.colour.stallPrefill;
    context.lineWidth = 1;
    context.beginPath();
    context.roundRect(x + 0.5, top + 0.5, width - 1, height - 1, 4);
    context.fill();
    context.stroke();
    brush.font(12, 600);
    brush.text(wall.title, x + width / 2, top + 9, theme.colour.text, "center");
    brush.font(10);
    brush.text(wall.detail, x + width / 2, top + 22, theme.colour.text, "center");
  }

  function note(brush, scale, track, words) {
    brush.font(12);
    brush.text(words, scale.left + 8, track.y + track.height / 2, brush.theme.colour.muted);
  }

  function failure(brush, band, scale) {
    const { colour } = brush.theme;
    brush.font(12, 600);
    const text = timeline.words.fitted(band.error, scale.right - scale.left - 24, brush.measure);
    brush.plate(text, scale.left + 8, band.y + 20, 18, colour.stallPrefillText, colour.panel);
  }

  draw.band = drawBand;
})();
