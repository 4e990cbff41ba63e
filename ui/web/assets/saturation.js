/* The Saturation page in the browser: sliders, its choices in the address, figures that follow the theme. */
(() => {
  "use strict";

  const SLIDERS = ["itl_max", "itl_p99", "ttft_p99", "decodes"];
  const SETTLED_MS = 60; // a drag moves the slider each frame, and the server chooses anew each time it is told
  const root = document.documentElement;
  const dash = (globalThis.dash_clientside ??= {});
  let wanted = null; // limits as the address writes them, not told yet
  let timer = 0;

  const slider = (key) => document.getElementById(`saturation-${key.replace("_", "-")}`);

  /** The words of each slider's stop; the limits that these stand for go to the server and into the address. */
  function slide(...values) {
    const steps = values.pop();
    const stops = SLIDERS.map((key, at) => steps[key][Number(values[at])]);
    const moved = dash.callback_context.triggered.map(({ prop_id }) => prop_id);
    wanted ??= limitsInAddress();
    const words = SLIDERS.map((key, at) => {
      const input = slider(key);
      const isMoved = input && moved.includes(`${input.id}.value`);
      const shown = isMoved ? stops[at][1] : document.getElementById(`${input?.id}-words`)?.textContent;
      input?.setAttribute("aria-valuetext", shown ?? stops[at][1]);
      if (!isMoved) return dash.no_update; // exact, as the page came
      wanted[key] = stops[at][0];
      return shown;
    });
    timer ||= setTimeout(tell, SETTLED_MS);
    return words;
  }

  /** The limits as they are in the address: exact, where a slider's stop is the nearest. */
  function limitsInAddress() {
    const query = new URLSearchParams(location.search);
    return Object.fromEntries(SLIDERS.filter((key) => query.has(key)).map((key) => [key, query.get(key)]));
  }

  function tell() {
    timer = 0;
    const given = Object.fromEntries(Object.entries(wanted).filter(([, text]) => text));
    write(Object.fromEntries(SLIDERS.map((key) => [key, given[key] ?? null])));
    wanted = null;
    dash.set_props("saturation-limits", { data: given });
  }

  /** Another run is chosen: let nothing of the last one stand beside it until its own words are there. */
  function leave() {
    const answer = document.getElementById("saturation-answer");
    dash.set_props("saturation-answer", { children: answer?.dataset.reading ?? "" });
    for (const part of ["price", "advice", "prices-note", "advice-basis"]) {
      dash.set_props(`saturation-${part}`, { children: "" });
    }
    tables(null, null);
    dash.set_props("saturation-working", { hidden: false });
  }

  /** Write the chosen run, policy and roof into the address, so that a link leads back to them. */
  function remember(run, policy, roof) {
    write({
      ...(Number.isInteger(run) ? { sat: String(run) } : {}),
      policy: policy || null,
      roof: roof === "forwards" ? null : roof,
    });
    return dash.no_update;
  }

  function write(parameters) {
    const url = new URL(location.href);
    for (const [key, text] of Object.entries(parameters)) {
      if (text === null) url.searchParams.delete(key);
      else url.searchParams.set(key, text);
    }
    if (url.href !== location.href) history.replaceState(history.state, "", url);
  }

  /** Draw the price list, that of one policy and that of all. */
  function tables(ofPolicy, ofAll) {
    document.getElementById("saturation-prices")?.replaceChildren(...(ofPolicy ? [table(ofPolicy)] : []));
    document.getElementById("saturation-all-prices")?.replaceChildren(...(ofAll ? [table(ofAll)] : []));
  }

  /** A table of text, never of markup. */
  function table({ caption, heads, rows }) {
    const drawn = element("table", { className: "numbers prices" });
    drawn.append(
      element("caption", { className: "sr-only", textContent: caption }),
      element("thead", {}, element("tr", {}, ...heads.map(head))),
      element("tbody", {}, ...rows.map(row)),
    );
    return drawn;
  }

  function head({ text, metric, title }) {
    const drawn = element("th", { scope: "col", textContent: text, title: title ?? "" });
    if (metric) drawn.dataset.metric = metric;
    else drawn.className = "names";
    return drawn;
  }

  function row({ name, recommended, cells }) {
    const first = element("th", { scope: "row" });
    if (recommended) first.append(mark("▼ ", "recommended:"));
    first.append(name);
    return element("tr", { className: recommended ? "recommended" : "" }, first, ...cells.map(cell));
  }

  function cell({ text, broken }) {
    const drawn = element("td", { textContent: text });
    if (broken) {
      drawn.className = "lost";
      drawn.append(" ", mark("✕", "over the limit"));
    }
    return drawn;
  }

  function mark(glyph, label) {
    const drawn = element("span", { className: "mark", textContent: glyph, role: "img" });
    drawn.setAttribute("aria-label", label);
    return drawn;
  }

  function element(tag, properties, ...children) {
    const made = Object.assign(document.createElement(tag), properties);
    made.append(...children);
    return made;
  }

  /** Figures are drawn on the server, so a new theme is told there. */
  function followTheme() {
    if (document.getElementById("saturation-answer")) {
      dash.set_props("saturation-theme", { data: root.dataset.theme });
    }
  }

  /** `l` leads to the sliders. */
  document.addEventListener("keydown", (event) => {
    if (event.key !== "l" || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target.closest?.("input:not([type=range]), textarea, dialog[open]")) return;
    slider("itl_max")?.focus();
  });

  dash.saturation = { slide, leave, tables, remember };
  new MutationObserver(followTheme).observe(root, { attributeFilter: ["data-theme"] });
})();
