"""The parts of gaps that lie between two forwards and hold nothing unusual, many at once."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engine.batch import ForwardMode
from profiler.forward_table import UNKNOWN_MODE
from profiler.ledger.forward_times import ForwardTimes
from profiler.ledger.parts import HOST_KINDS, PartKind
from profiler.ledger.rank_time import MODES

__all__ = ["CAUSES", "Extras", "PairParts", "pair_parts"]

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

CAUSES = np.array([kind.value for kind in PartKind if kind > PartKind.OWN_OTHER])
_OTHERS = {
    ForwardMode.EXTEND.value: PartKind.OTHERS_PREFILL,
    ForwardMode.MIXED.value: PartKind.OTHERS_MIXED,
    ForwardMode.DECODE.value: PartKind.OTHERS_DECODE,
    UNKNOWN_MODE: PartKind.OTHERS_DECODE,
}


@dataclass(frozen=True, slots=True)
class Extras:
    """(pairs,) where a MIXED forward that the requests decode in is charged to its chunks."""

    from_ns: Ints
    until_ns: Ints
    unknown: Bools  # whether what riding cost is not known, so that it is all of the forward


@dataclass(frozen=True, slots=True)
class PairParts:
    """(pairs,) columns of gaps that are alike."""

    ns: Ints  # (pairs, kinds) in order of PartKind; a row sums to the gap
    gap_ns: Ints
    late_ns: Ints
    cause: Ints  # PartKind
    own_from_ns: Ints  # where the own forward's device time in the gap begins
    next_from_ns: Ints  # and that of the one launched ahead, if they have a row in it
    own_extra: Extras
    next_extra: Extras


def pair_parts(times: ForwardTimes, position: Ints, before: Ints, own: Ints, in_next: Bools) -> PairParts:
    """Parts of gaps from the token of forward `before` to that of `own`.

    `position` are the forwards of the device intervals; `in_next` says who has a row in the forward that was
    launched ahead and started before the later token came.
    """
    start_ns, end_ns = times.t_ns[before], times.t_ns[own]
    pairs = np.arange(len(own))
    device = times.device_ns[own] - times.device_ns[before]
    own_from = np.minimum(np.maximum(times.start_ns[own], start_ns), times.end_ns[own])
    own_from = np.where(times.end_ns[own] > start_ns, own_from, times.end_ns[own])
    device[pairs, times.mode[own]] -= times.end_ns[own] - own_from
    following = position[times.ahead[own]] if len(position) else np.zeros(len(own), dtype=np.int64)
    next_until = np.where(in_next, np.minimum(times.end_ns[following], end_ns), end_ns)
    next_from = np.where(in_next, np.maximum(times.start_ns[following], start_ns), next_until)
    device[pairs, times.mode[following]] -= next_until - next_from
    own_extra = _extras(times, own, own_from, times.end_ns[own])
    next_extra = _extras(times, following, next_from, next_until)
    ns = np.zeros((len(own), len(PartKind)), dtype=np.int64)
    for column, mode in enumerate(MODES):
        ns[:, _OTHERS[mode]] += device[:, column]
    ns[:, PartKind.OWN_DECODE] = own_extra.from_ns - own_from
    ns[:, PartKind.OWN_OTHER] = next_extra.from_ns - next_from
    for extra in (own_extra, next_extra):
        length = extra.until_ns - extra.from_ns
        ns[:, PartKind.MIXED_UNKNOWN] += np.where(extra.unknown, length, 0)
        ns[:, PartKind.MIXED_EXTRA] += np.where(extra.unknown, 0, length)
    ns[:, HOST_KINDS[0] :] = times.host_ns[own] - times.host_ns[before]
    gap_ns = end_ns - start_ns
    late_ns = gap_ns - ns[:, PartKind.OWN_DECODE] - ns[:, PartKind.OWN_OTHER]
    return PairParts(
        ns=ns,
        gap_ns=gap_ns,
        late_ns=late_ns,
        cause=np.where(late_ns > 0, CAUSES[ns[:, CAUSES].argmax(axis=1)], PartKind.OWN_DECODE.value),
        own_from_ns=own_from,
        next_from_ns=next_from,
        own_extra=own_extra,
        next_extra=next_extra,
    )


def _extras(times: ForwardTimes, forward: Ints, from_ns: Ints, until_ns: Ints) -> Extras:
    """What is extra of a forward's device time from `from_ns` to `until_ns`."""
    unknown = times.extra_unknown[forward]
    begin = np.where(unknown, from_ns, np.clip(times.extra_from_ns[forward], from_ns, until_ns))
    return Extras(begin, until_ns, unknown)
