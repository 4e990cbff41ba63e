"""Who owns each KV page, kept up to date from the engine's page changes and told as extents of pages."""

from collections.abc import Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.batch import IntColumn
from engine.observer import Owner, PageChange
from profiler.stable_order import stable_order

__all__ = ["Extents", "PageOwners"]

# A page's state in one int64: owner, then the lock, then rid + 1 and node + 1, 0 standing for none.
OWNER_MASK = 3
LOCK_BIT = 2
RID_BIT = 3
NODE_BIT = 33
ID_MASK = (1 << 30) - 1
assert max(Owner) <= OWNER_MASK

PAGE_BYTES = 4

Ints = NDArray[np.int64]


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


class _Segment(NamedTuple):
    """Pages to be told under each of some forwards, each page once, in order of forward and page."""

    forward_ids: NDArray[np.uint32]
    pages: NDArray[np.int64]
    states: NDArray[np.int64]
    keyframe: bool


class PageOwners:
    """The owner of pages 1..`num_pages`, all free at first; page 0 is padding and belongs to nobody.

    Request and node ids must be below 2**30 - 1.
    """

    def __init__(self, num_pages: int) -> None:
        self._states = np.zeros(num_pages + 1, dtype=np.int64)
        self._places = np.zeros(num_pages + 1, dtype=np.int32)  # scratch of `_each_once`
        self._noted: list[_Noted] = []
        self._segments: list[_Segment] = []

    def note(self, forward_id: int, changes: Sequence[PageChange], *, keyframe: bool) -> None:
        """Take over changes, oldest first; `keyframe` asks for every page's owner after them."""
        if changes:
            pages = b"".join([change.pages for change in changes])
            self._noted.append(_Noted(forward_id, changes, pages))
        if keyframe:
            self._settle()
            ids = np.full(len(self._states) - 1, forward_id, dtype=np.uint32)
            every_page = np.arange(1, len(self._states))
            self._segments.append(_Segment(ids, every_page, self._states[1:].copy(), keyframe=True))

    def take(self) -> Extents | None:
        """Extents of what changed since the last call, and keyframes, in order of forward and page.

        A page is told under a forward if its state after the forward's changes is not that before them. None
        when there is nothing to tell.
        """
        self._settle()
        segments, self._segments = self._segments, []
        extents = [_extents(segment) for segment in segments if len(segment.pages)]
        if len(extents) <= 1:
            return extents[0] if extents else None
        return Extents(*(np.concatenate(columns) for columns in zip(*extents, strict=True)))

    def _settle(self) -> None:
        """Bring the states up to date with what was noted, and keep what that changed."""
        noted, self._noted = self._noted, []
        if not noted:
            return
        forwards, pages, states = _flatten(noted)
        if self._each_once(pages):
            before = self._states[pages]
        else:
            forwards, pages, states = _last_of_forward(forwards, pages, states)
            before = np.empty_like(states)
            before[1:] = states[:-1]
            first = np.append(True, pages[1:] != pages[:-1])
            before[first] = self._states[pages[first]]
        self._states[pages] = states  # of a page named twice the last assignment stays
        differs = states != before
        if not differs.all():
            forwards, pages, states = forwards[differs], pages[differs], states[differs]
        forwards, pages, states = _in_order(forwards, pages, states)
        ids = np.array([each.forward_id for each in noted], dtype=np.uint32)
        self._segments.append(_Segment(ids[forwards], pages, states, keyframe=False))

    def _each_once(self, pages: Ints) -> bool:
        """Whether no page is named twice, as when each row of a few decode forwards got a new page."""
        places = np.arange(len(pages), dtype=np.int32)
        self._places[pages] = places
        return bool((self._places[pages] == places).all())


def _last_of_forward(forwards: Ints, pages: Ints, states: Ints) -> tuple[Ints, Ints, Ints]:
    """By page, then forward; of a page told twice under a forward the last state counts."""
    order = stable_order(pages)
    forwards, pages, states = forwards[order], pages[order], states[order]
    last = np.append((pages[1:] != pages[:-1]) | (forwards[1:] != forwards[:-1]), True)
    return forwards[last], pages[last], states[last]


def _in_order(forwards: Ints, pages: Ints, states: Ints) -> tuple[Ints, Ints, Ints]:
    """By forward, then page; as they often are."""
    rises = (forwards[1:] > forwards[:-1]) | ((forwards[1:] == forwards[:-1]) & (pages[1:] > pages[:-1]))
    if rises.all():
        return forwards, pages, states
    by_page = stable_order(pages)
    order = by_page[stable_order(forwards[by_page])]
    return forwards[order], pages[order], states[order]


def _flatten(
    noted: Sequence[_Noted],
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """(pages,) place of the forward in `noted`, page number and new state, in the order of the changes."""
    changes = list(chain.from_iterable(each.changes for each in noted))
    pages, owners, rids, nodes, locked = zip(*changes, strict=True)
    states = np.frombuffer(bytes(owners), dtype=np.uint8).astype(np.int64)
    states |= np.frombuffer(bytes(locked), dtype=np.uint8).astype(np.int64) << LOCK_BIT
    states |= np.array([0 if node is None else node + 1 for node in nodes], dtype=np.int64) << NODE_BIT
    sizes = list(map(len, pages))
    states = np.repeat(states, sizes)
    states |= _row_ids(rids, sizes) << RID_BIT
    forwards = np.repeat(np.arange(len(noted)), [len(each.pages) // PAGE_BYTES for each in noted])
    numbers = np.frombuffer(b"".join([each.pages for each in noted]), dtype=np.int32).astype(np.int64)
    return forwards, numbers, states


def _row_ids(rids: Sequence[IntColumn | None], sizes: Sequence[int]) -> NDArray[np.int64]:
    """(pages,) request ids plus 1, 0 for pages of no row."""
    of_pages = [
        np.full(size, -1, dtype=np.int32) if ids is None else ids
        for ids, size in zip(rids, sizes, strict=True)
    ]
    return np.concatenate(of_pages).astype(np.int64) + 1


def _extents(segment: _Segment) -> Extents:
    """Compress pages into runs of one forward and one state."""
    ids, pages, states, keyframe = segment
    breaks = (pages[1:] != pages[:-1] + 1) | (states[1:] != states[:-1]) | (ids[1:] != ids[:-1])
    starts = np.append(0, np.flatnonzero(breaks) + 1)
    of_run = states[starts]
    return Extents(
        forward_id=ids[starts],
        first_page=pages[starts].astype(np.uint32),
        num_pages=np.diff(starts, append=len(pages)).astype(np.int32),
        owner=(of_run & OWNER_MASK).astype(np.uint8),
        rid=(of_run >> RID_BIT & ID_MASK).astype(np.int32) - 1,
        node=(of_run >> NODE_BIT & ID_MASK).astype(np.int32) - 1,
        locked=(of_run >> LOCK_BIT & 1).astype(np.bool_),
        keyframe=np.full(len(starts), keyframe),
    )
