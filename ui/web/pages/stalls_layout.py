"""The Stalls page without its numbers: places for the answer, causes, worst stalls, one gap, and all sums."""

from collections.abc import Sequence
from typing import Any

from dash import dcc, html
from dash.development.base_component import Component

from ui.palette import THEMES
from ui.web.attributes import aria, data
from ui.web.figures.causes import HEIGHT
from ui.web.figures.style import CONFIG, empty
from ui.web.metric_heads import named
from ui.web.runs import Run
from ui.web.urls import View

__all__ = ["READING", "page"]

READING = "Reading the ledger of every gap…"
_WORKING = "Sending the workload through the scheduler under other options…"
_EACH_MS = 10_000  # a growing run is read anew
_KEYS = (("↑ ↓", "next row"), ("Enter", "choose a stall, go to an instant"), ("[ ]", "previous, next stall"))


def page(runs: Sequence[Run], theme: str, view: View) -> Component:
    """Its numbers come by callbacks, as the ledger of a large trace takes seconds."""
    return html.Main(
        [
            *_stores(runs, theme, view),
            html.Header(
                [
                    html.H1(READING, id="stalls-answer", **named("causes")),
                    html.P(id="stalls-said", className="muted", **named("waiting")),
                ],
                className="answer",
                **aria(live="polite"),
            ),
            _runs(runs),
            html.Div(
                [
                    _section("Where the waiting between tokens went", "causes", metric="causes"),
                    html.Div([_worst(), _over_time(theme)], className="pair"),
                    html.Div([_ledger(), _chunks()], className="pair gap"),
                    html.Div(
                        [
                            _section("Victims", "victims", metric="victims"),
                            _section("Culprits", "culprits", metric="culprit_cost"),
                            _section("Culprits, per chunk", "costs", metric="chunk_cost"),
                        ],
                        className="thirds",
                    ),
                ],
                id="stalls-gaps",
            ),
            _section("Time to the first token", "ttft", metric="ttft_ledger"),
            _hints(),
        ],
        className="stalls",
    )


def _stores(runs: Sequence[Run], theme: str, view: View) -> list[Component]:
    gap = view.gap
    asked = {
        "run": view.run,
        "rid": None if gap is None else gap.rid,
        "tok": None if gap is None else gap.token_index,
    }
    live = any(run.timeline.trace.live for run in runs)
    return [
        dcc.Store(id="stalls-asked", data=asked),
        dcc.Store(id="stalls-theme", data=theme if theme in THEMES else "light"),
        *(dcc.Store(id=f"stalls-{name}") for name in ("order", "drawn", "shown")),
        dcc.Interval(id="stalls-tick", interval=_EACH_MS, disabled=not live),
    ]


def _runs(runs: Sequence[Run]) -> html.Div:
    """A button a run; the script of the page marks the one that is chosen."""
    buttons = [html.Button(run.heading, title=run.options, **data(act="run", run=run.index)) for run in runs]
    return html.Div(buttons, className="choose", role="group", hidden=len(runs) == 1, **aria(label="Run"))


def _section(title: str, name: str, metric: str) -> html.Section:
    return html.Section(
        [html.H2([title, html.Small(id=f"stalls-{name}-note")], **named(metric)), _place(name)],
        id=f"stalls-{name}-section",
        **aria(label=title),
    )


def _place(name: str, **more: Any) -> html.Div:
    return html.Div(id=f"stalls-{name}", className="scroll-x", **more)


def _worst() -> html.Section:
    return _section("Worst stalls", "worst", metric="stall_group")


def _over_time(theme: str) -> html.Section:
    graph = dcc.Graph(
        id="stalls-over-time",
        figure=empty(THEMES.get(theme, THEMES["light"]), HEIGHT, READING),
        config=CONFIG,
        style={"height": f"{HEIGHT}px"},
    )
    label = "Waiting by cause over time; the table below holds the numbers"
    return html.Section(
        [
            html.H2(
                ["Causes over time", html.Small("requests that wait, by what for")],
                **named("causes_over_time"),
            ),
            html.Div(graph, role="img", **aria(label=label)),
            html.Details(
                [
                    html.Summary("Table of the spans"),
                    html.Div(id="stalls-spans", className="scroll", tabIndex=0),
                ]
            ),
        ],
        **aria(label="Causes over time"),
    )


def _ledger() -> html.Section:
    return html.Section(
        [
            html.Div(id="stalls-ledger"),
            html.H3("Why it waited"),
            html.P(id="stalls-why"),
            html.H3("What would change it"),
            html.Div(id="stalls-change", **aria(live="polite")),
            html.P(
                [html.Span(className="busy"), _WORKING],
                id="stalls-working",
                className="muted",
                role="status",
                hidden=True,
            ),
        ],
        **aria(label="Ledger of the chosen gap"),
    )


def _chunks() -> html.Section:
    return _section("Cost of each chunk", "chunks", metric="chunk_cost")


def _hints() -> html.Footer:
    keys = [html.Li([*(html.Kbd(key) for key in caps.split()), html.Span(text)]) for caps, text in _KEYS]
    note = html.P("Times are whole nanoseconds, shown rounded.", className="muted")
    return html.Footer([html.Ul(keys, className="hints"), note])
