"""What would change the chosen gap: advised options and their price, else what a finding or cause says."""

from collections.abc import Mapping
from typing import Any

from dash import html
from dash.development.base_component import Component

from profiler.advice import Advice
from profiler.findings import Finding, Severity, findings
from profiler.ledger.parts import GapDetail, PartKind
from profiler.ledger.why import main_cause, mend
from profiler.price_rows import Limits, Options, PriceRow
from traces.reader import open_trace
from ui.si_words import percent
from ui.web.attributes import data
from ui.web.metric_heads import named
from ui.web.pages.saturation_evidence import EvidenceOf
from ui.web.runs import Run
from ui.words import UNKNOWN, seconds

__all__ = ["FindingOf", "advised", "change_parts", "found"]

_BY_CHUNKS = frozenset(
    {
        PartKind.OTHERS_PREFILL,
        PartKind.OTHERS_MIXED,
        PartKind.MIXED_EXTRA,
        PartKind.MIXED_UNKNOWN,
        PartKind.DEFERRED,
    }
)
"""Causes that the options which a price list compares have to do with."""

_NEAR = 0.005  # a change that rounds to none


class FindingOf:
    """The finding of each run whose mend comes first, kept for as much of it as there is."""

    def __init__(self) -> None:
        self._kept: dict[tuple[str, int], Finding | None] = {}

    def __call__(self, run: Run) -> Finding | None:
        """The first that is no praise and names a mend. The trace is opened anew: others read the run's."""
        key = (str(run.timeline.path), run.timeline.num_forwards)
        if key not in self._kept:
            told = findings(open_trace(run.timeline.path), stalls=run.timeline.stall_report)
            mends = (each for each in told if each.mend and each.severity is not Severity.FINE)
            self._kept[key] = next(mends, None)
        return self._kept[key]


def change_parts(run: Run, gap: GapDetail, evidence_of: EvidenceOf, finding_of: FindingOf) -> list[Component]:
    """The advice where it can be given, which takes seconds; else a sentence.

    Of a run that grows nothing is tried, as that would be out of date before it is read.
    """
    cause = main_cause(gap)
    if run.timeline.trace.live:
        return found(run, cause, None)
    if cause not in _BY_CHUNKS:
        return found(run, cause, finding_of(run))
    advice = evidence_of.advise(run.index, Limits())
    if isinstance(advice, str):
        note = html.P(f"No other options were tried: {advice}.", className="caption")
        return [*found(run, cause, finding_of(run)), note]
    return advised(advice, run.timeline.trace.meta)


def advised(advice: Advice, meta: Mapping[str, Any]) -> list[Component]:
    """The recommended row of the price list beside the run's own."""
    row = advice.choice.row
    if row is None:
        return [html.P("No options that were tried keep the limits.")]
    own = _own_row(advice, meta)
    arguments = html.Code(" ".join(row.options.arguments()), **named("choice"))
    if own is not None and own.options == row.options:
        said = ["The run has the recommended options already: ", arguments, "."]
        return [html.P(said), _basis(advice)]
    lines = [
        _line("longest_wait", "longest wait", own, row, "longest_wait_s"),
        _line("ttft_long", "TTFT of the longest prompt", own, row, "ttft_long_s"),
        _line("price_itl_p99", "ITL p99", own, row, "itl_p99_s"),
    ]
    return [html.P(arguments), html.Table(html.Tbody(lines), className="change"), _basis(advice)]


def found(run: Run, cause: PartKind | None, finding: Finding | None) -> list[Component]:
    """A finding's mend; without one the option that has to do with the cause."""
    if finding is not None and finding.mend is not None:
        option = [html.Code(" ".join(finding.option)), html.Br()] if finding.option else []
        return [html.P([*option, finding.mend], title=finding.title)]
    told = mend(cause, run.timeline.trace.meta)
    if told is None:
        return [html.P("No option of the scheduler is known to shorten such a gap.", className="muted")]
    option = [html.Code(" ".join(told.option)), html.Br()] if told.option else []
    return [html.P([*option, told.sentence])]


def _own_row(advice: Advice, meta: Mapping[str, Any]) -> PriceRow | None:
    """What the run's own options cost, as far as they are among those tried."""
    engine = meta.get("engine")
    told = engine if isinstance(engine, Mapping) else {}
    size = told.get("chunked_prefill_size")
    if not isinstance(size, int):
        return None
    own = Options(
        size if size > 0 else None,
        mixed=size > 0 and bool(told.get("enable_mixed_chunk")),
        interval=int(told.get("prefill_decode_interval") or 0),
    )
    return next((row for row in advice.rows if row.options == own), None)


def _line(metric: str, words: str, own: PriceRow | None, row: PriceRow, field: str) -> html.Tr:
    before = None if own is None else getattr(own, field)
    after = getattr(row, field)
    change = UNKNOWN if not before or after is None else _change(after / before - 1)
    return html.Tr(
        [
            html.Th(words, scope="row", **named(metric)),
            html.Td(seconds(before)),
            html.Td("→", className="muted"),
            html.Td(html.B(seconds(after))),
            html.Td(change, className="muted"),
        ]
    )


def _change(share: float) -> str:
    return "as long" if abs(share) < _NEAR else f"{'+' if share > 0 else '−'}{percent(abs(share))}"


def _basis(advice: Advice) -> html.P:
    model = "the run's own cost model" if advice.basis.model is None else "a model fitted to its forwards"
    link = html.A("All options", href="/saturation", **data(page="/saturation"))
    return html.P(
        [f"Simulated: its requests through the real scheduler, by {model}. ", link], className="caption"
    )
