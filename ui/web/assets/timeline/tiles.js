/* Tiles of the runs: fetched once, kept while recently used, the last one drawn until the wanted one is here. */
(() => {
  "use strict";
  const timeline = ((globalThis.Chunkscope ??= {}).timeline ??= {});

  const KEPT = 24; // tiles, of all runs
  const RETRY_MS = 2_000;

  /** Fetches from `base`; `onChange` is called when a tile or an error came. */
  function createStore(base, onChange) {
    const kept = new Map(); // by URL, the least recently used first
    const latest = new Map(); // run key -> the last tile that came
    const pending = new Map(); // run key and kind -> {url, abort}
    const errors = new Map(); // run key -> one line
    let generation = 0;
    let closed = false;

    /** The tile at a URL if it is here, else the last one of that slot while it is fetched. */
    function want(slot, url) {
      const found = kept.get(url);
      if (found) {
        kept.delete(url);
        kept.set(url, found);
        latest.set(slot, found);
        return found;
      }
      if (pending.get(slot)?.url !== url) load(slot, url);
      return latest.get(slot) ?? null;
    }

    async function load(slot, url) {
      pending.get(slot)?.abort.abort();
      const mine = { url, abort: new AbortController() };
      const asked = generation;
      pending.set(slot, mine);
      try {
        const response = await fetch(url, { signal: mine.abort.signal });
        if (!response.ok) throw new Error(await refusal(response));
        const tile = timeline.decode(await response.arrayBuffer());
        if (closed || pending.get(slot) !== mine) return;
        latest.set(slot, tile);
        errors.delete(slot);
        if (asked === generation) keep(url, tile);
        pending.delete(slot);
        onChange();
      } catch (error) {
        if (closed || mine.abort.signal.aborted) return;
        errors.set(slot, `cannot load the picture (${error.message}); trying again`);
        onChange();
        setTimeout(() => {
          if (pending.get(slot) === mine) pending.delete(slot);
          if (!closed) onChange();
        }, RETRY_MS);
      }
    }

    function keep(url, tile) {
      kept.set(url, tile);
      if (kept.size > KEPT) kept.delete(kept.keys().next().value);
    }

    return {
      /** The tile of a run for a window, or an older one, or null. */
      tile(run, window, lanes, keepRids) {
        const kept = keepRids.length ? `&keep=${keepRids.join(",")}` : "";
        const shown = `&lanes=${lanes}&lanes_t0=${window.lanes[0]}&lanes_t1=${window.lanes[1]}${kept}`;
        const query = `t0=${window.t0}&t1=${window.t1}&columns=${window.columns}${shown}`;
        return want(`tile ${run}`, `${base}/${run}/tile?${query}`);
      },
      /** The strip of a whole run, or an older one, or null. */
      minimap: (run, columns) => want(`minimap ${run}`, `${base}/${run}/minimap?columns=${columns}`),
      /** Why a run's tile did not come, or null. */
      error: (run) => errors.get(`tile ${run}`) ?? null,
      /** Forget what a growing run has outgrown; the last tiles stay until newer ones come. */
      outdate() {
        generation += 1;
        kept.clear();
        for (const { abort } of pending.values()) abort.abort();
        pending.clear();
      },
      close() {
        closed = true;
        for (const { abort } of pending.values()) abort.abort();
      },
    };
  }

  /** The answer to a JSON query; throws an Error with the server's one line. */
  async function ask(url, signal) {
    const response = await fetch(url, { signal });
    if (!response.ok) throw new Error(await refusal(response));
    return response.json();
  }

  async function refusal(response) {
    try {
      return (await response.json()).error;
    } catch {
      return `HTTP ${response.status}`;
    }
  }

  timeline.createStore = createStore;
  timeline.ask = ask;
})();
