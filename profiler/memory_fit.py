"""An upper envelope of what forwards added to the memory held, against their size."""

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import linprog

from profiler.tables import TraceLike, frame
from profiler.watched import slowed

__all__ = ["Envelope", "fit_envelope", "measured_activations"]

Array = NDArray[np.float64]

_QUANTILE = 0.95  # of a group, and of the groups, that lie below; of fewer than 20 forwards all do
_STEPS = 4  # an octave of tokens, and of prefix: forwards closer than that are one group


@dataclass(frozen=True, slots=True)
class Envelope:
    """bytes = base + share * estimate + prefix token * prefix, above most of what was measured."""

    base_bytes: float
    share: float  # of the estimate from the model's shape
    prefix_token_bytes: float

    def at(self, estimate_bytes: float, prefix_tokens: float) -> float:
        """Bytes of a forward whose activations are estimated so, behind so many tokens of prefixes."""
        return self.base_bytes + self.share * estimate_bytes + self.prefix_token_bytes * prefix_tokens

    def share_above(self, measured: pl.DataFrame) -> float:
        """Share of measured forwards that needed more than 1 % above the envelope."""
        estimate, prefix = pl.col("estimate_bytes"), pl.col("prefix_tokens")
        limit = self.base_bytes + self.share * estimate + self.prefix_token_bytes * prefix
        above = measured.select((pl.col("activation_bytes") > 1.01 * limit).mean()).item()
        return float(above)


def measured_activations(trace: TraceLike) -> pl.DataFrame:
    """Forwards that were measured and that no profiler disturbed, with what each added to the memory held.

    tokens, of all rows; prefix_tokens, of extend rows; activation_bytes; estimate_bytes, from the shape.
    """
    forwards = frame(trace, "forwards")
    return (
        forwards.filter(~slowed(trace, forwards))
        .select(
            tokens=pl.col("extend_tokens") + pl.col("decode_tokens"),
            prefix_tokens="prefix_tokens",
            activation_bytes=pl.col("memory_peak_bytes") - pl.col("memory_allocated_bytes"),
            estimate_bytes="activation_est_bytes",
        )
        .drop_nulls()
        .filter(pl.col("activation_bytes") >= 0)
    )


def fit_envelope(measured: pl.DataFrame) -> Envelope:
    """The 0.95 quantile, of terms that are not negative, through that of each group of near forwards.

    `measured` is as `measured_activations` gives it, and not empty. Quantile regression as a linear program:
    Koenker and Bassett, "Regression quantiles", 1978.
    """
    near = [
        (pl.col(name) + 1).log(2).mul(_STEPS).round().alias(f"near_{name}")
        for name in ("tokens", "prefix_tokens")
    ]
    high = ((pl.len() - 1) * _QUANTILE).ceil().cast(pl.UInt32)
    tops = measured.group_by(near).agg(pl.all().sort_by("activation_bytes").gather(high).first())
    most = tops["activation_bytes"].to_numpy().astype(np.float64)
    count = len(most)
    columns = np.column_stack([np.ones(count), tops["estimate_bytes"], tops["prefix_tokens"]])
    units = np.maximum(columns.max(axis=0), 1.0)
    scale = max(float(most.max()), 1.0)
    miss = sparse.eye_array(count)
    answer = linprog(
        np.concatenate([np.zeros(3), np.full(count, _QUANTILE), np.full(count, 1 - _QUANTILE)]),
        A_eq=sparse.hstack([columns / units, miss, -miss]),
        b_eq=most / scale,
    )
    base, share, per_token = (answer.x[:3] * scale / units).tolist()
    return Envelope(base, share, per_token)
