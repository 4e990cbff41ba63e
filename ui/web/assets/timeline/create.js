/*
 * The timeline of one or more runs on one clock: Chunkscope.timeline.create(element, options) -> view.
 *
 * Times are whole nanoseconds since each run's own start. `options` are {runs, base, onChange, onPick}; a run is
 * {key, title, options, startNs, endNs, budgetTokens, maxTokens}, its key the index in the server's routes.
 * The state is {t0, t1, cursor, selection: [from, to] | null, gap: {run, rid, tok} | null, run}. onChange gets it
 * at most once a frame, and only for what the user did here; onPick gets {run, kind, rid, tok, forwardId, t}.
 */
(() => {
  "use strict";
  const timeline = ((globalThis.Chunkscope ??= {}).timeline ??= {});

  const SLACK_PIXELS = 3;
  const LONGEST_FRAME_MS = 100;

  function create(element, options) {
    const { base, onChange = () => {}, onPick = () => {} } = options;
    const calm = globalThis.matchMedia("(prefers-reduced-motion: reduce)");
    const scene = timeline.createScene(element, "Timeline of the runs. W and S zoom, A and D pan, f fits, m marks.");
    const gaps = timeline.createGaps(base, () => redraw());
    const source = timeline.createSource(base, gaps.details, () => redraw());
    const announcer = timeline.createAnnouncer(base, scene.live);
    const { viewport } = timeline;
    let runs = options.runs;
    let extent = extentOf(runs);
    const now = { range: extent, cursor: null, selection: null, gap: null, run: runs[0].key };
    let shown = now.range;
    let bands = [];
    let hover = null; // the pointer's {x, y} over the plot
    let mark = null; // an instant that distances are measured from
    const dirty = { bands: true, changed: false, drawn: false };
    let frameId = null;
    let last = null;

    const actions = {
      eased: () => !calm.matches,
      plotLeft: () => timeline.layout.SIZES.gutter,
      zoomBy(factor, x = hover?.x) {
        const scale = scene.scaleOf(now.range);
        const inside = x !== undefined && x >= scale.left && x <= scale.right;
        show(viewport.zoom(now.range, scale.ns(inside ? x : (scale.left + scale.right) / 2), factor, extent));
      },
      panPixels(pixels, atOnce = false) {
        show(viewport.pan(now.range, pixels * scene.scaleOf(now.range).nsPerPixel, extent), atOnce);
      },
      boxPixels: () => now.range.map(scene.scaleOf(extent).x),
      showBox(x0, x1) {
        const whole = scene.scaleOf(extent);
        show(viewport.clamp([whole.ns(x0), whole.ns(x1)], extent), true);
      },
      fit() {
        const { selection, range } = now;
        show(selection && !equal(selection, range) ? viewport.clamp(selection, extent) : extent);
      },
      mark() {
        const at = hovered() ?? now.cursor;
        mark = at === null || at === mark ? null : at;
        schedule();
      },
      clear() {
        mark = null;
        choose({ selection: null, gap: null });
      },
      select(x0, x1, done) {
        const scale = scene.scaleOf(shown);
        const [from, to] = [x0, x1].map((x) => scale.ns(Math.min(Math.max(x, scale.left), scale.right)));
        const interval = [Math.round(Math.min(from, to)), Math.round(Math.max(from, to))];
        if (interval[1] > interval[0]) choose({ selection: interval }, done);
      },
      hover(x, y) {
        const scale = scene.scaleOf(shown);
        hover = x >= scale.left && x <= scale.right ? { x, y } : null;
        schedule();
      },
      leave() {
        hover = null;
        schedule();
      },
      click: (x, y) => pick(x, y),
    };
    const input = timeline.listen(scene.head, scene.over, actions);
    const resizing = new ResizeObserver(() => redraw());
    resizing.observe(scene.root);

    /** Show a range that the user chose. */
    function show(range, atOnce = false) {
      now.range = range;
      if (atOnce) shown = range;
      dirty.changed = dirty.bands = true;
      schedule();
    }

    /** Take what the user chose; sums are asked for unless more is coming. */
    function choose(changes, done = true) {
      apply(changes, done);
      dirty.changed = true;
      schedule();
    }

    function apply(changes, done = true) {
      const news = Object.keys(changes).filter((key) => !equal(changes[key], now[key]));
      Object.assign(now, changes);
      if ("selection" in changes && done && (news.includes("selection") || news.length === 0)) {
        announcer.selection(now.selection, now.run);
      }
      if (news.includes("gap")) {
        source.forgetLanes();
        gaps.choose(now.gap, runs);
      }
      dirty.bands ||= news.includes("gap") || news.includes("run");
    }

    async function pick(x, y) {
      const { band, track } = timeline.hit.trackAt(bands, y);
      if (!band) return;
      const scale = scene.scaleOf(shown);
      const t = Math.round(Math.min(Math.max(scale.ns(x), extent[0]), extent[1]));
      const picked = timeline.pickAt(band, track, x < scale.left ? null : t, SLACK_PIXELS * scale.nsPerPixel);
      const changes = { run: band.run.key };
      if (x >= scale.left) changes.cursor = picked.t;
      if (picked.kind === "lane" && x >= scale.left) {
        const gap = await gaps.around(band.run.key, picked.rid, t);
        if (gap) Object.assign(picked, { kind: "gap", tok: gap.tok });
      }
      if (picked.kind === "gap") changes.gap = { run: picked.run, rid: picked.rid, tok: picked.tok };
      choose(changes);
      if (picked.kind) onPick(picked);
    }

    function redraw() {
      dirty.bands = true;
      schedule();
    }

    function schedule() {
      frameId ??= requestAnimationFrame(frame);
    }

    function frame(time) {
      frameId = null;
      const elapsed = last === null ? 16 : Math.min(time - last, LONGEST_FRAME_MS);
      last = time;
      if (input.held()) input.step(elapsed);
      if (!equal(shown, now.range)) {
        shown = calm.matches || !dirty.drawn ? now.range : viewport.ease(shown, now.range, elapsed);
        dirty.bands = true;
      }
      if (scene.measure()) paint();
      if (dirty.changed) {
        dirty.changed = false;
        announcer.range(now.range);
        onChange(state());
      }
      if (input.held() || !equal(shown, now.range)) schedule();
      else last = null;
    }

    function paint() {
      if (dirty.bands) bands = source.bands(runs, now.range, scene.plotWidth());
      const focused = runs.find((run) => run.key === now.run) ?? runs[0];
      const model = {
        ...now, range: shown, extent, bands, runs: runs.length, hover: hovered(), mark,
        strip: source.minimap(focused.key, scene.plotWidth()), largest: timeline.budgetOf(focused, runs),
        details: gaps.details,
      };
      scene.draw(model, dirty.bands);
      dirty.bands = false;
      dirty.drawn = true;
      tip();
    }

    function hovered() {
      return hover && scene.scaleOf(shown).ns(hover.x);
    }

    function tip() {
      const at = hover ? timeline.hit.trackAt(bands, hover.y) : {};
      const slack = SLACK_PIXELS * scene.scaleOf(shown).nsPerPixel;
      const lines = timeline.tooltip.describe(at.band, at.track, hovered(), slack);
      timeline.tooltip.place(scene.tooltip, lines, hover?.x ?? 0, hover?.y ?? 0, scene.bodyBox);
    }

    function state() {
      const [t0, t1] = now.range;
      return { t0, t1, cursor: now.cursor, selection: now.selection, gap: now.gap, run: now.run };
    }

    /** Take a part of the state from outside; onChange is not called. */
    function set(changes) {
      const { t0 = now.range[0], t1 = now.range[1] } = changes;
      const known = ["cursor", "selection", "gap", "run"].filter((key) => changes[key] !== undefined);
      apply(Object.fromEntries(known.map((key) => [key, changes[key]])));
      now.range = viewport.clamp([t0, t1], extent);
      schedule();
    }

    /** Take runs that have grown; a range that showed the whole goes on to show it. */
    function refresh(grown) {
      const whole = equal(now.range, extent);
      runs = grown;
      extent = extentOf(runs);
      now.range = whole ? extent : viewport.clamp(now.range, extent);
      source.outdate();
      redraw();
    }

    function destroy() {
      input.stop();
      resizing.disconnect();
      for (const part of [source, gaps, announcer]) part.close();
      cancelAnimationFrame(frameId);
      scene.remove();
    }

    function redrawTheme() {
      scene.measure(true);
      redraw();
    }

    schedule();
    return { set, state, refresh, redrawTheme, destroy };
  }

  function extentOf(runs) {
    return timeline.viewport.clamp([0, Math.max(0, ...runs.map((run) => run.endNs - run.startNs))], [0, Infinity]);
  }

  /** Whether two parts of the state say the same: numbers, intervals, gaps, or nothing. */
  function equal(a, b) {
    return JSON.stringify(a) === JSON.stringify(b);
  }

  timeline.create = create;
})();
