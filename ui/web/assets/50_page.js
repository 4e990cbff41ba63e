/* Enters a page: joins the timeline, the panels and the address to one another. */
(() => {
  "use strict";
  const Chunkscope = (globalThis.Chunkscope ??= {});
  const { state } = Chunkscope;

  const TIMELINE = "timeline"; // this listener's name as a source of changes
  const CHOICE = ["run", "rid", "tok", "sel"];
  const ALL = ["t0", "t1", "t", ...CHOICE];
  const SETTLED_MS = 100; // a drag changes the selection each frame
  let picture = null;
  let timer = 0;

  /** What the server makes a page of: the address, and the theme that is set. */
  function route() {
    const path = location.pathname === "/" ? "/compare" : location.pathname;
    return { path, search: location.search, theme: document.documentElement.dataset.theme };
  }

  /** To another page, its address bringing the view along. */
  function go(path) {
    Chunkscope.transport.pause();
    state.write();
    history.pushState(null, "", path + location.search);
    globalThis.dash_clientside.set_props("route", { data: route() });
  }

  globalThis.addEventListener("popstate", () => {
    Chunkscope.transport.pause();
    state.drop();
    globalThis.dash_clientside.set_props("route", { data: route() });
  });

  /** Take over what the server made of the address. */
  function enter(started) {
    if (!started) return;
    leave();
    state.load(started);
    document.body.dataset.page = started.page;
    document.body.classList.remove("drawer");
    for (const link of document.querySelectorAll("nav a[data-page]")) {
      if (link.dataset.page === started.page) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    }
    Chunkscope.showCursor();
    Chunkscope.transport.show();
    if (started.page === "/compare") whenThere(TIMELINE, mount);
    if (started.live) Chunkscope.live.start();
  }

  /** React draws the page in its own time. */
  function whenThere(id, act) {
    const element = document.getElementById(id);
    if (element) act(element);
    else requestAnimationFrame(() => whenThere(id, act));
  }

  function mount(element) {
    leave();
    picture = Chunkscope.timeline.create(element, {
      runs: state.facts().bands,
      base: "/api/timeline",
      onChange: seen,
      onPick: () => Chunkscope.transport.pause(),
    });
    picture.set(toPicture(state.get(), ALL));
  }

  function leave() {
    picture?.destroy();
    picture = null;
  }

  /** The picture's words for what changed of the view. */
  function toPicture({ t0, t1, t, run, rid, tok, sel }, changed) {
    const has = (...keys) => keys.some((key) => changed.includes(key));
    return {
      ...(has("t0", "t1") ? { t0, t1 } : {}),
      ...(has("t") ? { cursor: t } : {}),
      ...(has("sel") ? { selection: sel } : {}),
      ...(has("run", "rid", "tok") ? { run, gap: rid === null ? null : { run, rid, tok } } : {}),
    };
  }

  /** Have the panels filled for what is chosen now. */
  function tellChoice() {
    timer = 0;
    const { run, rid, tok, sel } = state.get();
    globalThis.dash_clientside.set_props("choice", { data: { run, rid, tok, sel } });
  }

  /** What the user did in the picture; a gap belongs to the run that is followed, or goes. */
  function seen({ t0, t1, cursor, selection, gap, run }) {
    const kept = gap?.run === run ? gap : null;
    if (gap && !kept) picture.set({ gap: null });
    const patch = { t0, t1, t: cursor ?? state.get().t, sel: selection, run, rid: kept?.rid ?? null, tok: kept?.tok ?? null };
    state.set(patch, TIMELINE);
  }

  state.listen((view, changed, source) => {
    if (source !== TIMELINE) picture?.set(toPicture(view, changed));
    if (changed.includes("t") || changed.includes("run")) Chunkscope.showCursor();
    if (changed.some((key) => CHOICE.includes(key))) timer ||= setTimeout(tellChoice, SETTLED_MS);
  });

  Chunkscope.page = {
    go,
    redrawTheme: () => picture?.redrawTheme(),
    refresh: (bands) => picture?.refresh(bands),
    hasPicture: () => picture !== null,
  };
  globalThis.dash_clientside = Object.assign(globalThis.dash_clientside ?? {}, { chunkscope: { route, enter } });
})();
