"""What a stall's span says of its gap: every nanosecond of it, and whose chunks filled it."""

from typing import Any

from profiler.export.forwards import extent_text
from profiler.ledger.parts import Chunk, GapDetail
from profiler.ledger.why import main_cause
from profiler.ledger.words import PART_WORDS
from profiler.wording import duration

__all__ = ["costliest_chunks", "gap_arguments"]


def gap_arguments(gap: GapDetail) -> dict[str, Any]:
    """Arguments of a listed stall; what is unknown is left out. The values of `ledger_ns` sum to `gap_ns`."""
    args: dict[str, Any] = {"gap_ns": gap.gap_ns, "late_ns": gap.late_ns}
    if gap.median_gap_ns is not None:
        args["median_gap_ns"] = gap.median_gap_ns
    cause = main_cause(gap)
    if cause is not None:
        args["cause"] = PART_WORDS[cause]
    args["ledger_ns"] = {words: ns for kind, words in PART_WORDS.items() if (ns := gap.sum_ns([kind]))}
    args["culprits"] = [f"{culprit.name} {duration(culprit.device_ns / 1e9)}" for culprit in gap.culprits]
    if gap.costliest is not None:
        args["costliest_chunk"] = _text(gap.costliest)
    if gap.mixed_extra_ns is not None:
        args["mixed_extra_ns"] = gap.mixed_extra_ns
        args["mixed_extra_estimator"] = gap.mixed_extra_estimator
    return args


def costliest_chunks(gap: GapDetail) -> list[Chunk]:
    """Of each culprit the chunk that took most of the gap, the earliest of equals; in order of culprits."""
    most: dict[int, Chunk] = {}
    for chunk in gap.chunks:
        if chunk.rid not in most or chunk.in_gap_ns > most[chunk.rid].in_gap_ns:
            most[chunk.rid] = chunk
    return [most[culprit.rid] for culprit in gap.culprits]


def _text(chunk: Chunk) -> str:
    """Of whom, which chunk, and which part of the prompt: long-1 9/10 [1,024, 1,152)."""
    number = str(chunk.number) if chunk.of is None else f"{chunk.number}/{chunk.of}"
    return f"{chunk.name} {number} {extent_text(chunk.prefix_len, chunk.extend_end)}"
