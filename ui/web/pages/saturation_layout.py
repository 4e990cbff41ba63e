"""The Saturation page without its numbers: places for curves, sliders, price list, roofline and more."""

from collections.abc import Sequence

from dash import dcc, html
from dash.development.base_component import Component

from profiler.timeline.timeline import Timeline
from ui.metric_entries import explained
from ui.palette import THEMES
from ui.web.attributes import aria, data
from ui.web.figures.decodes import HEIGHT as DECODES_HEIGHT
from ui.web.figures.memory import HEIGHT as MEMORY_HEIGHT
from ui.web.figures.residuals import HEIGHT as RESIDUALS_HEIGHT
from ui.web.figures.roofline import HEIGHT as ROOFLINE_HEIGHT
from ui.web.figures.style import CONFIG, empty
from ui.web.figures.throughput import HEIGHT as THROUGHPUT_HEIGHT
from ui.web.metric_heads import named
from ui.web.pages.saturation_limits import limit_sliders, slider_steps, texts_of
from ui.web.pages.saturation_prices import POLICIES
from ui.web.runs import make_runs, provenance
from ui.web.urls import ROOFS, SaturationView

__all__ = ["READING", "page"]

READING = "Reading the forwards…"
_WORKING = "Sending the workload through the scheduler for each row…"
_CONVENTIONS = (
    "Counted from each forward's rows. Exact: every matrix product, every pair of attention, the head. "
    "SGLang's estimator leaves the head out. Naive: 2 · parameters · tokens, without attention."
)
_EACH_MS = 10_000  # a growing run is read anew


def page(runs: Sequence[Timeline], theme: str, asked: SaturationView) -> Component:
    """Its numbers come by callbacks, as a large trace takes seconds to read, and a price list to try."""
    return html.Main(
        [
            *_stores(runs, theme, asked),
            html.Header(
                [
                    html.H1(
                        READING,
                        id="saturation-answer",
                        title=explained("saturation_point"),
                        **data(metric="saturation_point", reading=READING),
                    ),
                    html.P(id="saturation-price", **named("saturation_interval")),
                    html.P(id="saturation-advice", className="advice"),
                ],
                className="answer",
                **aria(live="polite"),
            ),
            _choice(runs),
            html.Div(
                [_curves(theme, asked), html.Div([_prices(asked), _roofline(theme, asked)])],
                className="saturation-columns",
            ),
            html.Div([_memory(theme), _decodes(theme), _conventions()], className="saturation-more"),
        ],
        className="page saturation",
    )


def _stores(runs: Sequence[Timeline], theme: str, asked: SaturationView) -> list[Component]:
    live = any(run.trace.live for run in runs)
    return [
        dcc.Store(id="saturation-theme", data=theme),
        dcc.Store(id="saturation-asked", data=asked.run),
        dcc.Store(id="saturation-limits", data=texts_of(asked.wanted)),
        dcc.Store(id="saturation-steps", data=slider_steps()),
        dcc.Store(id="saturation-drawn"),
        dcc.Store(id="saturation-priced"),
        dcc.Store(id="saturation-prices-data"),
        dcc.Store(id="saturation-all-prices-data"),
        dcc.Interval(id="saturation-tick", interval=_EACH_MS, disabled=not live),
    ]


def _choice(runs: Sequence[Timeline]) -> html.Div:
    options = [{"label": run.heading, "value": run.index} for run in make_runs(runs)]
    radio = dcc.RadioItems(options, id="saturation-run", inline=True, className="runs")
    sources = {provenance(run) for run in runs}  # of all runs alike, it stands in the top bar
    return html.Div(
        [
            html.Span("run", id="saturation-run-label"),
            radio,
            html.Span(id="saturation-badge", className="source", hidden=len(sources) == 1),
        ],
        className="saturation-choice",
        role="group",
        hidden=len(runs) == 1,
        **aria(labelledby="saturation-run-label"),
    )


