/* Details of the selected gap, and of the longest one of the same request in the other runs. */
(() => {
  "use strict";
  const timeline = ((globalThis.Chunkscope ??= {}).timeline ??= {});

  /** Asks the server under `base`; `onChange` is called when details came or went. */
  function createGaps(base, onChange) {
    const details = new Map(); // run key -> detail
    let asking = new AbortController();

    /** Load the details of a gap {run, rid, tok}; null forgets them. */
    async function choose(gap, runs) {
      asking.abort();
      asking = new AbortController();
      const { signal } = asking;
      details.clear();
      onChange();
      if (!gap) return;
      const query = `rid=${gap.rid}&tok=${gap.tok}`;
      const load = async (run, url) => {
        const detail = await quietly(timeline.ask(url, signal));
        if (signal.aborted || !detail) return;
        details.set(run, detail);
        onChange();
      };
      await load(gap.run, `${base}/${gap.run}/gap?${query}`);
      if (!details.has(gap.run)) return;
      const others = runs.filter((run) => run.key !== gap.run);
      await Promise.all(others.map(({ key }) => load(key, `${base}/${key}/longest?like=${gap.run}&${query}`)));
    }

    /** The gap of a request around an instant, or null where it has none. */
    async function around(run, rid, ns) {
      const detail = await quietly(timeline.ask(`${base}/${run}/gap?rid=${rid}&t=${Math.round(ns)}`));
      return detail && { run, rid, tok: detail.token_index };
    }

    return { details, choose, around, close: () => asking.abort() };
  }

  /** The answer, or null: a gap that is not there is no fault, and one that cannot be had is not drawn. */
  async function quietly(promise) {
    try {
      return await promise;
    } catch {
      return null;
    }
  }

  timeline.createGaps = createGaps;
})();
