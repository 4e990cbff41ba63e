/* The Saturation page in the browser: its run in the address, and figures that follow the theme. */
(() => {
  "use strict";

  const PARAMETER = "sat";
  const root = document.documentElement;
  const dash = (globalThis.dash_clientside ??= {});

  /** The run that the address names, -1 where it names none; and the theme that figures are to have. */
  function asked() {
    const text = new URLSearchParams(location.search).get(PARAMETER);
    const run = text !== null && /^[0-9]$/.test(text) ? Number(text) : -1;
    return [run, root.dataset.theme ?? dash.no_update];
  }

  /** Write the chosen run into the address, so that a link leads back to it. */
  function remember(run) {
    if (Number.isInteger(run)) {
      const url = new URL(location.href);
      url.searchParams.set(PARAMETER, String(run));
      history.replaceState(history.state, "", url);
    }
    return dash.no_update;
  }

  /** Figures are drawn on the server, so a new theme is told there. */
  function followTheme() {
    if (document.getElementById("saturation-answer")) {
      dash.set_props("saturation-theme", { data: root.dataset.theme });
    }
  }

  dash.saturation = { asked, remember };
  new MutationObserver(followTheme).observe(root, { attributeFilter: ["data-theme"] });
})();
