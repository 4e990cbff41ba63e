"""What riding in a MIXED forward cost its decode rows, estimated from the trace's decode-only forwards."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from engine.batch import ForwardMode

__all__ = ["DECODE_MEDIAN", "mixed_extras"]

DECODE_MEDIAN = "median of DECODE forwards within 25 %"  # the estimator's name in frames and views
_WITHIN = 0.25


@dataclass(frozen=True, slots=True)
class _Decodes:
    """DECODE forwards in order of `kv_tokens`."""

    rows: NDArray[np.int64]
    kv_tokens: NDArray[np.int64]
    device_ns: NDArray[np.int64]

    def near(self, rows: int) -> "_Decodes":
        """Those with about as many rows."""
        keep = np.abs(self.rows - rows) <= _WITHIN * rows
        return _Decodes(self.rows[keep], self.kv_tokens[keep], self.device_ns[keep])

    def median_ns(self, kv_tokens: int) -> float | None:
        """Median device time of those that read about as much KV."""
        low = np.searchsorted(self.kv_tokens, kv_tokens * (1 - _WITHIN), side="left")
        high = np.searchsorted(self.kv_tokens, kv_tokens * (1 + _WITHIN), side="right")
        return float(np.median(self.device_ns[low:high])) if high > low else None


def mixed_extras(forwards: pl.DataFrame, forward_ids: Iterable[int]) -> dict[int, int | None]:
    """The mixed extra in nanoseconds of each MIXED forward among `forward_ids`; None where it is unknown.

    It is the forward's device time less that of a decode-only forward of the same decode rows: the median of
    the DECODE forwards whose decode_tokens and kv_tokens are each within 25 % of the MIXED forward's
    decode_tokens and pairs_decode (the tokens its decode rows read). Never below 0, never above the forward.
    """
    known = forwards.with_columns(device_ns=pl.col("end_ns") - pl.col("start_ns"))
    mixed = known.filter(
        (pl.col("mode") == ForwardMode.MIXED.value) & pl.col("forward_id").is_in(list(forward_ids))
    )
    decodes = _decodes(known)
    near: dict[int, _Decodes] = {}
    extras: dict[int, int | None] = {}
    for forward_id, rows, kv_tokens, device_ns in mixed.select(
        "forward_id", "decode_tokens", "pairs_decode", "device_ns"
    ).iter_rows():
        extras[forward_id] = None
        if rows is None or kv_tokens is None or device_ns is None:
            continue
        if rows not in near:
            near[rows] = decodes.near(rows)
        alone_ns = near[rows].median_ns(kv_tokens)
        if alone_ns is not None:
            extras[forward_id] = min(max(device_ns - round(alone_ns), 0), device_ns)
    return extras


def _decodes(forwards: pl.DataFrame) -> _Decodes:
    columns = ("decode_tokens", "kv_tokens", "device_ns")
    known = (
        forwards.filter(pl.col("mode") == ForwardMode.DECODE.value)
        .select(pl.col(name).cast(pl.Int64) for name in columns)
        .drop_nulls()
        .sort("kv_tokens")
    )
    return _Decodes(*(known[name].to_numpy() for name in columns))
