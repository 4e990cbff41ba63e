/* The Overview page in the browser: the arrows choose a stall, Enter opens its ledger, all of it in the address. */
(() => {
  "use strict";
  const Chunkscope = (globalThis.Chunkscope ??= {});
  const { state } = Chunkscope;
  const dash = (globalThis.dash_clientside ??= {});
  const root = document.documentElement;

  const PATH = "/overview";
  const STEPS = { ArrowDown: 1, "]": 1, ArrowUp: -1, "[": -1 };
  const LATER = ["price", "findings", "findings-note", "checks"]; // of the run left: they come after all else
  const SOURCE = "overview"; // this listener's name as a source of changes

  const isHere = () => state.facts()?.page === PATH;
  const rows = () => [...document.querySelectorAll("#overview-stalls tbody tr")];

  /** Mark a row's stall, and put its gap into the address. */
  function choose(row) {
    for (const each of rows()) each.removeAttribute("aria-current");
    row.setAttribute("aria-current", "true");
    const [rid, tok] = row.dataset.gap.split(",").map(Number);
    const [run, start, end] = [row.dataset.run, row.dataset.start, row.dataset.end].map(Number);
    Chunkscope.transport.showGap({ run, rid, tok, start, end, t: start });
  }

  /** To the next row, or the one before. */
  function step(by) {
    const all = rows();
    const at = all.findIndex((row) => row.hasAttribute("aria-current"));
    const row = all[Math.min(all.length - 1, Math.max(0, at + by))];
    row?.querySelector("a").focus(); // which chooses it
  }

  /** Whether a key belongs to what has the focus. */
  function taken(event) {
    const target = event.target;
    if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return true;
    if (!(target instanceof Element)) return false;
    if (target.closest("input, textarea, select, .js-plotly-plot")) return true;
    return event.key === "Enter" && target.closest("a, button, summary") !== null;
  }

  /** Before the keys that all pages share. */
  function keydown(event) {
    if (!isHere() || taken(event)) return;
    if (event.key in STEPS) step(STEPS[event.key]);
    else if (event.key === "Enter") document.querySelector("#overview-stalls tr[aria-current] a")?.click();
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  document.addEventListener("keydown", keydown, true);

  document.addEventListener("focusin", (event) => {
    const row = event.target.closest?.("#overview-stalls tbody tr");
    if (row && !row.hasAttribute("aria-current")) choose(row);
  });

  /** A row is as good as its link. */
  document.addEventListener("click", (event) => {
    const row = event.target.closest("#overview-stalls tbody tr");
    if (row && !event.target.closest("a")) row.querySelector("a").click();
  });

  /** A run was chosen on the page: its worst stall is the one that other pages show. */
  function follow(run) {
    for (const part of LATER) dash.set_props(`overview-${part}`, { children: "" });
    if (isHere() && state.get().run !== run) state.set({ run, rid: null, tok: null }, SOURCE);
    return dash.no_update;
  }

  state.listen(({ run }, changed, source) => {
    if (isHere() && source !== SOURCE && changed.includes("run")) dash.set_props("overview-run", { value: run });
  });

  /** The picture is drawn on the server, so a new theme is told there. */
  function followTheme() {
    if (document.getElementById("overview-answer")) dash.set_props("overview-theme", { data: root.dataset.theme });
  }

  dash.overview = { follow };
  new MutationObserver(followTheme).observe(root, { attributeFilter: ["data-theme"] });
})();
