/* The page's keys and buttons. Those of the time axis (W A S D, f, m, Esc) are the timeline's own. */
(() => {
  "use strict";
  const Chunkscope = (globalThis.Chunkscope ??= {});
  const { state } = Chunkscope;

  const ACTS = {
    play: () => Chunkscope.transport.toggle(),
    "step-on": () => Chunkscope.transport.step(1),
    "step-back": () => Chunkscope.transport.step(-1),
    "stall-on": () => Chunkscope.transport.stall(1),
    "stall-back": () => Chunkscope.transport.stall(-1),
    faster: () => Chunkscope.transport.faster(1),
    slower: () => Chunkscope.transport.faster(-1),
    worst: () => Chunkscope.transport.worst(),
    "worst-of": (button) => Chunkscope.transport.worst(Number(button.dataset.run)),
    run: (button) => follow(Number(button.dataset.run)),
    search: () => Chunkscope.search.open(),
    help: () => document.getElementById("help").showModal(),
    theme: () => Chunkscope.panels.toggleTheme(),
    drawer: () => Chunkscope.panels.toggleDrawer(),
    copy: () => Chunkscope.panels.copyLink(),
  };
  const KEYS = {
    " ": "play",
    ArrowRight: "step-on",
    ArrowLeft: "step-back",
    "]": "stall-on",
    "[": "stall-back",
    "+": "faster",
    ".": "faster",
    "-": "slower",
    ",": "slower",
    "/": "search",
    "?": "help",
    t: "theme",
    Enter: "drawer",
  };

  /** Let the state panel follow another run; a gap belongs to its run, and goes. */
  function follow(run) {
    if (run !== state.get().run) state.set({ run, rid: null, tok: null }, "keys");
  }

  function act(name, button) {
    if (!state.get()) return; // nothing is loaded yet
    Promise.resolve(ACTS[name](button)).catch((error) => Chunkscope.say(error.message));
  }

  /** Whether a key belongs to what has the focus: text, a choice, a button for Space and Enter. */
  function taken(event) {
    const target = event.target;
    if (!(target instanceof Element)) return false;
    if (target.closest("input, textarea, select, [contenteditable], .js-plotly-plot")) return true;
    return [" ", "Enter"].includes(event.key) && target.closest("button, summary, a") !== null;
  }

  document.addEventListener("keydown", (event) => {
    if (document.getElementById("search")?.open && event.target.closest("#search")) return Chunkscope.search.keydown(event);
    if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]") || taken(event)) return;
    const run = /^[1-6]$/.test(event.key) ? state.facts()?.bands[Number(event.key) - 1] : undefined;
    if (run) follow(run.key);
    else if (KEYS[event.key]) act(KEYS[event.key]);
    else return;
    event.preventDefault();
  });

  document.addEventListener("input", (event) => {
    if (event.target.id === "search-text") Chunkscope.search.typed();
  });

  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-act]");
    if (button) return act(button.dataset.act, button);
    const link = event.target.closest("a[data-page]");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    Chunkscope.page.go(link.dataset.page);
  });
})();
