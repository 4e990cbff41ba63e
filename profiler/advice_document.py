"""Advice as one JSON-safe document."""

from dataclasses import asdict
from typing import Any

from profiler.advice import Advice
from profiler.advice_choice import VALUES, Choice
from profiler.advice_words import answer, reasons
from profiler.price_rows import PriceRow

__all__ = ["document"]


def document(advice: Advice) -> dict[str, Any]:
    """What `advise --json` prints; docs/metrics.md defines every key. Unknown is None, times are seconds."""
    row, point, tried = advice.choice.row, advice.point, advice.workload
    interval = advice.interval()
    return {
        "answer": answer(advice),
        "reasons": reasons(advice),
        "recommended": None
        if row is None
        else {
            **asdict(row.options),
            "arguments": list(row.options.arguments()),
            "interval_tokens": None if interval is None else list(interval),
        },
        "limits": asdict(advice.choice.limits),
        "binding": _binding(advice.choice),
        "point": {
            "tokens": point.tokens,
            "low": point.low,
            "high": point.high,
            "by": "points" if point.by_points else "cost model",
            "status_of_points": advice.measured.status,
        },
        "workload": {
            "kind": tried.kind,
            "requests": len(tried.requests),
            "of_requests": tried.of_requests,
            "longest_prompt_tokens": tried.longest_prompt,
            "left_out": tried.left_out,
            "open_ended": tried.open_ended,
            "shared_prefixes": tried.shared_prefixes,
        },
        "cost": {
            "kind": "own" if advice.basis.model is None else "fitted",
            "setting": advice.basis.setting.label,
            "provenance": advice.basis.setting.provenance,
            "forwards": advice.basis.num_forwards,
            "host_overhead_ns": advice.basis.host_overhead_ns,
        },
        "page_size": advice.config.page_size,
        "rows": [_row(advice, each) for each in advice.rows],
    }


def _row(advice: Advice, row: PriceRow) -> dict[str, Any]:
    margins = {name: advice.margins.of(row, name) for name in VALUES}
    breaks = row.breaks(advice.margins.tightened(row, advice.choice.limits))
    return {**asdict(row), "margins": margins, "breaks": list(breaks)}


def _binding(choice: Choice) -> list[dict[str, Any]]:
    return [
        {
            "limit": found.limit,
            "limit_s": found.limit_s,
            "best_s": found.best_s,
            "best": asdict(found.best.options),
            "alone": found.alone,
        }
        for found in choice.bindings
    ]
