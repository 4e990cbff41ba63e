"""The Stalls page: what the waiting between tokens went to, who waited, who took it, and one gap whole."""

import threading
from collections.abc import Mapping, Sequence
from typing import Any

from dash import ClientsideFunction, Dash, Input, Output, State, no_update
from dash.development.base_component import Component

from profiler.ledger.parts import GapDetail
from profiler.timeline.timeline import Timeline
from ui.palette import THEMES
from ui.web.pages.saturation_evidence import EvidenceOf
from ui.web.pages.stalls_advice import MendOf, change_parts
from ui.web.pages.stalls_gap import GAP_PARTS, gap_parts
from ui.web.pages.stalls_layout import page
from ui.web.pages.stalls_report import REPORT_PARTS, report_parts
from ui.web.pages.stalls_ttft import TTFT_PARTS, TtftOf, ttft_parts
from ui.web.places import gap_place
from ui.web.runs import Run, make_runs
from ui.web.urls import View

__all__ = ["layout", "register"]

Asked = Mapping[str, Any]


def layout(timelines: Sequence[Timeline], theme: str, view: View) -> Component:
    """The page of the chosen run and gap, without its numbers: a large trace takes seconds to read."""
    return page(make_runs(timelines), theme, view)


def register(app: Dash, timelines: Sequence[Timeline], lock: threading.Lock, evidence_of: EvidenceOf) -> None:
    """Add the page's callbacks; `lock` guards the timelines."""
    _register_report(app, timelines, lock)
    _register_gap(app, timelines, lock)
    _register_ttft(app, timelines, lock)
    _register_change(app, timelines, lock, evidence_of)
    app.clientside_callback(
        ClientsideFunction("stalls", "order"), Output("stalls-order", "data"), Input("stalls-asked", "data")
    )
    app.clientside_callback(
        ClientsideFunction("stalls", "follow"),
        Output("stalls-ledger", "title"),
        Input("stalls-shown", "data"),
        prevent_initial_call=True,
    )


def _register_report(app: Dash, timelines: Sequence[Timeline], lock: threading.Lock) -> None:
    @app.callback(
        {**_outputs(REPORT_PARTS), "drawn": Output("stalls-drawn", "data")},
        Input("stalls-asked", "data"),
        Input("stalls-theme", "data"),
        Input("stalls-tick", "n_intervals"),
        State("stalls-drawn", "data"),
    )
    def fill(asked: Asked, theme: str, ticks: int | None, drawn: Asked | None) -> dict[str, object]:
        """All that depends on the run alone, as far as it has been written, and on the theme."""
        with lock:
            run = make_runs(timelines)[asked["run"]]
            state = {"run": run.index, "theme": theme, "forwards": run.timeline.num_forwards}
            if state == drawn:
                return dict.fromkeys((*REPORT_PARTS, "drawn"), no_update)
            return {**report_parts(run, THEMES[theme]), "drawn": state}


def _register_gap(app: Dash, timelines: Sequence[Timeline], lock: threading.Lock) -> None:
    @app.callback(
        {**_outputs(GAP_PARTS), "shown": Output("stalls-shown", "data")},
        Input("stalls-asked", "data"),
        Input("stalls-order", "data"),
        Input("stalls-drawn", "data"),
    )
    def choose(asked: Asked, order: str | None, drawn: Asked | None) -> dict[str, object]:
        """The chosen gap, and the list that it is chosen from."""
        if drawn is None or drawn["run"] != asked["run"]:
            return dict.fromkeys((*GAP_PARTS, "shown"), no_update)
        with lock:
            run = make_runs(timelines)[asked["run"]]
            gap = _gap(run, asked)
            shown = None if gap is None else {"run": run.index, **gap_place(run.timeline, gap)}
            return {**gap_parts(run, gap, order or "late"), "shown": shown}


def _register_ttft(app: Dash, timelines: Sequence[Timeline], lock: threading.Lock) -> None:
    ttft_of = TtftOf()

    @app.callback(_outputs(TTFT_PARTS), Input("stalls-drawn", "data"))
    def first_tokens(drawn: Asked | None) -> dict[str, object]:
        """The slowest first tokens, after what the page is about."""
        if drawn is None:
            return dict.fromkeys(TTFT_PARTS, no_update)
        with lock:
            run = make_runs(timelines)[drawn["run"]]
        return ttft_parts(run, *ttft_of(run))


def _register_change(
    app: Dash, timelines: Sequence[Timeline], lock: threading.Lock, evidence_of: EvidenceOf
) -> None:
    mend_of = MendOf()

    @app.callback(
        Output("stalls-change", "children"),
        Input("stalls-shown", "data"),
        running=[(Output("stalls-working", "hidden"), False, True)],
    )
    def change(shown: Asked | None) -> list[Component]:
        """What would change the gap; trying options takes seconds, so it comes after all else."""
        if shown is None:
            return []
        with lock:
            run = make_runs(timelines)[shown["run"]]
            gap = _gap(run, shown)
        return [] if gap is None else change_parts(run, gap, evidence_of, mend_of)


def _gap(run: Run, asked: Asked) -> GapDetail | None:
    """The gap that is asked for, else the longest of the run."""
    if asked.get("rid") is None or asked.get("tok") is None:
        return run.timeline.worst_gap()
    return run.timeline.gap(asked["rid"], asked["tok"])


def _outputs(parts: Mapping[str, str]) -> dict[str, Output]:
    return {part: Output(f"stalls-{part}", kind) for part, kind in parts.items()}
