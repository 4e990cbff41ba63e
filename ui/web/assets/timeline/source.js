/* What the bands show: tiles of the runs for a range, laid out, with errors, walls and the lanes that a gap needs. */
(() => {
  "use strict";
  const timeline = ((globalThis.Chunkscope ??= {}).timeline ??= {});

  const MOST_COLUMNS = 4_000;

  /** Asks the server under `base`; `details` are those of the selected gap, by run; `onChange` when more is here. */
  function createSource(base, details, onChange) {
    const { layout } = timeline;
    const store = timeline.createStore(base, onChange);
    const walls = timeline.createWalls(base, onChange);
    const heights = new Map(); // run key -> pixels
    const kept = new Map(); // run key -> requests whose lanes must be there
    let last = [];

    /** The bands of some runs for a range on a plot so many pixels wide. */
    function bands(runs, range, width) {
      last = layout.bands(runs, range, (run) => contentOf(run, range, width), heights).map((band) => {
        const { key } = band.run;
        return { ...band, error: store.error(key), walls: walls.of(key), budget: budgetOf(band.run, runs) };
      });
      return last;
    }

    function contentOf(run, range, width) {
      const window = timeline.viewport.wantedWindow(range, width, [0, run.endNs - run.startNs]);
      const absent = keptLanes(run.key);
      const tile = store.tile(run.key, window, Math.ceil(layout.LANES_A_BAND * window.wider), absent);
      if (tile) walls.load(run.key);
      return { tile, kept: gapLanes(run.key) };
    }

    /** Requests that the gap's outline and arrow need. */
    function gapLanes(key) {
      const detail = details.get(key);
      return detail ? [detail.rid, detail.costliest?.rid].filter((rid) => rid !== undefined) : [];
    }

    /** Those of them that tiles come without unless they are asked for. */
    function keptLanes(key) {
      const before = kept.get(key) ?? [];
      const tile = last.find(({ run }) => run.key === key)?.tile;
      if (!tile) return before;
      const absent = gapLanes(key).filter((rid) => !tile.lanes.some((lane) => lane.rid === rid));
      kept.set(key, [...new Set([...before, ...absent])].sort((a, b) => a - b));
      return kept.get(key);
    }

    return {
      bands,
      /** Forwards of a whole run, or null until they are here. */
      minimap: (key, width) => store.minimap(key, Math.min(MOST_COLUMNS, Math.ceil(width)))?.strip ?? null,
      /** Another gap is selected, which needs other lanes. */
      forgetLanes: () => kept.clear(),
      /** The runs have grown. */
      outdate() {
        store.outdate();
        walls.outdate();
      },
      close() {
        store.close();
        walls.close();
      },
    };
  }

  /** Tokens that a run's forwards are held against: its own budget, else another's, so that bands compare. */
  function budgetOf(run, runs) {
    return run.budgetTokens ?? runs.map((other) => other.budgetTokens).find((tokens) => tokens) ?? null;
  }

  timeline.createSource = createSource;
  timeline.budgetOf = budgetOf;
})();
