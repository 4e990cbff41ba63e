"""What riding in a MIXED forward cost its decode rows, estimated from the trace's decode-only forwards."""

import numpy as np
from numpy.typing import NDArray

from engine.batch import ForwardMode
from profiler.forward_table import UNKNOWN, ForwardTable
from profiler.range_median import RangeMedian

__all__ = ["DECODE_MEDIAN", "mixed_extras"]

Ints = NDArray[np.int64]

DECODE_MEDIAN = "median of DECODE forwards within 25 %"  # the estimator's name in frames and views
_WITHIN = 0.25


def mixed_extras(forwards: ForwardTable) -> Ints:
    """(forwards,) the mixed extra in nanoseconds of each MIXED forward; UNKNOWN where there is none.

    It is the forward's device time less that of a decode-only forward of the same decode rows: the median of
    the DECODE forwards whose decode_tokens and kv_tokens are each within 25 % of the MIXED forward's
    decode_tokens and pairs_decode (the tokens its decode rows read). Never below 0, never above the forward.
    Forwards slowed by a profiler have none and estimate none.
    """
    told = forwards.on_device & ~forwards.slowed
    length_ns = np.where(told, forwards.end_ns - forwards.start_ns, UNKNOWN)
    mixed = forwards.mode == ForwardMode.MIXED.value
    decode = forwards.mode == ForwardMode.DECODE.value
    extras = np.full(len(forwards), UNKNOWN, dtype=np.int64)
    extras[mixed] = _extras(
        *(column[mixed] for column in (forwards.decode_tokens, forwards.pairs_decode, length_ns)),
        *(column[decode] for column in (forwards.decode_tokens, forwards.kv_tokens, length_ns)),
    )
    return extras


def _extras(
    rows: Ints, kv_tokens: Ints, device_ns: Ints, decode_rows: Ints, decode_kv_tokens: Ints, decode_ns: Ints
) -> Ints:
    """(mixed,) the extra of MIXED forwards by the DECODE forwards given after them; -1 where it is unknown.

    Arguments are decode rows, KV tokens that these read, and device time; negative numbers are unknown.
    """
    extras = np.full(len(rows), -1, dtype=np.int64)
    usable = (decode_rows >= 0) & (decode_kv_tokens >= 0) & (decode_ns >= 0)
    order = np.flatnonzero(usable)[np.argsort(decode_kv_tokens[usable], kind="stable")]
    decode_rows, decode_kv_tokens, decode_ns = decode_rows[order], decode_kv_tokens[order], decode_ns[order]
    known = (rows >= 0) & (kv_tokens >= 0) & (device_ns >= 0)
    for count in np.unique(rows[known]):
        asked = np.flatnonzero(known & (rows == count))
        near = np.abs(decode_rows - count) <= _WITHIN * count
        kv = decode_kv_tokens[near]
        low = np.searchsorted(kv, kv_tokens[asked] * (1 - _WITHIN), side="left")
        high = np.searchsorted(kv, kv_tokens[asked] * (1 + _WITHIN), side="right")
        if len(kv):
            alone_ns = RangeMedian(decode_ns[near]).of(low, high)
            found = np.flatnonzero(~np.isnan(alone_ns))
            extra = device_ns[asked[found]] - np.rint(alone_ns[found]).astype(np.int64)
            extras[asked[found]] = extra.clip(0, device_ns[asked[found]])
    return extras
