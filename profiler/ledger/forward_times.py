"""What the ledger asks of each forward of a rank: where its result lies in the rank's time."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engine.batch import ForwardMode
from profiler.forward_table import UNKNOWN, UNKNOWN_TIME, ForwardTable
from profiler.ledger.rank_time import MODES, RankTime

__all__ = ["ForwardTimes"]

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class ForwardTimes:
    """(forwards,) columns of a trace of one rank. An interval is one of `RankTime.device`; -1 is none.

    `started` counts the intervals that start before the result, `straddles` is the one that holds it, `ahead`
    the last to start before it, if it starts after the forward's own: a forward launched ahead.
    """

    t_ns: Ints  # when its result was processed; UNKNOWN_TIME where that is not known
    start_ns: Ints  # of its own device interval; both 0 where it has none
    end_ns: Ints
    extra_from_ns: Ints  # from where on a MIXED forward is extra; `end_ns` where nothing is
    extra_unknown: NDArray[np.bool_]
    mode: Ints  # index into `MODES`
    interval: Ints  # its own
    begun: Ints  # forwards that start before the result, whether they have a device interval or not
    started: Ints
    straddles: Ints
    ahead: Ints
    device_ns: Ints  # (forwards, modes) before its result
    host_ns: Ints  # (forwards, kinds) before its result
    late_result: NDArray[np.bool_]  # whether its device time ends by its result

    @classmethod
    def of(cls, forwards: ForwardTable, time: RankTime, mixed_extra_ns: Ints) -> "ForwardTimes":
        """Those of a trace of one rank."""
        t_ns = forwards.result_end_ns
        start_ns, end_ns = np.zeros(len(forwards), np.int64), np.zeros(len(forwards), np.int64)
        interval = np.full(len(forwards), -1)
        interval[time.position] = np.arange(len(time.position))
        start_ns[time.position], end_ns[time.position] = time.device.start_ns, time.device.end_ns
        started = np.searchsorted(time.device.start_ns, t_ns, side="left")
        before = started - 1
        ends = time.device.end_ns[before] if len(time.device.end_ns) else np.zeros(len(forwards), np.int64)
        mixed = forwards.mode == ForwardMode.MIXED.value
        unknown = mixed & (mixed_extra_ns == UNKNOWN)
        extra_ns = np.where(mixed & ~unknown, mixed_extra_ns, 0)
        return cls(
            t_ns=t_ns,
            start_ns=start_ns,
            end_ns=end_ns,
            extra_from_ns=np.maximum(start_ns, np.minimum(end_ns, forwards.end_ns - extra_ns)),
            extra_unknown=unknown,
            mode=np.searchsorted(MODES, forwards.mode),
            interval=interval,
            begun=np.searchsorted(forwards.start_ns, t_ns, side="left"),
            started=started,
            straddles=np.where((before >= 0) & (ends > t_ns), before, -1),
            ahead=np.where((before > interval) & ((interval >= 0) | (ends > t_ns)), before, -1),
            device_ns=time.device_until(t_ns),
            host_ns=time.host_until(t_ns),
            late_result=(end_ns <= t_ns) & (t_ns != UNKNOWN_TIME),
        )
