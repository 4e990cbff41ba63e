"""What riding in a MIXED forward cost its decode rows, estimated from the trace's decode-only forwards."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engine.batch import ForwardMode
from profiler.decode_plane import decode_plane
from profiler.forward_table import UNKNOWN, ForwardTable
from profiler.range_median import RangeMedian

__all__ = ["DECODE_MEDIAN", "DECODE_PLANE", "extra_estimators", "mixed_extras"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

DECODE_MEDIAN = "median of DECODE forwards within 25 %"  # the estimators' names in frames and views
DECODE_PLANE = "least squares over DECODE forwards"
_WITHIN = 0.25


def mixed_extras(forwards: ForwardTable) -> Ints:
    """(forwards,) the mixed extra in nanoseconds of each MIXED forward; UNKNOWN where there is none.

    It is the forward's device time less that of a decode-only forward of the same decode rows: the median of
    the DECODE forwards whose decode_tokens and kv_tokens are each within 25 % of the MIXED forward's
    decode_tokens and pairs_decode (the tokens its decode rows read), else what the plane through all DECODE
    forwards says. Never below 0, never above the forward. Forwards slowed by a profiler have none and
    estimate none.
    """
    mixed, alone = _told(forwards)
    by_median = _by_median(mixed, alone)
    lacking = np.flatnonzero(np.isnan(by_median))
    plane = decode_plane(alone.rows, alone.kv_tokens, alone.device_ns) if len(lacking) else None
    if plane is not None:
        by_median[lacking] = plane.ns(mixed.rows[lacking], mixed.kv_tokens[lacking])
    extras = np.full(len(forwards), UNKNOWN, dtype=np.int64)
    found = np.flatnonzero(~np.isnan(by_median))
    extra = mixed.device_ns[found] - np.rint(by_median[found]).astype(np.int64)
    extras[mixed.at[found]] = extra.clip(0, mixed.device_ns[found])
    return extras


def extra_estimators(forwards: ForwardTable, extras: Ints, at: Ints) -> list[str | None]:
    """What each of `mixed_extras` at some positions was estimated by; None where there is none."""
    mixed, alone = _told(forwards)
    mixed = mixed.some(np.isin(mixed.at, at))
    like = set(mixed.at[~np.isnan(_by_median(mixed, alone))].tolist())
    return [
        None if extras[each] == UNKNOWN else DECODE_MEDIAN if each in like else DECODE_PLANE
        for each in at.tolist()
    ]


@dataclass(frozen=True, slots=True)
class _Decodes:
    """(forwards,) the decode rows of forwards whose time they tell."""

    at: Ints  # position in the `ForwardTable`
    rows: Ints
    kv_tokens: Ints  # that these read
    device_ns: Ints

    def some(self, chosen: NDArray[np.bool_]) -> "_Decodes":
        return _Decodes(*(getattr(self, name)[chosen] for name in self.__dataclass_fields__))


def _told(forwards: ForwardTable) -> tuple[_Decodes, _Decodes]:
    """The MIXED forwards of known rows and time, and the DECODE ones."""
    device_ns = forwards.end_ns - forwards.start_ns
    told = forwards.on_device & ~forwards.slowed & (forwards.decode_tokens >= 0)
    found = []
    for mode, kv_tokens in (
        (ForwardMode.MIXED, forwards.pairs_decode),
        (ForwardMode.DECODE, forwards.kv_tokens),
    ):
        at = np.flatnonzero(told & (forwards.mode == mode.value) & (kv_tokens >= 0))
        found.append(_Decodes(at, forwards.decode_tokens[at], kv_tokens[at], device_ns[at]))
    return found[0], found[1]


def _by_median(mixed: _Decodes, alone: _Decodes) -> Floats:
    """(mixed,) what each one's decode rows would take alone; NaN without a DECODE forward like it."""
    found = np.full(len(mixed.at), np.nan)
    order = np.argsort(alone.kv_tokens, kind="stable")
    rows, kv_tokens, device_ns = alone.rows[order], alone.kv_tokens[order], alone.device_ns[order]
    for count in np.unique(mixed.rows):
        asked = np.flatnonzero(mixed.rows == count)
        near = np.abs(rows - count) <= _WITHIN * count
        kv = kv_tokens[near]
        low = np.searchsorted(kv, mixed.kv_tokens[asked] * (1 - _WITHIN), side="left")
        high = np.searchsorted(kv, mixed.kv_tokens[asked] * (1 + _WITHIN), side="right")
        if len(kv):
            found[asked] = RangeMedian(device_ns[near]).of(low, high)
    return found
