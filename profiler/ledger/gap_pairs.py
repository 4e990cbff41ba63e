"""One pass over the rows in order of forwards: gaps counted by the two forwards that they lie between.

Requests that decode together get their tokens from the same forwards, so millions of gaps are a few of each
pair of forwards. A gap with anything else in it is *unusual* and told apart: one by one they are few.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engine.batch import Outcome, Role
from profiler.forward_table import UNKNOWN_TIME
from profiler.ledger.forward_times import ForwardTimes
from profiler.ledger.held_back import HeldBack
from profiler.ledger.row_blocks import RowBlock
from profiler.ledger.ttft_rows import TtftRows
from profiler.stable_order import stable_order

__all__ = ["BlockGaps", "GapPairs", "UnusualGaps"]

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

_NONE: Ints = np.zeros(0, dtype=np.int64)
_RID_BITS = 32  # ids and positions are below 2 ** 32


@dataclass(frozen=True, slots=True)
class BlockGaps:
    """(gaps,) columns of the usual gaps of a block in order of rid, and their pairs."""

    rid: Ints
    token_index: Ints
    pair: Ints  # which one each lies between
    before: Ints  # (pairs,) position of the forward of the earlier token
    own: Ints  # (pairs,) and of the later one
    in_next: Bools  # (pairs,) whether they have a row in the forward launched ahead, before the later token
    count: Ints  # (pairs,)


@dataclass(frozen=True, slots=True)
class UnusualGaps:
    """(gaps,) columns of gaps with rows, delays or roles of their request that others do not have."""

    rid: Ints
    token_index: Ints
    before: Ints
    own: Ints
    own_role: Ints
    in_next: Bools
    in_order: Bools  # whether no other rows of the request than those between the two tokens can matter


class GapPairs:
    """Follows every request from row to row; `kept` collects the rows that are asked for afterwards."""

    def __init__(self, times: ForwardTimes, held: HeldBack) -> None:
        self._times = times
        self._held = np.sort((held.rid << _RID_BITS) + held.forward)
        self._reach = np.maximum.accumulate(times.t_ns)
        self._token_forward = np.full(0, -1, dtype=np.int64)  # by rid: of its last token
        self._token_index = np.full(0, -1, dtype=np.int64)
        self._since = np.zeros(0, dtype=np.bool_)  # whether it had a row since that gave none
        self._next = np.full(0, -1, dtype=np.int64)  # scratch: its first row after the block
        self.kept: list[RowBlock] = []

    def blocks(self, blocks: Iterator[RowBlock]) -> Iterator[tuple[BlockGaps, UnusualGaps]]:
        """The gaps of a trace, in order of forwards block by block."""
        waiting: RowBlock | None = None
        for block in blocks:
            rows = block if waiting is None else waiting.then(block)
            # Of a gap it must be known whether the request is in the forward that runs at its end.
            known = int(np.searchsorted(self._reach, self._start(int(rows.forward[-1])), side="right"))
            cut = int(np.searchsorted(rows.forward, min(known, int(rows.forward[-1])), side="left"))
            if cut:
                yield self._gaps(rows.of(slice(0, cut)), rows.of(slice(cut, None)))
            waiting = rows.of(slice(cut, None))
        if waiting is not None and len(waiting):
            yield self._gaps(waiting, waiting.of(slice(0, 0)))

    def _start(self, forward: int) -> int:
        """When a forward's device interval starts; what has none runs at no token's time."""
        at = self._times.interval[forward]
        return int(self._times.start_ns[forward]) if at >= 0 else UNKNOWN_TIME

    def _gaps(self, rows: RowBlock, ahead: RowBlock) -> tuple[BlockGaps, UnusualGaps]:
        self._grow(rows, ahead)
        self.kept.append(TtftRows.wanted(rows))
        order = stable_order(rows.rid)
        rid = rows.rid[order].astype(np.int64)
        forward = rows.forward[order].astype(np.int64)
        index = rows.token_index[order].astype(np.int64)
        role = rows.role[order]
        gave = (rows.outcome[order] == Outcome.EMITTED.value) & (index >= 0)
        gave &= self._times.t_ns[forward] != UNKNOWN_TIME
        begins = np.diff(rid, prepend=-1) != 0
        before, before_index, alone = self._earlier(rid, forward, index, gave, begins)
        following = self._following(rid, forward, ahead)
        self._remember(rid, forward, index, gave, begins)
        gaps = np.flatnonzero(gave & (before >= 0) & (index == before_index + 1))
        rid, own, before, role = rid[gaps], forward[gaps], before[gaps], role[gaps]
        following, index = following[gaps], index[gaps]
        in_next = self._in_next(own, following)
        in_order = self._in_order(before, own, following, in_next)
        usual = alone[gaps] & (role == Role.DECODE.value) & in_order & ~self._held_in(rid, before, own)
        columns = (rid, index, before, own, role.astype(np.int64), in_next, in_order)
        unusual = UnusualGaps(*(column[~usual] for column in columns))
        return _paired(rid[usual], index[usual], before[usual], own[usual], in_next[usual]), unusual

    def _grow(self, rows: RowBlock, ahead: RowBlock) -> None:
        largest = max((int(block.rid.max()) for block in (rows, ahead) if len(block)), default=-1)
        more = largest + 1 - len(self._since)
        if more > 0:
            more = max(more, len(self._since))
            for name in ("_token_forward", "_token_index", "_next"):
                setattr(self, name, np.append(getattr(self, name), np.full(more, -1, dtype=np.int64)))
            self._since = np.append(self._since, np.zeros(more, dtype=np.bool_))

    def _earlier(
        self, rid: Ints, forward: Ints, index: Ints, gave: Bools, begins: Bools
    ) -> tuple[Ints, Ints, Bools]:
        """(rows,) forward and index of the request's last token before each; no other row of it between."""
        at = np.arange(len(rid))
        first = np.maximum.accumulate(np.where(begins, at, 0))
        last = np.maximum.accumulate(np.where(gave, at, -1))
        earlier = np.append(-1, last[:-1])
        here = earlier >= first
        before = np.where(here, forward[earlier], self._token_forward[rid])
        before_index = np.where(here, index[earlier], self._token_index[rid])
        alone = np.where(here, at - earlier == 1, (at == first) & ~self._since[rid])
        return before, before_index, alone

    def _following(self, rid: Ints, forward: Ints, ahead: RowBlock) -> Ints:
        """(rows,) the forward of the request's next row; -1 where none is known."""
        self._next[ahead.rid[::-1]] = ahead.forward[::-1]
        same = np.append(np.diff(rid) == 0, np.zeros(min(1, len(rid)), dtype=np.bool_))
        following = np.where(same, np.append(forward[1:], -1)[: len(rid)], self._next[rid])
        self._next[ahead.rid] = -1
        return following

    def _remember(self, rid: Ints, forward: Ints, index: Ints, gave: Bools, begins: Bools) -> None:
        ends = np.append(np.flatnonzero(begins)[1:], len(rid)) - 1
        last = np.maximum.accumulate(np.where(gave, np.arange(len(rid)), -1))[ends]
        here = last >= np.flatnonzero(begins)
        who = rid[ends]
        self._since[who] = np.where(here, last != ends, True)
        self._token_forward[who[here]] = forward[last[here]]
        self._token_index[who[here]] = index[last[here]]

    def _in_next(self, own: Ints, following: Ints) -> Bools:
        ahead = self._times.ahead[own]
        found: Bools = (following >= 0) & (ahead >= 0) & (self._times.interval[following] == ahead)
        return found

    def _in_order(self, before: Ints, own: Ints, following: Ints, in_next: Bools) -> Bools:
        """Whether forwards ran one after another, each before its result, at most one launched ahead."""
        times = self._times
        ran = (following >= 0) & (times.interval[following] >= 0)
        begun = ran & (times.start_ns[following] < times.t_ns[own])
        return times.late_result[before] & times.late_result[own] & (in_next | ~begun)

    def _held_in(self, rid: Ints, before: Ints, own: Ints) -> Bools:
        if not len(self._held):
            return np.zeros(len(rid), dtype=np.bool_)
        since = np.searchsorted(self._held, (rid << _RID_BITS) + before, side="right")
        return np.searchsorted(self._held, (rid << _RID_BITS) + self._times.begun[own], side="left") > since


