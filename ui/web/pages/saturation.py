"""The Saturation page: how many tokens fill a forward, what other chunk sizes cost, which one to take."""

from collections.abc import Mapping, Sequence
from typing import Any

from dash import ClientsideFunction, Dash, Input, Output, Patch, State, no_update
from dash.development.base_component import Component

from profiler.advice import Advice
from profiler.riding import riding
from profiler.timeline.timeline import Timeline
from traces.errors import TraceError
from ui.palette import THEMES, Theme
from ui.web.figures.throughput import overlay
from ui.web.limit_query import read_wanted
from ui.web.pages.saturation_advice import ADVICE_PARTS, advice_parts, marks_of, no_advice
from ui.web.pages.saturation_evidence import Evidence, EvidenceOf
from ui.web.pages.saturation_layout import page
from ui.web.pages.saturation_limits import SLIDERS
from ui.web.pages.saturation_roof import ROOF_PARTS, roof_parts, unreadable_roof
from ui.web.pages.saturation_view import PARTS, curves_of, parts_of, unreadable
from ui.web.urls import ROOFS, SaturationView

__all__ = ["layout", "register"]


def layout(runs: Sequence[Timeline], theme: str, asked: SaturationView | None = None) -> Component:
    """The page as the address asks for it, without its numbers."""
    return page(runs, theme, asked or SaturationView())


def register(app: Dash, runs: Sequence[Timeline], evidence_of: EvidenceOf) -> None:
    """Add the page's callbacks."""
    _register_run(app, evidence_of, len(runs))
    _register_roof(app, evidence_of)
    _register_prices(app, evidence_of)
    _register_script(app)


def _register_run(app: Dash, evidence_of: EvidenceOf, num_runs: int) -> None:
    @app.callback(Output("saturation-run", "value"), Input("saturation-asked", "data"))
    def choose(asked: object) -> int:
        """The run that the address names, else the one with the most sizes."""
        return asked if isinstance(asked, int) and 0 <= asked < num_runs else evidence_of.richest()

    @app.callback(
        {**_outputs(PARTS), "drawn": Output("saturation-drawn", "data")},
        Input("saturation-run", "value"),
        Input("saturation-theme", "data"),
        Input("saturation-tick", "n_intervals"),
        prevent_initial_call=True,
    )
    def fill(index: int | None, theme: str | None, tick: int | None) -> dict[str, object]:
        """All that depends on the run alone, as far as it has been written, and on the theme."""
        colours, drawn = _theme(theme), {"run": index, "theme": theme, "tick": tick}
        if index is None:
            return {**unreadable("No run is chosen.", colours), "drawn": None}
        try:
            return {**parts_of(evidence_of(index), colours), "drawn": drawn}
        except TraceError as error:
            return {**unreadable(str(error), colours), "drawn": None}


def _register_roof(app: Dash, evidence_of: EvidenceOf) -> None:
    @app.callback(
        _outputs(ROOF_PARTS),
        Input("saturation-drawn", "data"),
        Input("saturation-roof", "value"),
        State("saturation-theme", "data"),
        prevent_initial_call=True,
    )
    def draw(drawn: Mapping[str, Any] | None, by: str | None, theme: str | None) -> dict[str, object]:
        """The roofline, of forwards or of operators."""
        if drawn is None:
            return unreadable_roof(_theme(theme))
        evidence = evidence_of(drawn["run"])
        path = str(evidence.timeline.path)
        return roof_parts(evidence.board, by if by in ROOFS else ROOFS[0], path, _theme(theme))


def _register_prices(app: Dash, evidence_of: EvidenceOf) -> None:
    @app.callback(
        Output("saturation-priced", "data"),
        Input("saturation-drawn", "data"),
        State("saturation-priced", "data"),
        State("saturation-limits", "data"),
        running=[(Output("saturation-working", "hidden"), False, True)],
        prevent_initial_call=True,
    )
    def try_rows(
        drawn: Mapping[str, Any] | None, priced: int | None, limits: Mapping[str, str] | None
    ) -> object:
        """Try the workload of a run under every row's options, which takes seconds: once it is drawn."""
        if drawn is None or drawn["run"] == priced:
            return no_update
        evidence_of.advise(drawn["run"], read_wanted(limits or {})[0].limits)
        return drawn["run"]

    @app.callback(
        {
            **_outputs(ADVICE_PARTS),
            "answer": Output("saturation-answer", "children", allow_duplicate=True),
            "throughput": Output("saturation-throughput", "figure", allow_duplicate=True),
        },
        Input("saturation-drawn", "data"),
        Input("saturation-priced", "data"),
        Input("saturation-limits", "data"),
        Input("saturation-policy", "value"),
        State("saturation-theme", "data"),
        prevent_initial_call=True,
    )
    def mark(
        drawn: Mapping[str, Any] | None,
        priced: int | None,
        limits: Mapping[str, str] | None,
        policy: str | None,
        theme: str | None,
    ) -> dict[str, object]:
        """Choose among the rows under the limits, and mark what breaks them."""
        advice = None if drawn is None or drawn["run"] != priced else evidence_of.advised(drawn["run"])
        if drawn is None or not isinstance(advice, Advice):
            reason = advice if isinstance(advice, str) else None
            return {**no_advice(reason), "throughput": no_update}
        wanted, _ = read_wanted(limits or {})
        advice = advice.under(wanted.limits)
        if wanted.decodes is not None:
            advice = riding(advice, wanted.decodes)
        evidence = evidence_of(drawn["run"])
        figure = _marked(evidence, _theme(theme), advice)
        untried = wanted.limits != evidence_of.tried_for(drawn["run"])
        parts = advice_parts(evidence, advice, policy, untried=untried)
        return {**parts, "throughput": figure}


def _marked(evidence: Evidence, theme: Theme, advice: Advice) -> Patch:
    """The lines and labels of the figure that is there, anew."""
    board, figure = evidence.board, Patch()
    for part, value in overlay(board.report, theme, marks_of(evidence, advice), curves_of(board)).items():
        figure["layout"][part] = value
    return figure


def _register_script(app: Dash) -> None:
    """What the page's script does: the sliders' words, the price list, the address, blanks for a run left."""
    app.clientside_callback(
        ClientsideFunction("saturation", "slide"),
        *(Output(f"saturation-{_id(key)}-words", "children") for key in SLIDERS),
        *(Input(f"saturation-{_id(key)}", "value") for key in SLIDERS),
        State("saturation-steps", "data"),
        prevent_initial_call=True,
    )
    app.clientside_callback(
        ClientsideFunction("saturation", "leave"), Input("saturation-run", "value"), prevent_initial_call=True
    )
    app.clientside_callback(
        ClientsideFunction("saturation", "tables"),
        Input("saturation-prices-data", "data"),
        Input("saturation-all-prices-data", "data"),
        prevent_initial_call=True,
    )
    app.clientside_callback(
        ClientsideFunction("saturation", "remember"),
        Output("saturation-run", "className"),
        Input("saturation-run", "value"),
        Input("saturation-policy", "value"),
        Input("saturation-roof", "value"),
        prevent_initial_call=True,
    )


def _outputs(parts: Mapping[str, str]) -> dict[str, Output]:
    return {part: Output(f"saturation-{part}", kind) for part, kind in parts.items()}


def _theme(name: str | None) -> Theme:
    return THEMES.get(name or "", THEMES["light"])


def _id(key: str) -> str:
    return key.replace("_", "-")
