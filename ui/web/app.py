"""The Dash application: traces in, a server with the pages of `PAGES` out."""

import threading
from collections.abc import Collection, Sequence
from typing import Any

import dash
from dash import ClientsideFunction, Input, Output
from dash.development.base_component import Component
from flask import Flask, redirect, request
from werkzeug.wrappers import Response as BaseResponse

from profiler.timeline.timeline import Timeline
from traces.errors import TraceError
from ui.web.checks import Checks
from ui.web.cursor_api import register_cursor
from ui.web.gap_panel import gap_panel
from ui.web.guards import guard
from ui.web.layout import notices, shell
from ui.web.live import Follower, band, register_live
from ui.web.pages import compare, overview, saturation, stalls, trace
from ui.web.pages.saturation_evidence import EvidenceOf
from ui.web.places import worst_place
from ui.web.runs import compared, make_runs
from ui.web.sums_panel import sums_panel
from ui.web.theme_css import theme_css
from ui.web.tiles import register_tiles
from ui.web.urls import THEMES, SaturationView, View, read_saturation, read_theme, read_view

__all__ = ["create_app", "first_page"]

PAGES = {
    "/overview": "Overview",
    "/compare": "Compare",
    "/stalls": "Stalls",
    "/saturation": "Saturation",
    "/trace": "Trace",
}
_INDEX = """<!doctype html>
<html lang="en"{theme}>
<head>
{metas}
<title>{title}</title>
<style>{style}</style>
{css}
<link rel="icon" href="data:,">
<script>
  document.documentElement.dataset.theme ||=
    matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
</script>
</head>
<body>
{app_entry}
<footer>{config}{scripts}{renderer}</footer>
</body>
</html>"""


class _App(dash.Dash):
    """Dash whose first byte has the theme of the address, so that no page flashes in the other one."""

    def interpolate_index(self, **parts: str) -> str:  # type: ignore[override]
        """The page around everything, from parts that Dash passes by name."""
        theme = read_theme(request.query_string.decode("ascii", "replace"))
        attribute = f' data-theme="{theme}"' if theme else ""
        return _INDEX.format(theme=attribute, style=theme_css(), **parts)


def create_app(
    timelines: Sequence[Timeline], *, live: bool = False, hosts: Collection[str] | None = None
) -> dash.Dash:
    """The application that shows these traces; `live` lets pages follow them as they grow.

    `hosts` are the names that the server answers to, None for any.
    """
    app = _App(
        __name__,
        title="Chunkscope",
        update_title="",
        suppress_callback_exceptions=True,  # pages come and go
        add_log_handler=False,
        on_error=_say_unreadable,
    )
    lock = threading.Lock()
    runs = make_runs(timelines)
    guard(app.server, ("/", *PAGES), hosts)
    _lead_to(app.server, first_page(timelines))
    register_tiles(app.server, timelines, lock)
    register_cursor(app.server, timelines, lock)
    if live:
        register_live(app.server, runs, Follower(runs), lock)
    app.layout = shell(runs, PAGES)
    _register_router(app, timelines, lock, live=live)
    evidence_of, checks = EvidenceOf(timelines), Checks()  # what takes seconds is done once for all pages
    overview.register(app, timelines, lock, evidence_of, checks)
    compare.register(app, timelines, lock)
    stalls.register(app, timelines, lock, evidence_of)
    saturation.register(app, timelines, evidence_of)  # reads traces of its own
    trace.register(app, timelines, lock, checks)
    return app


def first_page(timelines: Sequence[Timeline]) -> str:
    """The path that a session opens with: of one run what is wrong with it, of several how they compare."""
    return "/overview" if len(timelines) == 1 else "/compare"


def _say_unreadable(error: Exception) -> None:
    """What a callback meets in a damaged trace is a notice; anything else is a defect, and shows itself."""
    if not isinstance(error, TraceError):
        raise error
    dash.set_props("notices", {"children": notices([str(error)])})


def _lead_to(server: Flask, first: str) -> None:
    """Have "/" lead to the first page, its query kept; the page's script takes it for Compare by itself."""

    @server.before_request
    def lead() -> BaseResponse | None:
        if request.path != "/" or first == "/compare":
            return None
        query = request.query_string.decode("ascii", "replace")
        return redirect(f"{first}?{query}" if query else first)


def _register_router(
    app: dash.Dash, timelines: Sequence[Timeline], lock: threading.Lock, *, live: bool
) -> None:
    """Pages by path; panels by what is chosen. The script of the page keeps the address."""
    app.clientside_callback(
        ClientsideFunction("chunkscope", "route"),
        Output("route", "data"),
        Input("shell", "id"),
    )

    @app.callback(
        Output("page", "children"),
        Output("view", "data"),
        Output("notices", "children"),
        Output("gap-panel", "children"),
        Output("sums-panel", "children"),
        Input("route", "data"),
        prevent_initial_call=True,
    )
    def show(route: dict[str, str]) -> tuple[Component, dict[str, Any], list[Component], Any, Any]:
        path = route["path"] if route["path"] in PAGES else "/compare"
        theme = route["theme"] if route["theme"] in THEMES else THEMES[0]
        with lock:
            runs = make_runs(timelines)
            view, problems = read_view(route["search"], runs)
            asked, more_problems = read_saturation(route["search"], len(runs))
            bands = [band(run) for run in compared(runs)]
            more = {"page": path, "bands": bands, "worst": worst_place(runs), "live": live}
            return (
                _page(path, timelines, theme, view, asked),
                {**view.as_json(), **more},
                notices(list(dict.fromkeys((*problems, *more_problems)))),
                gap_panel(runs, runs[view.run], view.gap),
                sums_panel(runs, view.selection),
            )

    @app.callback(
        Output("gap-panel", "children", allow_duplicate=True),
        Output("sums-panel", "children", allow_duplicate=True),
        Input("choice", "data"),
        prevent_initial_call=True,
    )
    def choose(choice: dict[str, Any]) -> tuple[Any, Any]:
        with lock:
            runs = make_runs(timelines)
            run = runs[choice["run"]]
            gap = None if choice["rid"] is None else run.timeline.gap(choice["rid"], choice["tok"])
            selection = choice["sel"] and (choice["sel"][0], choice["sel"][1])
            return gap_panel(runs, run, gap), sums_panel(runs, selection)

    app.clientside_callback(ClientsideFunction("chunkscope", "enter"), Input("view", "data"))


def _page(
    path: str, timelines: Sequence[Timeline], theme: str, view: View, asked: SaturationView
) -> Component:
    if path == "/overview":
        return overview.layout(timelines, theme, view)
    if path == "/stalls":
        return stalls.layout(timelines, theme, view)
    if path == "/trace":
        return trace.layout(timelines, theme, view.run)
    if path == "/saturation":
        return saturation.layout(timelines, theme, asked)
    return compare.layout(timelines, theme)
