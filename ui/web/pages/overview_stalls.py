"""The worst stalls of a run: tokens that were late at one instant for one cause are one row."""

from collections.abc import Sequence
from typing import Any
from urllib.parse import urlencode

from dash import html
from dash.development.base_component import Component

from profiler.ledger.parts import GapDetail
from profiler.ledger.report import StallGroup, StallReport
from ui.part_words import cause_of
from ui.stall_words import culprit_shares, names_words
from ui.web.attributes import aria, data
from ui.web.metric_heads import head, name_head
from ui.web.names import shown
from ui.web.runs import Run
from ui.words import plural

__all__ = ["MOST_ROWS", "stall_rows", "stall_table"]

MOST_ROWS = 6
_WIDTH_PX = 96
_IN_SECONDS_NS = 2_000_000_000
_LEAST_SHARE = 0.005  # of the worst row's lateness: what is less is not worth a row


def stall_rows(report: StallReport) -> tuple[StallGroup, ...]:
    """The groups that are shown, latest first."""
    worst_ns = max((group.late_ns for group in report.groups), default=0)
    late = [group for group in report.groups if group.late_ns > _LEAST_SHARE * worst_ns]
    return tuple(late[:MOST_ROWS])


def stall_table(run: Run, report: StallReport, chosen: GapDetail | None) -> Component:
    """One row a group; that of the chosen gap is marked, or the first."""
    groups = stall_rows(report)
    if not groups:
        nobody = "No token came later than its own forward needed." if report.gaps else "No gap is recorded."
        return html.P(nobody, className="muted")
    marked = next((group for group in groups if chosen is not None and _holds(group, chosen)), groups[0])
    late, lost = (_Column([getattr(group, name) for group in groups]) for name in ("late_ns", "lost_ns"))
    rows = [_row(run, group, late, lost, marked=group is marked) for group in groups]
    heads = [
        name_head("victims"),
        head("stall_group", "since"),
        head("late_by", "late by, each", colSpan=2, className="bar-head"),
        head("lost", "lost in all"),
        head("cause", "cause", className="text"),
        head("chunk_cost", "culprits, share of the gap", className="text"),
    ]
    caption = html.Caption("Tokens that came later than their own forwards needed", className="sr-only")
    return html.Table([caption, html.Thead(html.Tr(heads)), html.Tbody(rows)], className="stalls")


def _holds(group: StallGroup, gap: GapDetail) -> bool:
    same = (group.start_ns, group.own_forward_id) == (gap.start_ns, gap.own_forward_id)
    return same and gap.rid in group.rids


class _Column:
    """Durations of one column, all with the unit and decimals that its largest asks for."""

    def __init__(self, values_ns: Sequence[int]) -> None:
        self.most_ns = max(values_ns)

    def text(self, value_ns: int) -> str:
        if self.most_ns >= _IN_SECONDS_NS:
            return f"{value_ns / 1e9:,.2f} s"
        decimals = 0 if self.most_ns >= 100_000_000 else 1 if self.most_ns >= 1_000_000 else 3
        return f"{value_ns / 1e6:,.{decimals}f} ms"

    def width_px(self, value_ns: int) -> float:
        return max(1.0, _WIDTH_PX * value_ns / max(1, self.most_ns))


def _row(run: Run, group: StallGroup, late: _Column, lost: _Column, *, marked: bool) -> html.Tr:
    cause = cause_of(group.cause)
    since_ns = group.start_ns - run.timeline.start_ns
    query = urlencode({"run": run.index, "rid": group.rids[0], "tok": group.token_index})
    victims = html.A(
        [html.B(names_words(group.names, shown)), f" {plural(group.requests, 'request')}"],
        href=f"/stalls?{query}",
        className="stall",
        **data(instant=""),
    )
    bar = html.Span(className=f"bar {cause.swatch}", style={"width": f"{late.width_px(group.late_ns):.1f}px"})
    culprits: Component | str = "–"
    if group.culprits:
        culprits = html.A(
            culprit_shares(group, shown),
            href=f"/compare?{query}",
            title="to the costliest chunk of this gap",
            **data(instant=""),
        )
    return html.Tr(
        [
            html.Th(victims, scope="row"),
            html.Td(f"{since_ns / 1e9:,.3f} s"),
            html.Td(bar, className="bar-cell"),
            html.Td(html.B(late.text(group.late_ns))),
            html.Td(lost.text(group.lost_ns)),
            html.Td([html.Span(className=f"swatch {cause.swatch}"), cause.words], className="text"),
            html.Td(culprits, className="text"),
        ],
        **_place(run, group),
        **data(ns=group.late_ns, lost=group.lost_ns),
        **(aria(current="true") if marked else {}),
    )


def _place(run: Run, group: StallGroup) -> dict[str, Any]:
    """The gap that stands for the group, for the page's script: times count from the run's start."""
    start_ns, end_ns = (t - run.timeline.start_ns for t in (group.start_ns, group.end_ns))
    return data(run=run.index, gap=f"{group.rids[0]},{group.token_index}", start=start_ns, end=end_ns)
