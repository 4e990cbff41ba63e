"""Who owns each KV page, kept up to date from the engine's page changes and told as extents of pages."""

from collections.abc import Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.observer import Owner, PageChange

__all__ = ["Extents", "PageOwners"]

# A page's state in one int64: owner, then the lock, then rid + 1 and node + 1, 0 standing for none.
OWNER_MASK = 3
LOCK_BIT = 2
RID_BIT = 3
NODE_BIT = 33
ID_MASK = (1 << 30) - 1
assert max(Owner) <= OWNER_MASK

PAGE_BYTES = 4
SEGMENT_BIT = 32  # in sort keys, above the page number


class Extents(NamedTuple):
    """Runs of consecutive pages of one state each, as (runs,) columns; rid and node are -1 for none."""

    forward_id: NDArray[np.uint32]
    first_page: NDArray[np.uint32]
    num_pages: NDArray[np.int32]
    owner: NDArray[np.uint8]
    rid: NDArray[np.int32]
    node: NDArray[np.int32]
    locked: NDArray[np.bool_]
    keyframe: NDArray[np.bool_]


class _Noted(NamedTuple):
    """What one forward told."""

    forward_id: int
    changes: Sequence[PageChange]
    pages: bytes  # int32 numbers of the changes' pages, one change after the other
    keyframe: bool  # whether to tell every page after them


class _Segment(NamedTuple):
    """Pages to be told under one forward, with their states; a page may stand there more than once."""

    forward_id: int
    keyframe: bool
    pages: NDArray[np.int64]
    states: NDArray[np.int64]


class PageOwners:
    """The owner of pages 1..`num_pages`, all free at first; page 0 is padding and belongs to nobody.

    Request and node ids must be below 2**30 - 1.
    """

    def __init__(self, num_pages: int) -> None:
        self._states = np.zeros(num_pages + 1, dtype=np.int64)
        self._noted: list[_Noted] = []

    def note(self, forward_id: int, changes: Sequence[PageChange], *, keyframe: bool) -> None:
        """Take over changes, oldest first; `keyframe` asks for every page's owner after them."""
        pages = b"".join([change.pages for change in changes])
        self._noted.append(_Noted(forward_id, changes, pages, keyframe))

    def take(self) -> Extents | None:
        """Extents of what changed since the last call, and keyframes, in order of forward and page.

        A page is told under a forward if its state after the forward's changes is not that before them. None
        when there is nothing to tell.
        """
        noted, self._noted = self._noted, []
        pages, states = _flatten(noted)
        segments = []
        end = 0
        for each in noted:
            start, end = end, end + len(each.pages) // PAGE_BYTES
            if start < end:
                segments.append(self._change(each.forward_id, pages[start:end], states[start:end]))
            if each.keyframe:
                every_page = np.arange(1, len(self._states))
                segments.append(_Segment(each.forward_id, True, every_page, self._states[1:].copy()))
        return _extents(segments) if any(len(segment.pages) for segment in segments) else None

    def _change(self, forward_id: int, pages: NDArray[np.int64], states: NDArray[np.int64]) -> _Segment:
        before = self._states[pages]
        self._states[pages] = states  # of a page named twice the last assignment stays
        now = self._states[pages]
        differs = now != before
        if differs.all():
            return _Segment(forward_id, False, pages, now)
        return _Segment(forward_id, False, pages[differs], now[differs])


def _flatten(noted: Sequence[_Noted]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """(pages,) page numbers and new states, in the order of the changes."""
    changes = list(chain.from_iterable(each.changes for each in noted))
    if not changes:
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    pages, owners, rids, nodes, locked = zip(*changes, strict=True)
    states = np.frombuffer(bytes(owners), dtype=np.uint8).astype(np.int64)
    states |= np.frombuffer(bytes(locked), dtype=np.uint8).astype(np.int64) << LOCK_BIT
    states |= _ids(rids) << RID_BIT
    states |= _ids(nodes) << NODE_BIT
    numbers = np.frombuffer(b"".join([each.pages for each in noted]), dtype=np.int32).astype(np.int64)
    return numbers, np.repeat(states, list(map(len, pages)))


def _ids(values: Sequence[int | None]) -> NDArray[np.int64]:
    """Ids plus 1, 0 for none."""
    missing = values.count(None)
    if missing == len(values):
        return np.zeros(len(values), dtype=np.int64)
    if not missing:
        return np.array(values, dtype=np.int64) + 1
    return np.array([0 if value is None else value + 1 for value in values], dtype=np.int64)


def _extents(segments: Sequence[_Segment]) -> Extents:
    """Compress each segment's pages into runs of one state."""
    sizes = [len(segment.pages) for segment in segments]
    of_segment = np.repeat(np.arange(len(segments)), sizes)
    keys = (of_segment << SEGMENT_BIT) | np.concatenate([segment.pages for segment in segments])
    keys, first = np.unique(keys, return_index=True)
    states = np.concatenate([segment.states for segment in segments])[first]
    breaks = (np.diff(keys) != 1) | (np.diff(states) != 0)
    starts = np.concatenate(([0], np.flatnonzero(breaks) + 1))
    run_keys, run_states = keys[starts], states[starts]
    run_segments = run_keys >> SEGMENT_BIT
    return Extents(
        forward_id=np.array([segment.forward_id for segment in segments], dtype=np.uint32)[run_segments],
        first_page=run_keys.astype(np.uint32),  # the key's low bits
        num_pages=np.diff(starts, append=len(keys)).astype(np.int32),
        owner=(run_states & OWNER_MASK).astype(np.uint8),
        rid=(run_states >> RID_BIT & ID_MASK).astype(np.int32) - 1,
        node=(run_states >> NODE_BIT & ID_MASK).astype(np.int32) - 1,
        locked=(run_states >> LOCK_BIT & 1).astype(np.bool_),
        keyframe=np.array([segment.keyframe for segment in segments])[run_segments],
    )
