"""What the Overview page shows of a run as soon as its ledger is made, part by part."""

from dash import html
from dash.development.base_component import Component

from profiler.ledger.parts import GapDetail
from profiler.ledger.report import StallReport
from profiler.ledger.why import mend_gap, why_late
from profiler.overview import Overview, overview
from profiler.overview_words import effect
from profiler.sentences import waited
from profiler.timeline.timeline import Timeline
from ui.palette import Theme
from ui.stall_words import names_words
from ui.web.answer import answer
from ui.web.figures.glance import COLUMNS, glance_figure
from ui.web.metric_heads import named
from ui.web.names import shown, with_shown_names
from ui.web.pages.overview_options import with_options
from ui.web.pages.overview_provenance import provenance_rows
from ui.web.pages.overview_stalls import stall_table
from ui.web.pages.overview_tiles import tiles
from ui.web.pages.stalls_report import cause_bar
from ui.web.runs import Run
from ui.words import count, plural, seconds

__all__ = ["PARTS", "parts_of"]

PARTS = {
    "answer": "children",
    "cause": "children",
    "tiles": "children",
    "stalls": "children",
    "waiting": "children",
    "waiting-note": "children",
    "glance": "figure",
    "glance-note": "children",
    "source": "children",
}
"""Every part of the page that depends on the run and its ledger, and the property that holds it."""


def parts_of(run: Run, chosen: GapDetail | None, theme: Theme) -> dict[str, object]:
    """All parts; the row of the chosen gap is marked among the worst stalls."""
    timeline = run.timeline
    told = overview(timeline)
    said, why = _answer(run, told)
    return {
        "answer": said,
        "cause": why,
        "tiles": tiles(told),
        "stalls": stall_table(run, told.report, chosen),
        "waiting": cause_bar(told.report.by_kind) if told.report.gaps else [],
        "waiting-note": _waiting(told.report),
        "glance": _glance(timeline, told, theme),
        "glance-note": _length(timeline),
        "source": provenance_rows(timeline, told),
    }


def _answer(run: Run, told: Overview) -> tuple[str, list[Component | str]]:
    """The effect, then its cause and what mends it; where there is no gap, or a longer silence, that."""
    longest, gap, silent = told.report.longest, told.longest, run.timeline.open_silences
    if longest is None or gap is None or (silent is not None and silent.longest_ns > longest.gap_ns):
        plain = answer([run])
        return plain.effect, [plain.cause]
    gap = with_shown_names(gap)
    others = f", as did {names_words(longest.names[1:], shown)}" if longest.requests > 1 else ""
    mended = mend_gap(gap, run.timeline.trace.meta)
    option = [] if mended is None else [" ", *with_options(mended.sentence)]
    return effect(longest, gap), [f"{waited(gap)}{others}. {why_late(gap)}", *option]


def _waiting(report: StallReport) -> list[Component]:
    """The sum beside the longest wait: an option that cuts the one may leave the other."""
    if report.longest is None:
        return [html.Span("no request gave two tokens")]
    gaps = "1 gap" if report.gaps == 1 else f"all {count(report.gaps)} gaps"
    return [
        html.Span(f"{gaps}, {seconds(report.waiting_ns / 1e9)} of waiting in sum; ", **named("waiting")),
        html.Span(f"the longest is {seconds(report.longest.gap_ns / 1e9)}", **named("itl_longest")),
    ]


def _glance(timeline: Timeline, told: Overview, theme: Theme) -> object:
    longest, gap = told.report.longest, told.longest
    strip = timeline.strip(timeline.start_ns, timeline.end_ns, COLUMNS)
    wall = None if longest is None or gap is None else (longest, gap)
    ends = timeline.start_ns, timeline.end_ns
    return glance_figure(strip, told.report.over_time, timeline.chunk_budget_tokens, wall, ends, theme)


def _length(timeline: Timeline) -> str:
    length = seconds((timeline.end_ns - timeline.start_ns) / 1e9)
    return f"{plural(timeline.num_forwards, 'forward')}, {length}"
