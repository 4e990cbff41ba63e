"""What a forward's time depends on, as columns: read from a trace, or told by sums over a forward's rows."""

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
import polars as pl
from numpy.typing import NDArray

from engine.arithmetic import ForwardSums
from engine.batch import ForwardMode
from engine.shapes import ModelShape
from profiler.tables import TraceLike, frame
from profiler.watched import slowed

__all__ = ["FEATURES", "LAYOUTS", "Forwards", "features_of", "forwards_of", "joined"]

Array = NDArray[np.float64]

FEATURES = (
    *("tokens", "behind_prefix", "pairs_prefix", "pairs_causal", "pairs_decode"),
    *("head", "rows_with_logits"),
)
"""Columns of a forward: new tokens of all rows; those of extend rows that stand behind a prefix, at most;
pairs of rectangles, of triangles and of decode rows; 1 if any row needs logits, else 0; rows that do."""

LAYOUTS = ("one prompt", "behind a prefix", "several prompts", "decode", "mixed")
"""What a forward's rows are: one extend row without prefix; one behind a prefix; several extend rows; decode
rows alone; extend and decode rows."""

_TOTALS = ("extend_tokens", "decode_tokens", "pairs_prefix", "pairs_causal", "pairs_decode")


@dataclass(frozen=True, slots=True)
class Forwards:
    """Measured forwards: (forwards, features) what each had, and (forwards,) the rest."""

    forward_id: NDArray[np.int64]
    features: Array
    decode_tokens: Array
    seconds: Array  # on the device
    mode: NDArray[np.int64]  # of ForwardMode
    layout: NDArray[np.int64]  # index in LAYOUTS

    def __len__(self) -> int:
        return len(self.seconds)

    @property
    def prefix_tokens(self) -> Array:
        """(forwards,) whole tokens of prefix before a new token of extend rows, on average."""
        extend = self.column("tokens") - self.decode_tokens
        before: Array = self.column("pairs_prefix") // np.maximum(extend, 1)
        return before

    def column(self, name: str) -> Array:
        """One of FEATURES, (forwards,)."""
        values: Array = self.features[:, FEATURES.index(name)]
        return values


def features_of(sums: ForwardSums) -> Array:
    """(features,) of one forward."""
    behind = min(sums.extend_tokens, sums.pairs_prefix)
    pairs = (sums.pairs_prefix, sums.pairs_causal, sums.pairs_decode)
    logits = sums.rows_with_logits
    return np.array([sums.tokens, behind, *pairs, min(1, logits), logits], dtype=np.float64)


def forwards_of(trace: TraceLike, shape: ModelShape) -> Forwards:
    """All forwards of a trace with a device time, a known mode and known sums that no profiler slowed.

    `shape` is that of the trace's rank: the head's FLOPs tell how many rows needed logits, which the trace
    does not count. Where they are unknown all rows are taken to.
    """
    forwards = frame(trace, "forwards")
    rows = pl.col("num_extend_seqs") + pl.col("num_decode_seqs")
    logits = (pl.col("flops_head") // (2 * shape.head_params)).fill_null(rows)
    known = (
        forwards.filter(~slowed(trace, forwards))
        .select(
            *(pl.col(name).cast(pl.Int64) for name in (*_TOTALS, "forward_id", "num_extend_seqs", "mode")),
            rows_with_logits=logits,
            time_ns=pl.col("end_ns") - pl.col("start_ns"),
        )
        .drop_nulls()
        .filter(
            (pl.col("time_ns") > 0)
            & pl.col("mode").is_in([mode.value for mode in ForwardMode])
            & pl.all_horizontal(pl.col(*_TOTALS, "rows_with_logits") >= 0)
            & (pl.col("extend_tokens") + pl.col("decode_tokens") > 0)
        )
        .with_columns(
            tokens=pl.col("extend_tokens") + pl.col("decode_tokens"),
            behind_prefix=pl.min_horizontal("extend_tokens", "pairs_prefix"),
            head=pl.col("rows_with_logits").clip(upper_bound=1),
        )
    )
    return Forwards(
        known["forward_id"].to_numpy(),
        known.select(FEATURES).to_numpy().astype(np.float64).reshape(-1, len(FEATURES)),
        known["decode_tokens"].to_numpy().astype(np.float64),
        known["time_ns"].to_numpy() / 1e9,
        known["mode"].to_numpy(),
        known.select(_layout()).to_series().to_numpy(),
    )


def joined(parts: Sequence[Forwards]) -> Forwards:
    """The forwards of several traces as one."""
    names = [field.name for field in fields(Forwards)]
    return Forwards(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))


def _layout() -> pl.Expr:
    """Index in LAYOUTS."""
    mode, several, prefix = pl.col("mode"), pl.col("num_extend_seqs") > 1, pl.col("pairs_prefix") > 0
    at = {name: pl.lit(index, pl.Int64) for index, name in enumerate(LAYOUTS)}
    return (
        pl.when(mode == ForwardMode.DECODE.value)
        .then(at["decode"])
        .when(mode == ForwardMode.MIXED.value)
        .then(at["mixed"])
        .when(several)
        .then(at["several prompts"])
        .when(prefix)
        .then(at["behind a prefix"])
        .otherwise(at["one prompt"])
        .alias("layout")
    )
