"""What would change the chosen gap: the advised options and their price, else what its cause says."""

from collections.abc import Mapping
from typing import Any

from dash import html
from dash.development.base_component import Component

from profiler.advice import Advice
from profiler.findings import Thresholds
from profiler.findings.mends import for_cause
from profiler.findings.run import Run as Found
from profiler.ledger.parts import GapDetail, PartKind
from profiler.ledger.why import Mend, main_cause, mend_gap
from profiler.price_rows import Limits, Options, PriceRow
from traces.reader import open_trace
from ui.si_words import percent
from ui.web.attributes import data
from ui.web.metric_heads import named
from ui.web.pages.saturation_evidence import EvidenceOf
from ui.web.runs import Run
from ui.words import UNKNOWN, seconds

__all__ = ["MendOf", "advised", "change_parts", "mended"]

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


class MendOf:
    """What findings of a run would name against a cause, kept for as much of the run as there is."""

    def __init__(self) -> None:
        self._kept: dict[tuple[str, int, PartKind | None], Mend | None] = {}

    def __call__(self, run: Run, cause: PartKind | None) -> Mend | None:
        """None where no option is known. The trace is opened anew: others read the run's."""
        timeline = run.timeline
        key = (str(timeline.path), timeline.num_forwards, cause)
        if key not in self._kept:
            told = Found(open_trace(timeline.path), Thresholds(), stalls=timeline.stall_report)
            self._kept[key] = for_cause(told, cause)
        return self._kept[key]


def change_parts(run: Run, gap: GapDetail, evidence_of: EvidenceOf, mend_of: MendOf) -> list[Component]:
    """The advice where it can be given, which takes seconds; else a sentence.

    Of a run that grows nothing is tried, as that would be out of date before it is read.
    """
    cause = main_cause(gap)
    if run.timeline.trace.live:
        return mended(mend_gap(gap, run.timeline.trace.meta))
    if cause not in _BY_CHUNKS:
        return mended(mend_of(run, cause))
    advice = evidence_of.advise(run.index, Limits())
    if isinstance(advice, str):
        note = html.P(f"No other options were tried: {advice}.", className="caption")
        return [*mended(mend_of(run, cause)), note]
    return advised(advice, run.timeline.trace.meta)


def advised(advice: Advice, meta: Mapping[str, Any]) -> list[Component]:
    """The recommended row of the price list beside the run's own."""
    row = advice.choice.row
    if row is None:
        return [html.P("No options that were tried keep the limits.")]
    own = _own_row(advice, meta)
    arguments = html.Code(" ".join(row.options.arguments()), **named("choice"))
    if own is not None and own.options == row.options:
        said: list[Component | str] = ["The run has the recommended options already: ", arguments, "."]
        return [html.P(said), _basis(advice)]
    lines = [
        _line("longest_wait", "longest wait", own, row, "longest_wait_s"),
        _line("ttft_long", "TTFT of the longest prompt", own, row, "ttft_long_s"),
        _line("price_itl_p99", "ITL p99", own, row, "itl_p99_s"),
    ]
    return [html.P(arguments), html.Table(html.Tbody(lines), className="change"), _basis(advice)]


def mended(told: Mend | None) -> list[Component]:
    """A sentence with its option."""
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
