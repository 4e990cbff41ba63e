"""The demo's table and words, from the summaries of its traces."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from profiler.compare import Comparison, compare
from profiler.latency import Spread
from profiler.sentences import saturation_point
from ui.tables import columns
from ui.words import count, memory, name, rate, seconds

__all__ = ["comparison_table", "explain"]

STEADY = 1.5  # times that the median gaps of two steady runs may differ


def comparison_table(comparison: Comparison) -> Table:
    """One column a policy; the longest gap stands first, since percentiles can hide it."""
    rows = comparison.rows
    lines = [
        ("longest gap", [seconds(row.worst_gap_s) for row in rows]),
        ("  of request", [name(row.worst_gap_rid) for row in rows]),
        ("  caused by", [name(row.worst_gap_culprit) for row in rows]),
        ("  in forward", [count(row.worst_gap_forward_id) for row in rows]),
        ("waiting in sum", [seconds(row.waiting_s) for row in rows]),
        *_spread("ITL", [row.itl for row in rows]),
        *_spread("TTFT", [row.ttft for row in rows]),
        ("output", [rate(row.output_tokens_per_s) for row in rows]),
        ("largest forward", [f"{count(row.largest_forward_tokens)} tokens" for row in rows]),
        ("memory peak", [memory(row.memory_peak_bytes) for row in rows]),
        ("  of one forward", [memory(row.activation_peak_bytes) for row in rows]),
    ]
    return columns("Three policies, the same requests", [row.policy for row in rows], lines)


def explain(console: Console, policies: Sequence[Mapping[str, Any]], sweep: Mapping[str, Any]) -> None:
    """Print the table and what it means; `policies` are the summaries of whole, chunked and mixed."""
    whole, chunked, mixed = policies
    comparison = compare(whole, chunked, mixed)
    console.print(comparison_table(comparison))
    unsteady = _unsteady(whole["itl_s"]["p50"], chunked["itl_s"]["p50"])
    for sentence in (*comparison.sentences, saturation_point(sweep["saturation"]), *unsteady):
        console.print(Text(f"• {sentence}"))


def _unsteady(whole_s: float | None, chunked_s: float | None) -> tuple[str, ...]:
    """Says so when decode forwards, which these two policies run alike, took different times in them."""
    if whole_s is None or chunked_s is None or 1 / STEADY <= whole_s / chunked_s <= STEADY:
        return ()
    return (
        f"This machine's speed changed meanwhile: the usual gap was {seconds(whole_s)} in the first run and "
        f"{seconds(chunked_s)} in the second, though both decode alike. Run the demo again when it is quiet.",
    )


def _spread(title: str, spreads: Sequence[Spread]) -> list[tuple[str, list[str]]]:
    return [
        (f"{title} p50", [seconds(spread.p50) for spread in spreads]),
        (f"{title} p99", [seconds(spread.p99) for spread in spreads]),
        (f"{title} max", [seconds(spread.max) for spread in spreads]),
    ]
