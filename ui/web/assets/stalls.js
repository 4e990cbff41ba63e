/* Lines that lead somewhere: a stall to its gap on the Stalls page, a chunk or culprit to its instant in Compare. */
(() => {
  "use strict";
  const Chunkscope = (globalThis.Chunkscope ??= {});
  const { state } = Chunkscope;
  const dash = (globalThis.dash_clientside ??= {});
  const root = document.documentElement;
  const CHOICE = ["run", "rid", "tok"];
  const ORDER = "order"; // of the worst stalls, in the address
  const isHere = () => state.facts()?.page === "/stalls";
  let chosen = false; // a gap on this page, which it does not show yet

  /** Follow the view: another gap, or another run with its worst one. */
  state.listen((view, changed) => {
    if (!isHere() || !changed.some((key) => CHOICE.includes(key))) return;
    const { run, rid, tok } = view;
    dash.set_props("stalls-asked", { data: { run, rid, tok } });
  });

  /** Choose the gap that stands for a row; where it lies is known once the page shows it. */
  function choose(row) {
    const [rid, tok] = [Number(row.dataset.rid), Number(row.dataset.tok)];
    chosen = true;
    state.set({ rid, tok }, "stalls");
  }

  /** Have the cursor and the range of other pages go where the gap is that was chosen here. */
  function follow(shown) {
    if (chosen && shown) {
      Chunkscope.transport.showGap(shown);
      requestAnimationFrame(refocus);
    }
    chosen = false;
    return dash.no_update;
  }

  /** To the instant of a link: within Compare without a new page, else by its address. */
  function lead(link) {
    const url = new URL(link.href);
    const number = (key) => (url.searchParams.has(key) ? Number(url.searchParams.get(key)) : null);
    if (state.facts()?.page === url.pathname && url.searchParams.has("t")) {
      const [run, rid, tok, t] = ["run", "rid", "tok", "t"].map(number);
      return Chunkscope.transport.showGap({ run, rid, tok, start: t, end: t + 1, t });
    }
    const theme = new URLSearchParams(location.search).get("theme");
    if (theme) url.searchParams.set("theme", theme);
    Chunkscope.transport.pause();
    state.write();
    history.pushState(null, "", url);
    dash.set_props("route", { data: dash.chunkscope.route() });
  }

  document.addEventListener("click", (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    const link = event.target.closest("a[data-instant]");
    if (link) {
      event.preventDefault();
      return lead(link);
    }
    const head = event.target.closest("[data-sort]");
    if (head) return sort(head.dataset.sort);
    const row = event.target.closest("main.stalls [data-tok]");
    if (row) choose(row);
  });

  const leads = (row) => row.querySelector("button, a"); // what has the focus where a row has it
  const rowsOf = (list) => [...(list?.querySelectorAll("tr") ?? [])].filter(leads);
  const worst = () => rowsOf(document.querySelector("#stalls-worst tbody"));
  const isShown = (row) => row.classList.contains("selected");

  /** To the next row, or the one before, of the list with the focus; else of the worst stalls, from the one shown. */
  function step(by, focused) {
    const all = focused ? rowsOf(focused.parentElement) : worst();
    const at = focused ? all.indexOf(focused) : all.findIndex(isShown);
    const row = all[Math.min(all.length - 1, Math.max(0, at + by))];
    if (row) leads(row).focus();
    return row !== undefined;
  }

  /** The list is drawn anew with each choice, which takes the focus from the row that had it. */
  function refocus() {
    const row = worst().find(isShown);
    if (row && document.activeElement === document.body) leads(row).focus({ preventScroll: true });
  }

  /** Choose the worst stall that is shown, else the first; where a row has the focus, its own button or link does. */
  function enter(target) {
    if (target.closest("a, button, summary")) return false;
    const all = worst();
    const row = all.find(isShown) ?? all[0];
    if (row) choose(row);
    if (row) leads(row).focus();
    return row !== undefined;
  }

  /** Whether a key belongs to what has the focus: text, a chart, a table that scrolls. */
  function taken({ ctrlKey, metaKey, altKey, target }) {
    if (ctrlKey || metaKey || altKey || document.querySelector("dialog[open]")) return true;
    return !(target instanceof Element) || target.closest("input, textarea, select, .js-plotly-plot, .scroll") !== null;
  }

  /** Before the keys that all pages share. */
  function keydown(event) {
    if (!isHere() || taken(event)) return;
    const { key, target } = event;
    const by = { ArrowDown: 1, ArrowUp: -1 }[key];
    const done = by ? step(by, target.closest("main.stalls tbody tr")) : key === "Enter" && enter(target);
    if (!done) return;
    event.preventDefault();
    event.stopPropagation();
  }

  document.addEventListener("keydown", keydown, true);

  /** The order of the worst stalls that the address names. */
  function order() {
    return new URLSearchParams(location.search).get(ORDER) === "lost" ? "lost" : "late";
  }

  function sort(by) {
    const url = new URL(location.href);
    state.put(url, ORDER, by === "lost" ? by : null);
    history.replaceState(history.state, "", url);
    dash.set_props("stalls-order", { data: by });
  }

  /** The picture is drawn on the server, so a new theme is told there. */
  function followTheme() {
    if (document.getElementById("stalls-answer")) dash.set_props("stalls-theme", { data: root.dataset.theme });
  }

  dash.stalls = { order, follow };
  new MutationObserver(followTheme).observe(root, { attributeFilter: ["data-theme"] });
})();
