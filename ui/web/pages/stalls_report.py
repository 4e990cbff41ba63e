"""The Stalls page's parts that depend on the run alone: answer, causes, victims, culprits, first tokens."""

from collections.abc import Mapping

from dash import html
from dash.development.base_component import Component

from profiler.ledger.parts import PartKind
from profiler.ledger.report import StallReport
from ui.palette import Theme
from ui.part_words import causes_ns
from ui.si_words import percent
from ui.stall_words import stalls_answer
from ui.web.answer import why_no_gap
from ui.web.attributes import aria, data
from ui.web.figures.causes import HEIGHT, causes_figure
from ui.web.figures.style import empty
from ui.web.metric_heads import named
from ui.web.names import shown
from ui.web.pages.stalls_costs import chunks_table, culprits_table
from ui.web.pages.stalls_tables import spans_table, victims_table
from ui.web.runs import Run, provenance
from ui.words import count, plural, seconds

__all__ = ["REPORT_PARTS", "cause_bar", "report_parts"]

REPORT_PARTS = {
    "answer": "children",
    "said": "children",
    "gaps": "hidden",
    "causes": "children",
    "causes-note": "children",
    "over-time": "figure",
    "spans": "children",
    "victims": "children",
    "victims-note": "children",
    "culprits": "children",
    "costs": "children",
    "costs-note": "children",
}
"""Every part of the page that depends on the run alone, and the property that holds it."""


def report_parts(run: Run, theme: Theme) -> dict[str, object]:
    """All parts for a run."""
    report = run.timeline.stall_report
    if not report.gaps:
        return _without_gaps(run, theme)
    return {
        "answer": _answer(report),
        "said": _said(run, report),
        "gaps": False,
        "causes": cause_bar(report.by_kind),
        "causes-note": f"{plural(report.gaps, 'gap')}, {seconds(report.waiting_ns / 1e9)} of waiting",
        "over-time": causes_figure(report.over_time, run.timeline.start_ns, theme, "nobody waited"),
        "spans": spans_table(run, report.over_time),
        "victims": victims_table(report),
        "victims-note": f"late by {seconds(report.late_ns / 1e9)} in all",
        "culprits": culprits_table(run, report),
        "costs": chunks_table(run, report),
        "costs-note": f"a forward of several prompts is shared by {report.split}",
    }


def cause_bar(by_kind: Mapping[PartKind, int]) -> list[Component]:
    """All waiting as one bar, and what each cause took of it; the causes sum to all."""
    causes = causes_ns(by_kind)
    whole_ns = max(1, sum(causes.values()))
    pieces = [
        html.Span(
            className=f"bar {cause.swatch}",
            style={"flexGrow": ns / whole_ns},
            title=f"{cause.words} {seconds(ns / 1e9)}",
        )
        for cause, ns in causes.items()
        if ns
    ]
    legend = [
        html.Li(
            [
                html.Span(className=f"swatch {cause.swatch}"),
                f"{cause.words} {seconds(ns / 1e9)} ({percent(ns / whole_ns)})" if ns else f"{cause.words} 0",
            ],
            className=None if ns else "muted",
            **data(ns=ns),
        )
        for cause, ns in causes.items()
        if ns or cause.key in ("mixed_extra", "no_kv")
    ]
    return [
        html.Div(pieces, className="causes", role="img", **aria(label="All waiting by cause")),
        html.Ul(legend, className="swatches", **aria(label="Waiting by cause")),
    ]


def _answer(report: StallReport) -> list[Component]:
    """What most waiting went to, whose prompts cost most, and the longest wait beside the sum."""
    told = stalls_answer(report, shown)
    parts: list[Component] = [html.Span(told.cause)]
    if told.culprit is not None:
        parts += [html.Span("; "), html.Span(told.culprit, className="lost", **named("culprit_cost"))]
    parts.append(html.Span("."))
    if told.worst is not None:
        parts.append(html.Span(f" {told.worst}.", **named("itl_longest")))
    return parts


def _said(run: Run, report: StallReport) -> str:
    """What the sum counts, so that nobody takes it for a time on the clock."""
    longest = report.longest
    span = seconds((run.timeline.end_ns - run.timeline.start_ns) / 1e9)
    beside = "" if longest is None else f", the longest alone {seconds(longest.gap_ns / 1e9)}"
    return (
        f"{provenance(run.timeline)}. The sum is over {plural(report.gaps, 'gap')} of requests that wait "
        f"side by side in a run of {span}{beside}. "
        f"{seconds(report.late_ns / 1e9)} of it came on top of what the tokens' own decode forwards needed."
    )


def _without_gaps(run: Run, theme: Theme) -> dict[str, object]:
    nothing = dict.fromkeys(REPORT_PARTS, "")
    told = f"{run.heading} holds {plural(run.timeline.num_forwards, 'forward')} and "
    return {
        **nothing,
        "answer": why_no_gap([run]),
        "said": f"{told}{count(run.timeline.num_requests)} requests; what is there is on the Trace page.",
        "gaps": True,
        "over-time": empty(theme, HEIGHT, "nobody waited"),
    }
