/* Search: requests by name or forward, over the runs in view; choosing one goes to its longest gap. */
(() => {
  "use strict";
  const Chunkscope = (globalThis.Chunkscope ??= {});
  const { state } = Chunkscope;

  const WAIT_MS = 120;
  const MOST_SHOWN = 40;
  let abort = new AbortController();
  let timer = 0;

  const element = (id) => document.getElementById(id);

  function open() {
    const dialog = element("search");
    if (dialog.open) return;
    dialog.showModal();
    element("search-text").select();
  }

  /** Ask all runs of the page, a little after the last key. */
  function typed() {
    clearTimeout(timer);
    timer = setTimeout(find, WAIT_MS);
  }

  async function find() {
    abort.abort();
    abort = new AbortController();
    const text = element("search-text").value.trim();
    if (!text) return show([], "");
    try {
      const found = (await Promise.all(state.facts().bands.map((run) => ask(run, text, abort.signal)))).flat();
      show(found.slice(0, MOST_SHOWN), found.length ? `${found.length} found` : "nothing of that name");
    } catch (error) {
      if (error.name !== "AbortError") show([], error.message);
    }
  }

  /** What a run has of that name, or its forward of that number: {run, words, go}. */
  async function ask(run, text, signal) {
    const { words, ask } = Chunkscope.timeline;
    if (/^#\d{1,9}$/.test(text)) {
      const found = await ask(`/api/jump/${run.key}?forward=${text.slice(1)}`, signal);
      return found ? [{ run, words: `forward ${text}`, go: () => goTo(run.key, found.t) }] : [];
    }
    const refs = await ask(`/api/timeline/${run.key}/search?q=${encodeURIComponent(text)}`, signal);
    return refs.map((ref) => ({
      run,
      words: `${words.isolate(ref.name)} · prompt ${words.count(ref.prompt_tokens)}`,
      go: () => goToRequest(run.key, ref),
    }));
  }

  function show(found, note) {
    element("search-found").replaceChildren(...found.map(item));
    element("search-note").textContent = note;
  }

  function item({ run, words, go }) {
    const [line, button, letter] = ["li", "button", "b"].map((tag) => document.createElement(tag));
    letter.textContent = run.title.slice(0, 1);
    button.append(letter, ` ${words}`);
    button.addEventListener("click", () => {
      element("search").close();
      void go();
    });
    line.append(button);
    return line;
  }

  /** To the request's longest gap, or to where it arrived when it gave no two tokens. */
  async function goToRequest(run, ref) {
    const gap = await Chunkscope.timeline.ask(`/api/jump/${run}?rid=${ref.rid}`);
    if (gap) return Chunkscope.transport.showGap({ run, ...gap });
    goTo(run, Math.max(0, ref.arrival_ns ?? 0));
    Chunkscope.say("this request gave no two tokens: here it arrived");
  }

  function goTo(run, t) {
    Chunkscope.transport.showGap({ run, rid: null, tok: null, start: t, end: t + 1, t });
  }

  function keydown(event) {
    const buttons = [...element("search-found").querySelectorAll("button")];
    const at = buttons.indexOf(document.activeElement);
    if (event.key === "Enter" && at < 0) buttons[0]?.click();
    else if (event.key === "ArrowDown") buttons[Math.min(at + 1, buttons.length - 1)]?.focus();
    else if (event.key === "ArrowUp") (at > 0 ? buttons[at - 1] : element("search-text")).focus();
    else return;
    event.preventDefault();
  }

  Chunkscope.search = { open, typed, keydown };
})();
