"""The time of one rank, each instant given to the forward on its device, else to what its host did."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import polars as pl
from numpy.typing import NDArray

from engine.batch import ForwardMode
from profiler.forward_table import UNKNOWN_MODE, ForwardTable
from profiler.ledger.parts import HOST_KINDS, PartKind
from profiler.tables import TraceLike, frame

__all__ = ["MODES", "Layer", "RankTime", "rank_times"]

Ints = NDArray[np.int64]
Codes = NDArray[np.uint8]
Above = Callable[[Ints], Ints]

MODES = (*(mode.value for mode in ForwardMode), UNKNOWN_MODE)  # in this order device times stand
_TIMES = (
    *("plan_start_ns", "plan_end_ns", "launch_start_ns", "launch_end_ns"),
    *("start_ns", "end_ns", "result_start_ns", "result_end_ns"),
)
_HOST = (
    (PartKind.RESULT, "result_start_ns", "result_end_ns"),
    (PartKind.LAUNCH, "launch_start_ns", "launch_end_ns"),
    (PartKind.PLAN, "plan_start_ns", "plan_end_ns"),
)
_BELOW = (tuple(kind for kind, _, _ in _HOST), (PartKind.UNTOLD,), (PartKind.WAIT,))  # of `RankTime.below`


@dataclass(frozen=True, slots=True)
class Layer:
    """Intervals that share no instant, in time order, and how much of each no layer above holds.

    Where the intervals that it is made of overlap, the one that started first has the instant.
    """

    start_ns: Ints  # (n,)
    end_ns: Ints
    kind: Codes  # (n,) index of a column of `sums_ns`
    sums_ns: Ints  # (n + 1, kinds) time held by those before each
    whole_ns: Ints  # (n + 1,) the same of all kinds together
    above_ns: Ints  # (n,) time that the layers above hold before each one's end

    @classmethod
    def of(cls, start_ns: Ints, end_ns: Ints, kind: Codes, kinds: int, above: Above | None = None) -> "Layer":
        """A layer of intervals in any order; those without length hold nothing.

        `above` says how much time the layers above hold before some times; None where there are none.
        """
        start, end, order = _disjoint(start_ns, end_ns)
        above_ns = np.zeros(len(order), dtype=np.int64) if above is None else above(end)
        held = end - start - (above_ns if above is None else above_ns - above(start))
        sums = np.zeros((len(order) + 1, kinds), dtype=np.int64)
        sums[np.arange(1, len(order) + 1), kind[order]] = held
        whole = np.append(0, np.cumsum(held))
        return cls(start, end, kind[order], np.cumsum(sums, axis=0), whole, above_ns)

    def until(self, t_ns: Ints, above_ns: Ints | None = None) -> Ints:
        """(times, kinds) time that it holds before each time; `above_ns` is what the layers above hold."""
        at, inside, rest = self._running(t_ns, above_ns)
        held = self.sums_ns[at]
        held[inside, self.kind[at[inside] - 1]] -= rest
        return held

    def whole_until(self, t_ns: Ints, above_ns: Ints | None = None) -> Ints:
        """(times,) the sum of `until` over the kinds."""
        at, inside, rest = self._running(t_ns, above_ns)
        held = self.whole_ns[at]
        held[inside] -= rest
        return held

    def _running(self, t_ns: Ints, above_ns: Ints | None) -> tuple[Ints, Ints, Ints]:
        """How many have started by each time, which times lie in the last of them, and what is left of it."""
        at = np.searchsorted(self.start_ns, t_ns, side="right")
        if not len(self.end_ns):
            return at, at[:0], at[:0]
        inside = np.flatnonzero((at > 0) & (t_ns < self.end_ns[at - 1]))
        last = at[inside] - 1
        rest = self.end_ns[last] - t_ns[inside]
        if above_ns is not None:
            rest -= self.above_ns[last] - above_ns[inside]
        return at, inside, rest


@dataclass(frozen=True, slots=True)
class RankTime:
    """Where the time of a rank went; its device intervals are those of `ForwardTable`, made disjoint."""

    device: Layer  # kinds in order of `MODES`
    position: Ints  # (intervals of `device`,) of each one's forward in the `ForwardTable`
    below: tuple[Layer, ...]  # the host's, then between launch and result: of untold device time, of known
    complete: bool  # whether every forward has all its times, so that what is left is idle

    def device_until(self, t_ns: Ints) -> Ints:
        """(times, modes) device time before each time, by mode in order of `MODES`."""
        return self.device.until(t_ns)

    def host_until(self, t_ns: Ints) -> Ints:
        """(times, kinds) time before each that no device interval holds, in order of `HOST_KINDS`.

        Counts from the time 0: only differences mean something, as before its first forward a rank is idle.
        """
        found = np.zeros((len(t_ns), len(HOST_KINDS)), dtype=np.int64)
        above_ns = self.device.whole_until(t_ns)
        for layer, kinds in zip(self.below, _BELOW, strict=True):
            held = layer.until(t_ns, above_ns)
            found[:, [HOST_KINDS.index(kind) for kind in kinds]] += held
            above_ns += held.sum(axis=1)
        rest = PartKind.IDLE if self.complete else PartKind.UNTOLD
        found[:, HOST_KINDS.index(rest)] += t_ns - above_ns
        return found

    def rest_until(self, t_ns: Ints) -> Ints:
        """(times,) time before each that nothing holds; counts as `host_until`."""
        return t_ns - _held((self.device, *self.below), t_ns)

    def touching(self, start_ns: int, end_ns: int) -> tuple[int, int]:
        """The device intervals [first, last) that share time with [start_ns, end_ns)."""
        first = int(np.searchsorted(self.device.end_ns, start_ns, side="right"))
        return first, max(first, int(np.searchsorted(self.device.start_ns, end_ns, side="left")))


def rank_times(trace: TraceLike, forwards: ForwardTable) -> dict[int, RankTime]:
    """The time of each rank of a trace."""
    times = frame(trace, "forwards", ["rank", *_TIMES]).with_columns(pl.col("rank").fill_null(0))
    ranks = np.unique(forwards.rank).tolist()
    if len(ranks) == 1 and times["rank"].n_unique() == 1:
        return {ranks[0]: _rank_time(forwards, ranks[0], times)}
    return {rank: _rank_time(forwards, rank, times.filter(pl.col("rank") == rank)) for rank in ranks}


def _rank_time(forwards: ForwardTable, rank: int, times: pl.DataFrame) -> RankTime:
    position = np.flatnonzero((forwards.rank == rank) & forwards.on_device)
    mode = np.searchsorted(MODES, forwards.mode[position]).astype(np.uint8)
    start_ns, end_ns = forwards.start_ns[position], forwards.end_ns[position]
    device = Layer.of(start_ns, end_ns, mode, len(MODES))
    pieces = [_intervals(times, start, end) for _, start, end in _HOST]
    kind = np.repeat(np.arange(len(pieces), dtype=np.uint8), [len(start) for start, _ in pieces])
    starts, ends = (np.concatenate(side) for side in zip(*pieces, strict=True))
    layers = [device]
    layers.append(Layer.of(starts, ends, kind, len(pieces), partial(_held, layers[:])))
    on_device = pl.col("start_ns").is_not_null() & pl.col("end_ns").is_not_null()
    flights = times.select("launch_end_ns", "result_start_ns", on_device=on_device)
    for known in (False, True):
        some = flights.filter(pl.col("on_device") == known)
        start, end = _intervals(some, "launch_end_ns", "result_start_ns")
        layers.append(
            Layer.of(start, end, np.zeros(len(start), dtype=np.uint8), 1, partial(_held, layers[:]))
        )
    return RankTime(
        device=device,
        position=position[_disjoint(start_ns, end_ns)[2]],
        below=tuple(layers[1:]),
        complete=not any(times[name].null_count() for name in _TIMES),
    )


def _disjoint(start_ns: Ints, end_ns: Ints) -> tuple[Ints, Ints, Ints]:
    """Intervals in time order, cut to what no earlier one holds, and which each of them was."""
    order = np.flatnonzero(end_ns > start_ns)
    order = order[np.argsort(start_ns[order], kind="stable")]
    start, end = start_ns[order], end_ns[order]
    if len(order):
        start = np.append(start[:1], np.maximum(start[1:], np.maximum.accumulate(end)[:-1]))
    left = end > start
    return start[left], end[left], order[left]


def _held(layers: Sequence[Layer], t_ns: Ints) -> Ints:
    """(times,) time that layers, the uppermost first, hold before each time."""
    held = np.zeros(len(t_ns), dtype=np.int64)
    for layer in layers:
        held += layer.whole_until(t_ns, held)
    return held


def _intervals(times: pl.DataFrame, start: str, end: str) -> tuple[Ints, Ints]:
    known = times.select(start, end).drop_nulls()
    return known[start].to_numpy(), known[end].to_numpy()
