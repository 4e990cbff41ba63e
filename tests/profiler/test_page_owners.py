"""Page owners: extents add up to what a dictionary of pages would say."""

from array import array

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.observer import Owner, PageChange
from profiler.page_owners import Extents, PageOwners

POOL = 12
State = tuple[int, int | None, int | None, bool]
FREE: State = (Owner.FREE, None, None, False)


@st.composite
def changes(draw: st.DrawFn) -> PageChange:
    pages = draw(st.lists(st.integers(1, POOL), min_size=1, max_size=5, unique=True))
    owner = draw(st.sampled_from(Owner))
    if owner is Owner.ROW:
        rids = draw(st.lists(st.integers(0, 2), min_size=len(pages), max_size=len(pages)))
        return PageChange(array("i", pages), owner, rids=np.array(rids, dtype=np.int32))
    node = draw(st.integers(0, 2)) if owner is Owner.TREE else None
    return PageChange(array("i", pages), owner, None, node, owner is Owner.TREE and draw(st.booleans()))


def row_change(pages: list[int], rid: int) -> PageChange:
    return PageChange(array("i", pages), Owner.ROW, rids=np.full(len(pages), rid, dtype=np.int32))


def states_after(change: PageChange) -> dict[int, State]:
    rids = [None] * len(change.pages) if change.rids is None else change.rids.tolist()
    state = (int(change.owner), change.node, change.locked)
    return {page: (state[0], rid, *state[1:]) for page, rid in zip(change.pages, rids, strict=True)}


def told(extents: Extents | None, *, keyframe: bool) -> dict[int, dict[int, State]]:
    """By forward, the state of each page told."""
    out: dict[int, dict[int, State]] = {}
    if extents is None:
        return out
    columns = [column.tolist() for column in extents]
    for forward, first, count, owner, rid, node, locked, key in zip(*columns, strict=True):
        if key == keyframe:
            state = (owner, None if rid < 0 else rid, None if node < 0 else node, locked)
            pages = range(first, first + count)
            assert not out.setdefault(forward, {}).keys() & set(pages)
            out[forward].update(dict.fromkeys(pages, state))
    return out


@given(
    forwards=st.lists(st.tuples(st.lists(changes(), max_size=4), st.booleans()), max_size=6),
    flush_every=st.integers(1, 4),
)
def test_extents_tell_each_change_once(
    forwards: list[tuple[list[PageChange], bool]], flush_every: int
) -> None:
    owners = PageOwners(POOL)
    states = dict.fromkeys(range(1, POOL + 1), FREE)
    changed: dict[int, dict[int, State]] = {}
    frames: dict[int, dict[int, State]] = {}
    found: dict[int, dict[int, State]] = {}
    found_frames: dict[int, dict[int, State]] = {}
    for forward_id, (told_now, keyframe) in enumerate(forwards):
        before = dict(states)
        for change in told_now:
            states.update(states_after(change))
        differ = {page: states[page] for page in states if states[page] != before[page]}
        changed |= {forward_id: differ} if differ else {}
        frames |= {forward_id: dict(states)} if keyframe else {}
        owners.note(forward_id, told_now, keyframe=keyframe)
        if forward_id % flush_every == 0:
            extents = owners.take()
            found |= told(extents, keyframe=False)
            found_frames |= told(extents, keyframe=True)
    extents = owners.take()
    found |= told(extents, keyframe=False)
    found_frames |= told(extents, keyframe=True)
    assert (found, found_frames) == (changed, frames)


def test_consecutive_pages_of_one_owner_are_one_extent() -> None:
    owners = PageOwners(POOL)
    owners.note(7, [row_change([5, 3, 4, 9], 6)], keyframe=True)
    extents = owners.take()
    assert extents is not None
    assert extents.forward_id.tolist() == [7] * 7
    assert extents.first_page.tolist() == [3, 9, 1, 3, 6, 9, 10]
    assert extents.num_pages.tolist() == [3, 1, 2, 3, 3, 1, 3]
    assert extents.rid.tolist() == [6, 6, -1, 6, -1, 6, -1]
    assert extents.keyframe.tolist() == [False] * 2 + [True] * 5


def test_a_change_undone_within_a_forward_is_not_told() -> None:
    owners = PageOwners(POOL)
    freed = PageChange(array("i", [2, 3]), Owner.FREE)
    owners.note(0, [row_change([2, 3], 1), freed], keyframe=False)
    assert owners.take() is None


def test_later_use_of_the_engines_array_changes_nothing() -> None:
    owners = PageOwners(POOL)
    change = row_change([2, 3], 1)
    owners.note(0, [change], keyframe=False)
    change.pages[0] = 8
    extents = owners.take()
    assert extents is not None
    assert (extents.first_page.tolist(), extents.num_pages.tolist()) == ([2], [2])


@pytest.mark.parametrize("highest", [2**30 - 2])
def test_ids_up_to_their_limit_are_kept(highest: int) -> None:
    owners = PageOwners(POOL)
    owners.note(0, [PageChange(array("i", [1]), Owner.TREE, node=highest, locked=True)], keyframe=False)
    owners.note(1, [row_change([2], highest)], keyframe=False)
    extents = owners.take()
    assert extents is not None
    assert (extents.node[0], extents.rid[1], extents.locked.tolist()) == (highest, highest, [True, False])
