/* The state panel, the cursor's time, the drawer, and the page's one line of notes. */
(() => {
  "use strict";
  const Chunkscope = (globalThis.Chunkscope ??= {});
  const { state } = Chunkscope;

  const LEAST_MS = 100; // between two questions for the state while the cursor moves
  const NOTE_MS = 4_000;
  let asking = false;
  let stale = false;
  let noted = 0;

  /** One line for the person, for a while. */
  function say(text) {
    const note = document.getElementById("state-note");
    if (!note) return;
    clearTimeout(noted);
    note.textContent = text;
    noted = setTimeout(() => (note.textContent = ""), NOTE_MS);
  }

  /** Show the cursor's time now, and the scheduler's state as soon as the server has told it. */
  function showCursor() {
    const { t, run } = state.get();
    const text = `${(t / 1e9).toFixed(3)} s`;
    for (const id of ["cursor-time", "chip-time"]) document.getElementById(id).textContent = text;
    for (const button of document.querySelectorAll('[data-act="run"]')) {
      button.setAttribute("aria-pressed", String(Number(button.dataset.run) === run));
    }
    stale = true;
    if (!asking) void refresh();
  }

  async function refresh() {
    asking = true;
    while (stale) {
      stale = false;
      const { t, run } = state.get();
      const asked = performance.now();
      try {
        const answer = await Chunkscope.timeline.ask(`/api/state/${run}?t=${Math.round(t)}`);
        draw(answer, run);
      } catch (error) {
        const lost = error instanceof TypeError; // what fetch gives when nobody answers
        say(lost ? "the server does not answer: start chunkscope web again" : error.message);
        document.getElementById("state-lines").replaceChildren();
      }
      if (stale) await new Promise((done) => setTimeout(done, Math.max(0, LEAST_MS - (performance.now() - asked))));
    }
    asking = false;
  }

  /** The lines as they are told: text, never markup. */
  function draw({ t, lines }, run) {
    const body = document.getElementById("state-lines");
    body.replaceChildren(
      ...lines.map(([label, value, explained]) => {
        const row = document.createElement("tr");
        const [head, cell] = ["th", "td"].map((tag) => document.createElement(tag));
        head.scope = "row";
        head.textContent = label;
        head.title = explained;
        cell.textContent = value;
        row.append(head, cell);
        return row;
      }),
    );
    body.dataset.t = String(t);
    body.dataset.run = String(run);
  }

  /** Open or close the panel where it has no place of its own. */
  function toggleDrawer() {
    if (!document.getElementById("chip").offsetParent) return;
    const open = document.body.classList.toggle("drawer");
    document.getElementById("chip").setAttribute("aria-expanded", String(open));
  }

  async function copyLink() {
    state.write();
    try {
      await navigator.clipboard.writeText(location.href);
      say("the address of this view is copied");
    } catch {
      say("the browser does not let the page copy: take the address from its bar");
    }
  }

  function toggleTheme() {
    const root = document.documentElement;
    root.dataset.theme = root.dataset.theme === "dark" ? "light" : "dark";
    const url = new URL(location.href);
    state.put(url, "theme", root.dataset.theme);
    history.replaceState(history.state, "", url);
    Chunkscope.page.redrawTheme();
  }

  Object.assign(Chunkscope, { say, showCursor, panels: { toggleDrawer, copyLink, toggleTheme } });
})();
