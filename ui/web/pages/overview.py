"""Overview, the first page: what is wrong with a run, how bad, why, and which option mends it."""

import threading
from collections.abc import Mapping, Sequence
from typing import Any

from dash import ClientsideFunction, Dash, Input, Output, State, no_update
from dash.development.base_component import Component

from profiler.findings import Finding, findings
from profiler.overview_price import is_priced, predicted_price
from profiler.price_rows import Limits
from profiler.timeline.timeline import Timeline
from traces.reader import open_trace
from ui.palette import THEMES
from ui.web.checks import Checks
from ui.web.pages.overview_findings import finding_list, findings_words
from ui.web.pages.overview_layout import page
from ui.web.pages.overview_options import with_options
from ui.web.pages.overview_provenance import check_words, not_checked
from ui.web.pages.overview_view import PARTS, parts_of
from ui.web.pages.saturation_evidence import EvidenceOf
from ui.web.runs import make_runs
from ui.web.urls import View

__all__ = ["layout", "register"]

Asked = Mapping[str, Any]


def layout(timelines: Sequence[Timeline], theme: str, view: View) -> Component:
    """The page of the run that the view shows, without its numbers."""
    return page(make_runs(timelines), theme, view)


def register(
    app: Dash, timelines: Sequence[Timeline], lock: threading.Lock, evidence_of: EvidenceOf, checks: Checks
) -> None:
    """Add the page's callbacks; `lock` guards the timelines."""
    _register_run(app, timelines, lock)
    _register_findings(app, timelines, lock)
    _register_price(app, timelines, lock, evidence_of)
    _register_checks(app, timelines, checks)
    app.clientside_callback(
        ClientsideFunction("overview", "follow"), Input("overview-run", "value"), prevent_initial_call=True
    )


def _register_run(app: Dash, timelines: Sequence[Timeline], lock: threading.Lock) -> None:
    @app.callback(
        {**_outputs(PARTS), "drawn": Output("overview-drawn", "data")},
        Input("overview-run", "value"),
        Input("overview-theme", "data"),
        Input("overview-tick", "n_intervals"),
        State("overview-asked", "data"),
        State("overview-drawn", "data"),
    )
    def fill(
        index: int, theme: str, ticks: int | None, asked: Asked, drawn: Asked | None
    ) -> dict[str, object]:
        """All that the ledger of a run tells, as far as it has been written, in the colours of the theme."""
        with lock:
            run = make_runs(timelines)[index]
            state = {"run": index, "theme": theme, "forwards": run.timeline.num_forwards}
            if state == drawn:
                return dict.fromkeys((*PARTS, "drawn"), no_update)
            is_asked = asked["run"] == index and asked["rid"] is not None
            chosen = run.timeline.gap(asked["rid"], asked["tok"]) if is_asked else None
            return {**parts_of(run, chosen, THEMES[theme]), "drawn": state}


def _register_findings(app: Dash, timelines: Sequence[Timeline], lock: threading.Lock) -> None:
    kept: dict[tuple[int, int], tuple[Finding, ...]] = {}

    @app.callback(
        Output("overview-findings", "children"),
        Output("overview-findings-note", "children"),
        Input("overview-drawn", "data"),
        prevent_initial_call=True,
    )
    def find(drawn: Asked) -> tuple[Component, str]:
        """The findings of the run that is drawn; the trace is read anew, so that nobody waits for it."""
        key = drawn["run"], drawn["forwards"]
        with lock:
            run = make_runs(timelines)[drawn["run"]]
            report = run.timeline.stall_report
        found = kept.get(key)
        if found is None:
            found = findings(open_trace(run.timeline.path), stalls=report)
        if run.timeline.trace.sealed:
            kept[key] = found
        with lock:
            return finding_list(run, found), findings_words(found)


def _register_price(
    app: Dash, timelines: Sequence[Timeline], lock: threading.Lock, evidence_of: EvidenceOf
) -> None:
    @app.callback(
        Output("overview-price", "children"),
        Input("overview-drawn", "data"),
        running=[(Output("overview-working", "hidden"), False, True)],
        prevent_initial_call=True,
    )
    def predict(drawn: Asked) -> list[Component | str]:
        """What mending the longest wait is predicted to cost: options are tried, which takes seconds."""
        with lock:
            timeline = timelines[drawn["run"]]
            longest, engine = timeline.stall_report.longest, timeline.trace.meta.get("engine")
        if not timeline.trace.sealed or not is_priced(longest) or not isinstance(engine, Mapping):
            return []
        advice = evidence_of.advise(drawn["run"], Limits())
        price = None if isinstance(advice, str) else predicted_price(advice, engine)
        return [] if price is None else with_options(price)


def _register_checks(app: Dash, timelines: Sequence[Timeline], checks: Checks) -> None:
    @app.callback(
        Output("overview-checks", "children"),
        Output("overview-check-tick", "disabled"),
        Input("overview-check-tick", "n_intervals"),
        Input("overview-run", "value"),
    )
    def tick(ticks: int | None, index: int) -> tuple[list[Component | str], bool]:
        """How the scheduler's rules fare, in the background."""
        timeline = timelines[index]
        if not timeline.trace.sealed:
            return not_checked(), False
        check = checks.ask(timeline)
        return check_words(check), check.done


def _outputs(parts: Mapping[str, str]) -> dict[str, Output]:
    return {part: Output(f"overview-{part}", kind) for part, kind in parts.items()}
