"""Exact sums over a selected interval."""

import numpy as np
import polars as pl
from numpy.typing import NDArray

from engine.batch import ForwardMode
from profiler.forward_table import UNKNOWN, UNKNOWN_TIME, ForwardTable
from profiler.timeline.tiles import Sums

__all__ = ["sums"]

_LOW_BITS = 32


def sums(
    forwards: ForwardTable, emitted: NDArray[np.int64], stalls: pl.DataFrame, start_ns: int, end_ns: int
) -> Sums:
    """Sums over [start_ns, end_ns); `emitted` is how many tokens each forward gave."""
    starts = (forwards.start_ns >= start_ns) & (forwards.start_ns < end_ns)
    came = (forwards.result_end_ns >= start_ns) & (forwards.result_end_ns < end_ns)
    reaching = stalls.filter((pl.col("start_ns") < end_ns) & (pl.col("end_ns") > start_ns))
    return Sums(
        start_ns=start_ns,
        end_ns=end_ns,
        forwards=int(starts.sum()),
        forwards_by_mode={
            mode.name: count
            for mode in ForwardMode
            if (count := int((forwards.mode[starts] == mode.value).sum()))
        },
        extend_tokens=_total(forwards.extend_tokens[starts]),
        decode_tokens=_total(forwards.decode_tokens[starts]),
        flops=_total(forwards.flops[starts]),
        busy_ns=_busy(forwards, start_ns, end_ns),
        output_tokens=int(emitted[came].sum()) if (forwards.result_end_ns != UNKNOWN_TIME).all() else None,
        stalls=reaching.height,
    )


def _total(values: NDArray[np.int64]) -> int | None:
    """The sum, beyond 64 bits if need be; None when a value is unknown."""
    if (values == UNKNOWN).any():
        return None
    high, low = values >> _LOW_BITS, values & ((1 << _LOW_BITS) - 1)
    return (int(high.sum()) << _LOW_BITS) + int(low.sum())


def _busy(forwards: ForwardTable, start_ns: int, end_ns: int) -> int | None:
    reach = (forwards.start_ns < end_ns) & (forwards.end_ns > start_ns)
    if not forwards.on_device[reach].all():
        return None
    inside = np.minimum(forwards.end_ns[reach], end_ns) - np.maximum(forwards.start_ns[reach], start_ns)
    return int(inside.sum())
