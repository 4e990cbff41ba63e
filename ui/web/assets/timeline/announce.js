/* What the timeline says aloud: the visible range once it rests, and the sums of a selection. */
(() => {
  "use strict";
  const timeline = ((globalThis.Chunkscope ??= {}).timeline ??= {});

  const QUIET_MS = 600; // how long the range must rest before it is said

  /** Writes into `live`, an aria-live element; sums are asked for under `base`. */
  function createAnnouncer(base, live) {
    let asking = new AbortController();
    let waiting = null;
    let said = "";

    /** Say what range is shown, once it rests. */
    function range([from, to]) {
      clearTimeout(waiting);
      const step = Math.max(1, 10 ** Math.floor(Math.log10((to - from) / 100)));
      const text = `Showing ${timeline.words.instant(from, step)} to ${timeline.words.instant(to, step)}`;
      if (text === said) return;
      waiting = setTimeout(() => {
        said = live.textContent = text;
      }, QUIET_MS);
    }

    /** Say the sums of an interval of a run; null says that there is none. */
    async function selection(interval, run) {
      asking.abort();
      asking = new AbortController();
      const { signal } = asking;
      if (!interval) {
        live.textContent = "Nothing selected";
        return;
      }
      const [from, to] = interval;
      try {
        const sums = await timeline.ask(`${base}/${run}/sums?t0=${from}&t1=${to}`, signal);
        if (!signal.aborted) live.textContent = `Selected ${sums.text}`;
      } catch (error) {
        if (!signal.aborted) live.textContent = `The selection cannot be summed: ${error.message}`;
      }
    }

    function close() {
      asking.abort();
      clearTimeout(waiting);
    }

    return { range, selection, close };
  }

  timeline.createAnnouncer = createAnnouncer;
})();
