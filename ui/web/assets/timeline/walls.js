/* The longest silences of each run, in words; asked for once a run's first picture is there. */
(() => {
  "use strict";
  const timeline = ((globalThis.Chunkscope ??= {}).timeline ??= {});

  /** Asks the server under `base`; `onChange` is called when they came. */
  function createWalls(base, onChange) {
    const known = new Map(); // run key -> walls, empty until they came
    const asking = new AbortController();
    const outdated = new Set();

    async function load(run) {
      if (known.has(run) && !outdated.has(run)) return;
      outdated.delete(run);
      known.set(run, known.get(run) ?? []);
      try {
        known.set(run, await timeline.ask(`${base}/${run}/walls`, asking.signal));
        onChange();
      } catch {
        // The picture is whole without them, and the bands themselves say when the server is gone.
      }
    }

    return {
      load,
      of: (run) => known.get(run) ?? [],
      outdate: () => known.forEach((_, run) => outdated.add(run)),
      close: () => asking.abort(),
    };
  }

  timeline.createWalls = createWalls;
})();
