"""The pyramid against brute force, and what it must keep at every level."""

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from profiler.pyramid import Level, Pyramid

Intervals = list[list[tuple[int, int]]]  # by track: start and length

INTERVALS = st.lists(
    st.lists(
        st.tuples(
            st.one_of(st.integers(0, 60), st.integers(0, 1 << 40)),
            st.one_of(st.integers(0, 5), st.integers(0, 1 << 30)),
        ),
        max_size=30,
    ),
    min_size=1,
    max_size=4,
)


def columns(tracks: Intervals) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    tracks = [sorted(track) for track in tracks]
    bounds = np.cumsum([0, *map(len, tracks)])
    flat = [interval for track in tracks for interval in track]
    return bounds, np.array([s for s, _ in flat], np.int64), np.array([n for _, n in flat], np.int64)


def brute_force(level: Level, bounds: np.ndarray, starts: np.ndarray, lengths: np.ndarray) -> list[tuple]:
    """Track, bucket, count, busy time and the first longest of each bucket that has any."""
    found = []
    for track, (low, high) in enumerate(pairwise(bounds)):
        for bucket in sorted({int(s) >> level.shift for s in starts[low:high]}):
            at = [i for i in range(low, high) if int(starts[i]) >> level.shift == bucket]
            longest = max(at, key=lambda i: (lengths[i], -i))
            found.append((track, bucket, len(at), sum(int(lengths[i]) for i in at), longest))
    return found


def listed(level: Level) -> list[tuple]:
    tracks = np.repeat(np.arange(len(level.bounds) - 1), np.diff(level.bounds))
    parts = (tracks, level.bucket, level.count, level.busy_ns, level.longest)
    return list(zip(*(part.tolist() for part in parts), strict=True))


@given(INTERVALS)
def test_every_level_is_what_counting_gives(tracks: Intervals) -> None:
    bounds, starts, lengths = columns(tracks)
    for level in Pyramid.build(bounds, starts, lengths).levels:
        assert listed(level) == brute_force(level, bounds, starts, lengths)


@given(INTERVALS)
def test_counts_and_busy_time_are_the_same_at_all_levels(tracks: Intervals) -> None:
    bounds, starts, lengths = columns(tracks)
    pyramid = Pyramid.build(bounds, starts, lengths)
    assert bool(pyramid.levels) == bool(len(starts))
    for level in pyramid.levels:
        for track in range(len(tracks)):
            low, high = level.bounds[track], level.bounds[track + 1]
            assert level.count[low:high].sum() == len(tracks[track])
            assert level.busy_ns[low:high].sum() == sum(length for _, length in tracks[track])
    if pyramid.levels:
        top = pyramid.levels[-1]
        assert len(top.bucket) == sum(map(bool, tracks))


@given(INTERVALS, st.integers(0, 1 << 41), st.integers(1, 1 << 41))
def test_a_window_holds_the_buckets_that_reach_into_it(tracks: Intervals, start: int, length: int) -> None:
    bounds, starts, lengths = columns(tracks)
    for level in Pyramid.build(bounds, starts, lengths).levels:
        for track in range(len(tracks)):
            mine = level.bucket[level.bounds[track] : level.bounds[track + 1]].tolist()
            wanted = [b for b in mine if b << level.shift < start + length and (b + 1) << level.shift > start]
            assert level.bucket[level.window(track, start, start + length)].tolist() == wanted


@given(INTERVALS, st.floats(0.1, 1e13))
def test_the_chosen_level_is_the_coarsest_that_fits(tracks: Intervals, width_ns: float) -> None:
    pyramid = Pyramid.build(*columns(tracks))
    chosen = pyramid.level_for(width_ns)
    fits = [level for level in pyramid.levels if 1 << level.shift <= width_ns]
    assert chosen is (fits[-1] if fits else None)
