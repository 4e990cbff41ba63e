/* The time cursor: play, pause, speed, step by forward, jump to stalls and gaps. */
(() => {
  "use strict";
  const Chunkscope = (globalThis.Chunkscope ??= {});
  const { state } = Chunkscope;

  const SPEEDS = [0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100]; // nanoseconds of the run in one of the clock
  const AHEAD = 0.1; // of the range that lies before the cursor after a turn of the page
  const AROUND = 1.6; // times a gap's length that are shown where it would not fit
  let speed = SPEEDS.indexOf(1);
  let frame = 0;
  let last = 0;

  function toggle() {
    if (frame) return pause();
    const view = state.get();
    if (!view) return;
    if (view.t >= state.endOf(view.run)) state.set({ t: 0 }, "transport");
    last = performance.now();
    frame = requestAnimationFrame(tick);
    show();
  }

  function pause() {
    cancelAnimationFrame(frame);
    frame = 0;
    show();
  }

  function tick(now) {
    const view = state.get();
    const end = state.endOf(view.run);
    const t = Math.min(end, Math.round(view.t + (now - last) * 1e6 * SPEEDS[speed]));
    last = now;
    moveTo(t);
    if (t >= end && !state.facts().live) return pause();
    frame = requestAnimationFrame(tick);
  }

  /** Set the cursor, and turn the page where it leaves the range. */
  function moveTo(t, more = {}) {
    const { t0, t1 } = state.get();
    const span = t1 - t0;
    const last = Math.max(0, state.endOf(state.get().run) + 1 - span); // beyond it lies nothing
    const start = Math.min(last, Math.max(0, Math.round(t - AHEAD * span)));
    const range = t < t0 || t > t1 ? { t0: start, t1: start + span } : {};
    state.set({ t, ...range, ...more }, "transport");
  }

  function faster(by) {
    speed = Math.min(SPEEDS.length - 1, Math.max(0, speed + by));
    show();
  }

  /** Show what the buttons now do. */
  function show() {
    const button = document.getElementById("do-play");
    const output = document.getElementById("speed");
    if (!button || !output) return;
    button.textContent = frame ? "❚❚" : "▶";
    button.setAttribute("aria-label", frame ? "pause" : "play");
    button.setAttribute("aria-pressed", String(frame !== 0));
    output.textContent = `${SPEEDS[speed]}×`;
  }

  /** To where the next (1) or previous (-1) forward of the followed run starts. */
  async function step(by) {
    pause();
    const { run, t } = state.get();
    const found = await Chunkscope.timeline.ask(`/api/timeline/${run}/step?t=${Math.round(t)}&by=${by}`);
    if (found.t === null) return Chunkscope.say(by > 0 ? "no later forward" : "no earlier forward");
    moveTo(found.t);
  }

  /** To the next (1) or previous (-1) listed stall of the followed run. */
  async function stall(by) {
    pause();
    const { run, t } = state.get();
    const found = await Chunkscope.timeline.ask(`/api/timeline/${run}/stall?t=${Math.round(t)}&by=${by}`);
    if (!found) return Chunkscope.say(by > 0 ? "no later stall is listed" : "no earlier stall is listed");
    showGap({ run, rid: found.rid, tok: found.tok, start: found.start_ns, end: found.end_ns, t: found.start_ns });
  }

  /** Select a gap, and bring it into view if it is not. */
  function showGap({ run, rid, tok, start, end, t }) {
    const { t0, t1 } = state.get();
    const seen = start >= t0 && end <= t1;
    const span = Math.max(t1 - t0, Math.round((end - start) * AROUND));
    const from = Math.max(0, Math.round((start + end - span) / 2));
    state.set({ run, rid, tok, t, ...(seen ? {} : { t0: from, t1: from + span }) }, "transport");
  }

  /** To the longest gap of a run, or of all. */
  function worst(run) {
    const { bands, worst: ofAll } = state.facts();
    const gap = run === undefined ? ofAll : bands.find((band) => band.key === run)?.worst;
    if (gap) showGap(gap);
    else Chunkscope.say("no request gave two tokens");
  }

  Chunkscope.transport = { toggle, pause, faster, step, stall, worst, showGap, show };
})();
