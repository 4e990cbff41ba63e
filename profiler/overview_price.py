"""What mending the longest wait is predicted to cost, in a sentence out of a price list."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from profiler.advice import Advice
from profiler.ledger.parts import PartKind
from profiler.ledger.report import StallGroup
from profiler.price_rows import Options, PriceRow
from profiler.wording import count, duration

__all__ = ["is_priced", "predicted_price"]

_BY_CHUNKS = frozenset(
    {
        PartKind.OTHERS_PREFILL,
        PartKind.OTHERS_MIXED,
        PartKind.MIXED_EXTRA,
        PartKind.MIXED_UNKNOWN,
        PartKind.DEFERRED,
    }
)
"""Causes that the options of a price list have to do with."""

_SAME = 1.1  # a wait is shorter when the other is this many times as long
_HELD_UP = 0.5  # of a gap
_ALIKE = 0.005  # a share that rounds to 0 %


def is_priced(longest: StallGroup | None) -> bool:
    """Whether options of a price list may shorten the longest wait: trying them takes seconds."""
    return longest is not None and longest.cause in _BY_CHUNKS and longest.late_ns > _HELD_UP * longest.gap_ns


def predicted_price(advice: Advice, engine: Mapping[str, Any]) -> str | None:
    """Of the run's own options with mixing if that cuts its longest wait, else of the advised options.

    `engine` are the run's options, as meta.json has them. None where neither has a shorter wait.
    """
    own = _own(engine)
    now = _row(advice, own)
    if now is None or now.longest_wait_s is None:
        return None
    mixed = None if own.chunk_tokens is None else _row(advice, replace(own, mixed=True))
    for row in (mixed, advice.choice.row):
        if (
            row is not None
            and row.longest_wait_s is not None
            and now.longest_wait_s > row.longest_wait_s * _SAME
        ):
            added = "--enable-mixed-chunk" if row is mixed else " ".join(row.options.arguments())
            waits = f"longest wait {duration(row.longest_wait_s)} instead of {duration(now.longest_wait_s)}"
            return f"Predicted{_of(advice)} with {added}: {waits}{_first_token(now, row)}."
    return None


def _of(advice: Advice) -> str:
    """Of how many requests, where not all were tried: their longest wait need not be the run's."""
    tried = advice.workload
    if tried.kind == "all":
        return ""
    return f" for {count(len(tried.requests))} of its {count(tried.of_requests)} requests"


def _own(engine: Mapping[str, Any]) -> Options:
    size, interval = engine.get("chunked_prefill_size"), engine.get("prefill_decode_interval")
    return Options(
        chunk_tokens=size if isinstance(size, int) and size > 0 else None,
        mixed=engine.get("enable_mixed_chunk") is True,
        interval=interval if isinstance(interval, int) else 0,
    )


def _row(advice: Advice, options: Options) -> PriceRow | None:
    return next((row for row in advice.rows if row.options == options), None)


def _first_token(now: PriceRow, then: PriceRow) -> str:
    """What the longest prompt pays."""
    if not now.ttft_long_s or then.ttft_long_s is None:
        return ""
    later = then.ttft_long_s / now.ttft_long_s - 1
    if abs(later) < _ALIKE:
        return ", first token of the longest prompt as soon as now"
    return (
        f", first token of the longest prompt {abs(later) * 100:.0f} % {'later' if later > 0 else 'sooner'}"
    )
