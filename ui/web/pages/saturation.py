"""The Saturation page: how many tokens fill a forward, what others cost, how near the roof forwards come."""

from collections.abc import Sequence

from dash import ClientsideFunction, Dash, Input, Output, dcc, html
from dash.development.base_component import Component

from profiler.timeline.timeline import Timeline
from traces.errors import TraceError
from ui.palette import THEMES
from ui.web.attributes import aria
from ui.web.figures.roofline import HEIGHT as ROOFLINE_HEIGHT
from ui.web.figures.style import CONFIG, empty
from ui.web.figures.throughput import HEIGHT as THROUGHPUT_HEIGHT
from ui.web.pages.saturation_evidence import EvidenceOf, chunk_marks
from ui.web.pages.saturation_view import PARTS, parts_of, unreadable
from ui.web.runs import Run, make_runs, provenance

__all__ = ["layout", "register"]

_READING = "Reading the forwards…"
_EACH_MS = 10_000  # a growing run is read anew


def layout(runs: Sequence[Timeline], theme: str) -> Component:
    """The page without its numbers: those come by a callback, as a large trace takes seconds to read."""
    return html.Main(
        [
            dcc.Store(id="saturation-theme", data=theme),
            dcc.Store(id="saturation-asked"),
            dcc.Interval(id="saturation-tick", interval=_EACH_MS, disabled=not _any_live(runs)),
            html.Header(
                [html.H1(_READING, id="saturation-answer"), html.P(id="saturation-price")],
                className="answer",
                **aria(live="polite"),
            ),
            _choice(make_runs(runs)),
            html.Div([_throughput(theme), _roofline(theme)], className="saturation-columns"),
        ],
        className="page saturation",
    )


def register(app: Dash, runs: Sequence[Timeline]) -> None:
    """Add the page's callbacks."""
    evidence_of = EvidenceOf(runs)

    @app.callback(
        Output("saturation-run", "value"), Input("saturation-asked", "data"), prevent_initial_call=True
    )
    def choose(asked: object) -> int:
        """The run that the address names, else the one with the most sizes."""
        if isinstance(asked, int) and 0 <= asked < len(runs):
            return asked
        return evidence_of.richest()

    @app.callback(
        {part: Output(f"saturation-{part}", kind) for part, kind in PARTS.items()},
        Input("saturation-run", "value"),
        Input("saturation-theme", "data"),
        Input("saturation-tick", "n_intervals"),
        prevent_initial_call=True,
    )
    def fill(index: int | None, theme: str | None, tick: int | None) -> dict[str, object]:
        """All that depends on the run, as far as it has been written, and on the theme."""
        colours = THEMES.get(theme or "", THEMES["light"])
        chosen = index if isinstance(index, int) and 0 <= index < len(runs) else evidence_of.richest()
        try:
            return parts_of(evidence_of(chosen), chunk_marks(runs, chosen), colours)
        except TraceError as error:
            return unreadable(str(error), colours)

    app.clientside_callback(
        ClientsideFunction("saturation", "asked"),
        Output("saturation-asked", "data"),
        Output("saturation-theme", "data"),
        Input("saturation-asked", "id"),
    )
    app.clientside_callback(
        ClientsideFunction("saturation", "remember"),
        Output("saturation-run", "className"),
        Input("saturation-run", "value"),
        prevent_initial_call=True,
    )


def _choice(runs: Sequence[Run]) -> html.Div:
    options = [{"label": run.heading, "value": run.index} for run in runs]
    radio = dcc.RadioItems(options, id="saturation-run", inline=True, className="runs")
    sources = {provenance(run.timeline) for run in runs}  # of all runs alike, it stands in the top bar
    return html.Div(
        [
            html.Span("run", id="saturation-run-label"),
            radio,
            html.Span(id="saturation-badge", className="source", hidden=len(sources) == 1),
        ],
        className="saturation-choice",
        role="group",
        **aria(labelledby="saturation-run-label"),
    )


def _any_live(runs: Sequence[Timeline]) -> bool:
    return any(run.trace.live for run in runs)


def _throughput(theme: str) -> html.Section:
    return html.Section(
        [
            _graph("throughput", "Throughput and forward time against tokens", theme, THROUGHPUT_HEIGHT),
            html.P(id="saturation-throughput-caption", className="caption"),
            _table("sizes", "Table of the sizes"),
            html.H2("What the point rests on"),
            html.Dl(id="saturation-basis", className="facts"),
        ],
        **aria(label="Throughput and forward time"),
    )


def _roofline(theme: str) -> html.Section:
    return html.Section(
        [
            html.H2("Roofline of the forwards"),
            html.P(id="saturation-ceilings", className="caption"),
            _graph("roofline", "FLOP/s of forwards against FLOP per byte", theme, ROOFLINE_HEIGHT),
            html.P(id="saturation-roofline-caption", className="caption"),
            html.Div(id="saturation-modes"),
            _table("forwards", "Table of forwards"),
        ],
        **aria(label="Roofline"),
    )


def _graph(name: str, label: str, theme: str, height: int) -> html.Div:
    figure = empty(THEMES.get(theme, THEMES["light"]), height, _READING)
    size = {"height": f"{height}px"}
    graph = dcc.Graph(id=f"saturation-{name}", figure=figure, config=CONFIG, style=size)
    return html.Div(graph, role="img", **aria(label=f"{label}; the table below holds the numbers"))


def _table(name: str, title: str) -> html.Details:
    return html.Details([html.Summary(title), html.Div(id=f"saturation-{name}", className="scroll")])
