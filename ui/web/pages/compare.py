"""Compare: runs one above the other on one time axis, under what they amount to."""

import threading
from collections.abc import Sequence

import dash
from dash import Input, Output, dcc, html
from dash.development.base_component import Component

from profiler.timeline.timeline import Timeline
from ui.web.answer import answer
from ui.web.attributes import aria, data
from ui.web.keys import key_hints
from ui.web.kpi_table import kpi_table, p99_note
from ui.web.runs import Run, compared, make_runs

__all__ = ["layout", "register"]

_LEGEND = (
    ("prefill", "prefill chunk"),
    ("decode", "decode token"),
    ("stall", "stall: others' prefill"),
    ("mixed", "stall: mixed extra"),
    ("held", "stall: no KV"),
    ("kv-locked", "KV in tree, locked"),
    ("kv-private", "KV private"),
    ("kv-evictable", "KV evictable"),
    ("kv-free", "free"),
    ("queued", "queued"),
    ("first", "first token"),
)


def layout(timelines: Sequence[Timeline], theme: str) -> Component:
    """The page; its script draws the timeline, in the colours of whatever theme is set by then."""
    runs = make_runs(timelines)
    return html.Main(
        [
            html.Div(_heading(runs), id="compare-heading"),
            html.Div(id="timeline", **aria(label="Forwards, requests and KV pages of each run over time")),
            html.Footer(
                [_legend(), html.Div([key_hints(), _note(runs)], className="row")], className="legend"
            ),
            dcc.Store(id="compare-version"),
        ],
        className="compare",
    )


def register(app: dash.Dash, timelines: Sequence[Timeline], lock: threading.Lock) -> None:
    """Renew the sentences and the table when live traces have grown; `lock` guards the timelines."""

    @app.callback(
        Output("compare-heading", "children"), Input("compare-version", "data"), prevent_initial_call=True
    )
    def renew(version: int) -> list[Component]:
        with lock:
            return _heading(make_runs(timelines))


def _heading(runs: Sequence[Run]) -> list[Component]:
    said = answer(runs)
    more = [html.Details([html.Summary("More in words"), *(html.P(line) for line in said.more)])]
    return [
        html.Header(
            [
                html.H1(said.effect),
                html.Div(
                    [html.P(said.cause), *_left_out(runs), *(more if said.more else [])], className="row"
                ),
            ],
            className="answer",
        ),
        kpi_table(compared(runs)),
    ]


def _left_out(runs: Sequence[Run]) -> list[Component]:
    """Names the sweeps, which have no place on a time axis."""
    sweeps = [run for run in runs if run not in compared(runs)]
    if not sweeps:
        return []
    link = html.A("Saturation", href="/saturation", **data(page="/saturation"))
    return [html.P([", ".join(run.heading for run in sweeps), ": see ", link], className="left-out")]


def _legend() -> html.Ul:
    return html.Ul(
        [html.Li([html.Span(className=f"swatch {kind}"), words]) for kind, words in _LEGEND],
        className="swatches",
        **aria(label="Legend"),
    )


def _note(runs: Sequence[Run]) -> html.P:
    note = p99_note(compared(runs))
    return html.P([html.Span("▲ ", className="mark"), note] if note else "", className="note")
