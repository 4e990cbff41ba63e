"""The Overview page without its numbers: places for the answer, tiles, stalls, picture, findings, sources."""

from collections.abc import Sequence

from dash import dcc, html
from dash.development.base_component import Component

from ui.palette import THEMES
from ui.web.attributes import aria, data
from ui.web.figures.glance import HEIGHT
from ui.web.figures.style import CONFIG, empty
from ui.web.metric_heads import named
from ui.web.runs import Run
from ui.web.urls import View

__all__ = ["FINDING", "READING", "page"]

READING = "Reading the ledger of every gap…"
FINDING = "Holding the run against the thresholds…"
_PREDICTING = "Predicting what other options would cost…"
_CHECK_MS = 400
_EACH_MS = 10_000  # a growing run is read anew
_KEYS = (
    ("↑ ↓", "choose a stall"),
    ("Enter", "its ledger"),
    ("[ ]", "previous, next stall"),
    ("/", "search a request or forward"),
)


def page(runs: Sequence[Run], theme: str, view: View) -> Component:
    """Its numbers come by callbacks: a large trace takes seconds to read, findings and prices more."""
    gap = view.gap
    asked = {
        "run": view.run,
        "rid": None if gap is None else gap.rid,
        "tok": None if gap is None else gap.token_index,
    }
    return html.Main(
        [
            *_stores(runs, theme, asked),
            _choice(runs, view.run),
            html.Header(
                [
                    html.H1(READING, id="overview-answer", **named("itl_longest")),
                    html.P(
                        [
                            html.Span(id="overview-cause"),
                            " ",
                            html.Span(id="overview-price", **named("choice")),
                            html.Span(
                                [html.Span(className="busy"), _PREDICTING],
                                id="overview-working",
                                className="muted",
                                hidden=True,
                            ),
                        ]
                    ),
                ],
                className="answer",
                **aria(live="polite"),
            ),
            html.Dl(id="overview-tiles", className="tiles"),
            html.Div([_left(theme), _right()], className="overview-columns"),
            _keys(len(runs)),
        ],
        className="overview",
    )


def _stores(runs: Sequence[Run], theme: str, asked: dict[str, int | None]) -> list[Component]:
    grows = any(not run.timeline.trace.sealed for run in runs)
    return [
        dcc.Store(id="overview-asked", data=asked),
        dcc.Store(id="overview-theme", data=theme if theme in THEMES else "light"),
        dcc.Store(id="overview-drawn"),
        dcc.Store(id="overview-found"),
        dcc.Interval(id="overview-tick", interval=_EACH_MS, disabled=not grows),
        dcc.Interval(id="overview-check-tick", interval=_CHECK_MS),
    ]


def _choice(runs: Sequence[Run], chosen: int) -> Component:
    radio = dcc.RadioItems(
        id="overview-run",
        options=[{"label": run.heading, "value": run.index} for run in runs],
        value=chosen,
        className="choice",
        inline=True,
    )
    return html.Div(radio, hidden=len(runs) == 1, className="choose")


def _left(theme: str) -> Component:
    return html.Div(
        [
            html.Section(
                [
                    _head(
                        "Worst stalls",
                        "time a token came later than its own decode forward needed",
                        "late_by",
                    ),
                    html.Div(id="overview-stalls", className="scroll-x"),
                ]
            ),
            html.Section(
                [
                    html.H2(
                        ["Where the waiting between tokens went ", html.Small(id="overview-waiting-note")],
                        **named("causes"),
                    ),
                    html.Div(id="overview-waiting"),
                ]
            ),
            html.Section(
                [
                    html.H2(
                        ["The run at a glance ", html.Small(id="overview-glance-note")],
                        **named("causes_over_time"),
                    ),
                    html.Div(
                        dcc.Graph(
                            id="overview-glance",
                            figure=empty(THEMES[theme if theme in THEMES else "light"], HEIGHT, READING),
                            config=CONFIG,
                            style={"height": f"{HEIGHT}px"},
                        ),
                        role="group",
                        **aria(label="Tokens of each forward over time, and what requests waited for"),
                    ),
                ]
            ),
        ]
    )


def _right() -> Component:
    return html.Div(
        [
            html.Section(
                [
                    html.H2(["Findings ", html.Small(id="overview-findings-note")], **named("findings")),
                    html.Div(_busy(FINDING), id="overview-findings"),
                ],
                className="of-findings",
            ),
            html.Section(
                [
                    html.H2([html.Span("◇ ", className="diamond"), "Where these numbers come from"]),
                    html.Dl(
                        [
                            html.Div(id="overview-source"),
                            html.Div(
                                [
                                    html.Dt(html.A("checks", href="/trace", **data(page="/trace"))),
                                    html.Dd(id="overview-checks", role="status"),
                                ]
                            ),
                        ],
                        **named("rules"),
                    ),
                ],
                className="source",
            ),
        ]
    )


def _head(title: str, note: str, metric: str) -> html.H2:
    return html.H2([f"{title} ", html.Small(note)], **named(metric))


def _busy(words: str) -> html.P:
    return html.P([html.Span(className="busy"), words], role="status", className="muted")


def _keys(num_runs: int) -> Component:
    several = [("1…6", "another run")] if num_runs > 1 else []
    items = [
        html.Li([*(html.Kbd(key) for key in keys.split() if key), html.Span(words)])
        for keys, words in (*_KEYS, *several)
    ]
    return html.Footer(html.Ul(items, className="hints"), className="legend")