def _curves(theme: str, asked: SaturationView) -> html.Section:
    return html.Section(
        [
            _graph("throughput", "Throughput and forward time against tokens", theme, THROUGHPUT_HEIGHT),
            html.P(id="saturation-throughput-caption", className="caption"),
            limit_sliders(asked.wanted),
            _table("sizes", "Table of the sizes"),
            html.H2("What the point rests on", **named("saturation_point")),
            html.Dl(id="saturation-basis", className="facts"),
            html.H2(
                ["Residuals ", html.Small("of the sizes, against the fit", className="muted")],
                **named("residual"),
            ),
            _graph("residuals", "Residuals of the sizes against the fit", theme, RESIDUALS_HEIGHT),
            _table("terms", "Table of the model's terms and residuals"),
        ],
        **aria(label="Throughput and forward time"),
    )


def _prices(asked: SaturationView) -> html.Section:
    policies = {"": "as recommended", **POLICIES}
    options = [{"label": words, "value": key} for key, words in policies.items()]
    policy = dcc.RadioItems(
        options, id="saturation-policy", value=asked.policy or "", inline=True, className="runs"
    )
    return html.Section(
        [
            html.Div(
                [html.H2("Price list", **named("price_list")), policy],
                className="head",
                role="group",
                **aria(label="Price list"),
            ),
            html.P(
                [html.Span(className="busy"), _WORKING],
                id="saturation-working",
                className="working",
                role="status",
            ),
            html.Div(
                id="saturation-prices",
                className="scroll-x",
                role="region",
                tabIndex=0,
                **aria(label="Price list"),
            ),
            html.P(id="saturation-prices-note", className="caption", **named("margins")),
            _table("all-prices", "Table of all policies and numbers"),
            _table("advice-basis", "What the price list rests on"),
        ],
        **aria(label="Price list"),
    )


def _roofline(theme: str, asked: SaturationView) -> html.Section:
    options = [{"label": f"of the {name}", "value": name} for name in ROOFS]
    radio = dcc.RadioItems(options, id="saturation-roof", value=asked.roof, inline=True, className="runs")
    return html.Section(
        [
            html.Div(
                [html.H2("Roofline", **named("roof_share")), radio],
                className="head",
                role="group",
                **aria(label="Roofline"),
            ),
            html.P(id="saturation-ceilings", className="caption", **named("ceilings")),
            _graph("roofline", "FLOP/s against FLOP per byte", theme, ROOFLINE_HEIGHT),
            html.P(id="saturation-roofline-caption", className="caption"),
            html.Div(id="saturation-modes", className="scroll-x"),
            html.Div(id="saturation-above"),
            _table("forwards", "Table of the drawn points"),
        ],
        **aria(label="Roofline"),
    )


def _memory(theme: str) -> html.Section:
    return html.Section(
        [
            html.H2("Memory", **named("activation_bytes")),
            _graph("memory", "Activations against tokens", theme, MEMORY_HEIGHT),
            html.P(id="saturation-memory-said", className="caption", **named("activation_bytes")),
            _table("memory-table", "Table by chunk size"),
        ],
        **aria(label="Memory"),
    )


def _decodes(theme: str) -> html.Section:
    return html.Section(
        [
            html.H2("Decode batches", **named("decode_point")),
            _graph("batches", "Decode throughput against rows", theme, DECODES_HEIGHT),
            html.P(id="saturation-batches-said", className="caption", **named("decode_point")),
            _table("batches-sizes", "Table of the batch sizes"),
        ],
        **aria(label="Decode batches"),
    )


def _conventions() -> html.Section:
    return html.Section(
        [
            html.H2(
                ["FLOPs ", html.Small("counted in three ways", className="muted")], **named("flops_total")
            ),
            html.Div(id="saturation-conventions", className="scroll-x"),
            html.P(_CONVENTIONS, className="caption"),
        ],
        **aria(label="FLOPs by convention"),
    )


def _graph(name: str, label: str, theme: str, height: int) -> html.Div:
    figure = empty(THEMES.get(theme, THEMES["light"]), height, READING)
    size = {"height": f"{height}px"}
    graph = dcc.Graph(id=f"saturation-{name}", figure=figure, config=CONFIG, style=size)
    return html.Div(graph, role="img", **aria(label=f"{label}; the table below holds the numbers"))


def _table(name: str, title: str) -> html.Details:
    return html.Details(
        [html.Summary(title), html.Div(id=f"saturation-{name}", className="scroll", tabIndex=0)]
    )
