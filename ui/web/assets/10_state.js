/* What the page shows: range, cursor, run, gap and selection; told to whoever listens, and kept in the address. */
(() => {
  "use strict";
  const Chunkscope = (globalThis.Chunkscope ??= {});

  const WRITE_MS = 250; // browsers refuse an address that changes more often for long
  const NUMBERS = ["t0", "t1", "t", "run", "rid", "tok"];
  const listeners = new Set();
  let view = null; // {t0, t1, t, run, rid, tok, sel}: nanoseconds since the runs' start, null is none
  let facts = null; // what does not change by looking: page, bands, runs, worst gap, live
  let timer = 0;

  /** Start from what the server made of the address. */
  function load(started) {
    const { t0, t1, t, run, rid, tok, sel, ...rest } = started;
    view = { t0, t1, t, run, rid, tok, sel };
    facts = rest;
  }

  /** Change some of the view; `source` is named to the listeners, so that none hears its own change. */
  function set(patch, source) {
    if (!view) return;
    const changed = Object.keys(patch).filter((key) => !same(patch[key], view[key]));
    if (!changed.length) return;
    view = { ...view, ...patch };
    timer ||= setTimeout(write, WRITE_MS);
    for (const listener of listeners) listener(view, changed, source);
  }

  function same(a, b) {
    return a === b || (Array.isArray(a) && Array.isArray(b) && a[0] === b[0] && a[1] === b[1]);
  }

  /** Put the view into the address now; parameters of others stay as they are. */
  function write() {
    drop();
    if (!view) return;
    const url = new URL(location.href);
    for (const key of NUMBERS) put(url, key, view[key] === null ? null : String(Math.round(view[key])));
    put(url, "sel", view.sel && view.sel.map(Math.round).join("-"));
    history.replaceState(history.state, "", url);
  }

  function put(url, key, value) {
    if (value === null) url.searchParams.delete(key);
    else url.searchParams.set(key, value);
  }

  /** Forget what is not in the address yet: another address holds. */
  function drop() {
    clearTimeout(timer);
    timer = 0;
  }

  /** The end of a run on the shared clock. */
  function endOf(run) {
    return facts.bands.find((band) => band.key === run)?.endNs ?? Math.max(...facts.bands.map((band) => band.endNs));
  }

  Chunkscope.state = {
    load,
    set,
    write,
    drop,
    put,
    endOf,
    get: () => view,
    facts: () => facts,
    learn: (more) => (facts = { ...facts, ...more }),
    listen: (listener) => listeners.add(listener),
  };
})();
