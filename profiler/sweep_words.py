"""What a sweep found and what it did not cover, in words, from its trace."""

from collections.abc import Iterator, Sequence

import polars as pl

from profiler.saturation import Saturation, decode_saturation, saturation
from profiler.sentences import saturation_point
from profiler.sweep import Sweep
from profiler.sweep_cases import SweepCase
from profiler.tables import TraceLike, frame
from profiler.wording import count, mebibytes, tokens

__all__ = ["sweep_words"]

NAMED = 3  # cases that are named one by one
FACTS = ("layout", "q", "status", "tokens", "low", "high", "fit_kind", "num_sizes")


def sweep_words(trace: TraceLike, sweep: Sweep) -> Iterator[str]:
    """A line for each curve, the most memory that a measured forward took, and what is not covered."""
    plan = sweep.plan
    if trace.meta.get("provenance") == "simulated":
        yield "All times are simulated, none was measured."
    if plan.tokens:
        for prefix in plan.prefixes:
            yield _point(saturation(trace, prefix=prefix))
    if plan.batch:
        yield _point(decode_saturation(trace))
    peak = _activation_peak(trace)
    if peak is not None:
        largest, size_bytes = peak
        yield f"A forward of {tokens(largest)} held {mebibytes(size_bytes)} of activations, the most."
    if sweep.uncovered:
        yield f"Not measured, as the budget ended first: {_named(sweep.uncovered)}."
    yield f"Not covered: {'; '.join(_beyond(sweep))}."


def _point(found: Saturation) -> str:
    return saturation_point({name: getattr(found, name) for name in FACTS})


def _activation_peak(trace: TraceLike) -> tuple[int, int] | None:
    """Tokens and bytes of the measured forward that took most beside what was held; None where unknown."""
    taken = (
        frame(trace, "forwards")
        .filter(pl.col("num_extend_seqs") <= 1)  # not those that put KV into the cache
        .select(
            tokens=pl.col("extend_tokens") + pl.col("decode_tokens"),
            taken=pl.col("memory_peak_bytes") - pl.col("memory_allocated_bytes"),
        )
        .drop_nulls()
        .sort("taken", "tokens")
    )
    return None if taken.is_empty() else (taken["tokens"][-1], taken["taken"][-1])


def _beyond(sweep: Sweep) -> Iterator[str]:
    """What lies outside of the plan."""
    plan = sweep.plan
    if plan.tokens:
        yield f"more than {tokens(plan.largest)} in a forward"
        longest = max(plan.prefixes)
        yield f"prefixes of more than {tokens(longest)}" if longest else "prefixes"
    else:
        yield "prompts"
    if plan.batch:
        rows = f"{count(plan.most_rows)} decode row{'' if plan.most_rows == 1 else 's'}"
        yield f"more than {rows}, rows of other than {count(plan.kv_tokens)} KV tokens"
    else:
        yield "decode batches"
    yield "prompts and decode rows in one forward"


def _named(cases: Sequence[SweepCase]) -> str:
    names = ", ".join(map(_case, cases[:NAMED]))
    more = len(cases) - NAMED
    return f"{names} and {count(more)} more" if more > 0 else names


def _case(case: SweepCase) -> str:
    if case.decode:
        return f"{count(case.tokens)} decode row{'' if case.tokens == 1 else 's'}"
    behind = f" behind {count(case.prefix_tokens)}" if case.prefix_tokens else ""
    return f"{tokens(case.tokens)}{behind}"