def _paired(rid: Ints, index: Ints, before: Ints, own: Ints, in_next: Bools) -> BlockGaps:
    """Gaps with their pairs, found without sorting: a forward's are few, and taken one after another."""
    what = before * 2 + in_next
    first = int(own.min()) if len(own) else 0
    place = own - first
    pair = np.zeros(len(rid), dtype=np.int64)
    owns, whats, counts = [_NONE], [_NONE], [_NONE]
    left, pairs = np.arange(len(rid)), 0
    while len(left):
        number = np.full(int(place[left].max()) + 1, -1, dtype=np.int64)
        number[place[left]] = what[left]  # of each forward one of its pairs
        same = number[place[left]] == what[left]
        forwards = np.flatnonzero(number >= 0)
        owns.append(forwards + first)
        whats.append(number[forwards])
        counts.append(np.bincount(place[left[same]], minlength=len(number))[forwards])
        number[forwards] = pairs + np.arange(len(forwards))
        pair[left[same]] = number[place[left[same]]]
        pairs, left = pairs + len(forwards), left[~same]
    all_whats = np.concatenate(whats)
    in_following = (all_whats & 1).astype(np.bool_)
    return BlockGaps(
        rid, index, pair, all_whats >> 1, np.concatenate(owns), in_following, np.concatenate(counts)
    )
