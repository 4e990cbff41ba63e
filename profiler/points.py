"""Measured forwards of a trace as points, tokens against time, one set a layout."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import polars as pl

from engine.batch import ForwardMode
from profiler.tables import TraceLike, frame
from profiler.throughput_curve import Work
from profiler.watched import slowed
from profiler.wording import count

__all__ = ["NO_PREFIX", "Layout", "LayoutPoints", "Rows", "decode_points", "prefill_points", "trace_points"]


class Rows(StrEnum):
    """What rows the forwards of a layout hold."""

    ONE_PROMPT = "one prompt a forward"
    PROMPTS = "several prompts a forward"
    UNKNOWN_PROMPTS = "prompts only, their number unknown"
    DECODE = "decode rows alone"


@dataclass(frozen=True, slots=True)
class Layout:
    """What the forwards of a set of points have in common, beside their size.

    `low` to `high` are the prefixes of prompts, summed over a forward's rows, or the mean context of decode
    rows, its own token included; None where the trace does not tell.
    """

    rows: Rows = Rows.ONE_PROMPT
    low: int | None = 0
    high: int | None = 0

    @property
    def words(self) -> str:
        """The layout as people say it."""
        what = "context" if self.rows is Rows.DECODE else "prefix"
        if self.low is None or self.high is None:
            return f"{self.rows}, {what} unknown"
        if not self.high:
            return f"{self.rows}, no {what}"
        span = count(self.low) if self.low == self.high else f"{count(self.low)} to {count(self.high)}"
        return f"{self.rows}, {what} of {span} token{'' if self.high == 1 else 's'}"

    @property
    def work(self) -> Work:
        """How attention's work grows with a forward's tokens."""
        if self.rows is Rows.DECODE:
            return Work(square=0.0, linear=1.0)
        return Work(square=1.0, linear=1.0 + (self.low or 0) + (self.high or 0))


NO_PREFIX = Layout()
"""One prompt a forward, without prefix."""


@dataclass(frozen=True, slots=True)
class LayoutPoints:
    """Points of one layout, in order of forward_id: forward_id, tokens, time_ns (device)."""

    layout: Layout
    points: pl.DataFrame

    @property
    def num_sizes(self) -> int:
        """Distinct numbers of tokens."""
        return self.points["tokens"].n_unique()


def trace_points(trace: TraceLike) -> tuple[LayoutPoints, ...]:
    """Every layout of a trace's forwards, those of more sizes first, then those of more points.

    A forward is a point if it holds prompts alone or decode rows alone and its device interval is known.
    Prefixes and contexts are told apart by octaves, and 0 from all others. Forwards that a profiler slowed
    are left out.
    """
    found = [
        LayoutPoints(_layout(group), group.select("forward_id", "tokens", "time_ns").sort("forward_id"))
        for group in _points(trace).partition_by("rows", "octave", maintain_order=True)
    ]
    return tuple(sorted(found, key=lambda of: (-of.num_sizes, -of.points.height)))


def prefill_points(trace: TraceLike, prefix: int = 0) -> LayoutPoints:
    """One prompt a forward, after a prefix of the octave of `prefix` tokens; empty if there are none."""
    for of in trace_points(trace):
        if of.layout.rows is Rows.ONE_PROMPT and _holds(of.layout, prefix):
            return of
    return LayoutPoints(Layout(low=prefix, high=prefix), _empty())


def decode_points(trace: TraceLike) -> LayoutPoints:
    """Decode rows alone, of the contexts with the most sizes; empty if there are none."""
    for of in trace_points(trace):
        if of.layout.rows is Rows.DECODE:
            return of
    return LayoutPoints(Layout(Rows.DECODE, None, None), _empty())


def _points(trace: TraceLike) -> pl.DataFrame:
    """forward_id, rows, octave, context, tokens, time_ns of every forward that is a point."""
    forwards = frame(trace, "forwards")
    forwards = forwards.filter(~slowed(trace, forwards) & (pl.col("end_ns") > pl.col("start_ns")))
    decodes = pl.coalesce("decode_tokens", "num_decode_seqs")
    prompts = (pl.col("mode") == ForwardMode.EXTEND.value).fill_null(
        (decodes == 0) & (pl.col("extend_tokens") > 0)
    )
    decode = (pl.col("mode") == ForwardMode.DECODE.value).fill_null(
        (pl.col("extend_tokens") == 0) & (decodes > 0)
    )
    seqs = pl.col("num_extend_seqs")
    rows = (
        pl.when(decode)
        .then(pl.lit(Rows.DECODE.value))
        .when(prompts & (seqs == 1))
        .then(pl.lit(Rows.ONE_PROMPT.value))
        .when(prompts & (seqs > 1))
        .then(pl.lit(Rows.PROMPTS.value))
        .when(prompts & seqs.is_null())
        .then(pl.lit(Rows.UNKNOWN_PROMPTS.value))
    )
    return (
        forwards.with_columns(
            rows=rows,
            tokens=pl.when(decode).then(decodes).otherwise("extend_tokens"),
            context=pl.when(decode).then(pl.col("kv_tokens") // decodes).otherwise("prefix_tokens"),
            time_ns=pl.col("end_ns") - pl.col("start_ns"),
        )
        .filter(pl.col("rows").is_not_null() & (pl.col("tokens") > 0))
        .with_columns(octave=pl.col("context").bitwise_leading_zeros())
        .select("forward_id", "rows", "octave", "context", "tokens", "time_ns")
    )


def _layout(group: pl.DataFrame) -> Layout:
    contexts: Sequence[int | None] = [group["context"].min(), group["context"].max()]  # type: ignore[list-item]
    return Layout(Rows(group["rows"][0]), *contexts)


def _holds(layout: Layout, context: int) -> bool:
    return layout.low is not None and layout.low.bit_length() == context.bit_length()


def _empty() -> pl.DataFrame:
    return pl.DataFrame(schema={"forward_id": pl.UInt32, "tokens": pl.Int64, "time_ns": pl.Int64})
