/* Follows growing traces: asks the server each second, and keeps the end in view unless the person moved away. */
(() => {
  "use strict";
  const Chunkscope = (globalThis.Chunkscope ??= {});
  const { state } = Chunkscope;

  const EACH_MS = 1_000;
  const NEAR = 0.02; // of the range: the end counts as in view when it is that near
  let timer = 0;
  let version = null;

  function start() {
    clearTimeout(timer);
    timer = setTimeout(poll, 0);
  }

  async function poll() {
    let going = true;
    try {
      const answer = await Chunkscope.timeline.ask("/api/live");
      going = answer.live;
      badge(answer.words, answer.live);
      if (answer.version !== version) grown(answer);
    } catch (error) {
      badge(`cannot ask the server: ${error.message}`, false);
    }
    timer = going || version === null ? setTimeout(poll, EACH_MS) : 0;
  }

  function badge(words, live) {
    const element = document.getElementById("live-badge");
    element.hidden = false;
    element.textContent = words;
    element.classList.toggle("on", live);
  }

  /** New data: tell the picture, move on with the end, and have the sentences and the table renewed. */
  function grown({ version: now, bands, worst }) {
    const before = end(state.facts().bands);
    const { t0, t1, t } = state.get();
    const following = version === null || t1 >= before - NEAR * (t1 - t0);
    version = now;
    state.learn({ bands, worst });
    Chunkscope.page.refresh(bands);
    const after = end(bands);
    if (following && after > before) {
      const from = t0 <= 0 ? 0 : t0 + after - before;
      state.set({ t0: from, t1: after, ...(t >= before ? { t: after } : {}) }, "live");
    }
    if (Chunkscope.page.hasPicture()) globalThis.dash_clientside.set_props("compare-version", { data: now });
  }

  function end(bands) {
    return Math.max(1, ...bands.map((band) => band.endNs));
  }

  Chunkscope.live = { start };
})();
