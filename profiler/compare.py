"""Runs of one workload under different policies, side by side: rows for a table, and what they mean."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from profiler import sentences
from profiler.latency import Spread

__all__ = ["CHUNKED", "MIXED", "WHOLE", "Comparison", "PolicyRow", "compare", "policy_row"]

WHOLE, CHUNKED, MIXED = "whole", "chunked", "mixed"


@dataclass(frozen=True, slots=True)
class PolicyRow:
    """One policy's numbers; times in seconds, None is unknown. The longest gap stands before percentiles."""

    policy: str
    worst_gap_s: float | None
    worst_gap_rid: str | None  # who waited
    worst_gap_forward_id: int | None  # the forward that took the most of it
    worst_gap_culprit: str | None  # the request that took the most of it
    worst_gap_forwards: int  # others' forwards in it
    waiting_s: float | None  # the sum of all gaps of all requests
    ttft: Spread
    itl: Spread
    output_tokens_per_s: float | None
    largest_forward_tokens: int | None
    memory_peak_bytes: int | None
    activation_peak_bytes: int | None  # of that, the most that one forward added


@dataclass(frozen=True, slots=True)
class Comparison:
    """Three policies on the same arrivals."""

    rows: tuple[PolicyRow, ...]
    sentences: tuple[str, ...]


def compare(whole: Mapping[str, Any], chunked: Mapping[str, Any], mixed: Mapping[str, Any]) -> Comparison:
    """Compare `profiler.summary.summarize` of three runs: chunking off, chunked, chunked and mixed."""
    said = (
        sentences.cap(whole, chunked),
        sentences.wall(whole, chunked),
        sentences.hidden_wall("chunking alone", chunked),
        sentences.mixing(chunked, mixed),
        sentences.price(chunked, mixed),
    )
    named = {WHOLE: whole, CHUNKED: chunked, MIXED: mixed}
    return Comparison(
        rows=tuple(policy_row(policy, summary) for policy, summary in named.items()),
        sentences=tuple(sentence for sentence in said if sentence is not None),
    )


def policy_row(policy: str, summary: Mapping[str, Any]) -> PolicyRow:
    """One run's numbers, out of its summary."""
    worst = summary["worst_stall"]
    return PolicyRow(
        policy=policy,
        worst_gap_s=worst["gap_s"],
        worst_gap_rid=worst["rid"],
        worst_gap_forward_id=worst["culprit_forward_id"],
        worst_gap_culprit=next(iter(worst["culprit_rids"]), None),
        worst_gap_forwards=len(worst["forward_ids"]),
        waiting_s=summary["waiting_s"],
        ttft=Spread(**summary["ttft_s"]),
        itl=Spread(**summary["itl_s"]),
        output_tokens_per_s=summary["output_tokens_per_s"],
        largest_forward_tokens=summary["largest_forward_tokens"],
        memory_peak_bytes=summary["memory_peak_bytes"],
        activation_peak_bytes=summary["activation_peak_bytes"],
    )
