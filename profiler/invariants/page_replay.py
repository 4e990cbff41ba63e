"""Page owners over a run, rebuilt from the extents of the `pages` table.

Extents are taken apart into pages and followed page by page, as columns, from keyframe to keyframe.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from engine.observer import Owner
from profiler.recorder import KEYFRAME_FORWARDS
from profiler.stable_order import stable_order

__all__ = ["KINDS", "MOST_PAGES", "PageReplay", "pool_size", "replay_pages"]

KINDS = ("free", "evictable", "protected", "private")
MOST_PAGES = 1 << 26  # of a pool that is followed: its pages take a gigabyte
FREE, EVICTABLE, PROTECTED, PRIVATE = range(len(KINDS))
NOBODY = -1  # the rid of a page that is no row's

Ints = NDArray[np.int64]

TOTALS = {"rank": pl.Int64, "forward_id": pl.Int64, **{f"owned_{kind}": pl.Int64 for kind in KINDS}}
HOLDINGS = {"rank": pl.Int64, "rid": pl.Int64, "forward_id": pl.Int64, "held_pages": pl.Int64}
DIFFERENCES = {
    "rank": pl.Int64,
    "forward_id": pl.Int64,
    "page": pl.Int64,
    "told": pl.String,
    "replayed": pl.String,
}


@dataclass(frozen=True, slots=True)
class PageReplay:
    """What the extents say of the first forward, and of each after whose result something had changed."""

    totals: pl.DataFrame  # pages of each kind after a forward: owned_free, owned_evictable, ...
    holdings: pl.DataFrame  # pages of a request's row after a forward, where their number changed
    differences: (
        pl.DataFrame
    )  # the first page in which a keyframe is not what the changes before it add up to
    keyframes: int  # how many there are


class _Changes(NamedTuple):
    """Pages that get an owner, one an element, in the order in which they do; (changes,) columns."""

    forward_ids: Ints
    pages: Ints
    kinds: Ints
    rids: Ints


@dataclass(slots=True)
class _Found:
    """What is found on the way; totals and holdings as changes, to be added up by forward and kind or rid."""

    totals: list[pl.DataFrame] = field(default_factory=list)
    holdings: list[pl.DataFrame] = field(default_factory=list)
    differences: list[tuple[int, int, int, str, str]] = field(default_factory=list)
    keyframes: int = 0


def replay_pages(pages: pl.DataFrame, forwards: pl.DataFrame) -> PageReplay:
    """Apply the extents rank by rank, in the order in which they were written.

    `pages` and `forwards` are the trace's tables; the pool's size is `forwards.pages_total`. Keyframes come
    with every 1,024th forward of a pool. One that comes otherwise begins a new pool: the recording was
    continued by another engine.
    """
    totals, holdings = [pl.DataFrame(schema=TOTALS)], [pl.DataFrame(schema=HOLDINGS)]
    found = _Found()
    known = forwards.drop_nulls(["rank", "forward_id"])
    for (rank,), of_rank in known.partition_by("rank", as_dict=True, maintain_order=True).items():
        extents = pages.filter(pl.col("rank") == rank)
        if not len(extents):
            continue
        num_pages = pool_size(of_rank)
        replay = _Replay(rank, num_pages, of_rank["forward_id"].to_numpy(), found)
        replay.run(extents)
        begin = _counted(of_rank["forward_id"].to_numpy()[:1], np.array([FREE]), 0)
        totals.append(_totals(rank, num_pages, [begin, *found.totals]))
        holdings.append(_holdings(rank, found.holdings))
        found.totals, found.holdings = [], []
    return PageReplay(
        totals=pl.concat(totals),
        holdings=pl.concat(holdings),
        differences=pl.DataFrame(found.differences, DIFFERENCES, orient="row"),
        keyframes=found.keyframes,
    )


def pool_size(forwards: pl.DataFrame) -> int:
    """Pages of the pool: what most forwards say."""
    sizes, forwards_of_size = np.unique(forwards["pages_total"].fill_null(0).to_numpy(), return_counts=True)
    return max(0, int(sizes[forwards_of_size.argmax()])) if len(sizes) else 0


class _Replay:
    """The pages of one rank; all are free at first."""

    def __init__(self, rank: int, num_pages: int, forward_ids: Ints, found: _Found) -> None:
        self._rank = rank
        self._num_pages = num_pages
        self._forward_ids = forward_ids
        self._found = found
        self._begin = 0  # place of the pool's first forward among all
        self._kinds, self._rids = self._all_free()

    def run(self, extents: pl.DataFrame) -> None:
        """Apply all, stopping at each keyframe."""
        told = extents.select(
            pl.col("forward_id").fill_null(0),
            pl.col("first_page", "num_pages").fill_null(0),
            kind=_kind(),
            rid=pl.col("rid").fill_null(NOBODY),
            keyframe=pl.col("keyframe").fill_null(False),
        )
        keyframe_id = pl.when("keyframe").then("forward_id")
        told = told.with_columns(part=keyframe_id.rle_id())  # runs of changes, and single keyframes
        for part in told.partition_by("part", maintain_order=True):
            changes = self._pages_of(part)
            if part["keyframe"][0]:
                self._keyframe(int(part["forward_id"][0]), changes)
            else:
                self._apply(changes)

    def _pages_of(self, extents: pl.DataFrame) -> _Changes:
        """Pages beyond the pool are left out."""
        counts = extents["num_pages"].to_numpy().clip(0, self._num_pages)
        starts = np.cumsum(counts) - counts
        columns = [extents[name].to_numpy() for name in ("forward_id", "first_page", "kind", "rid")]
        forward_ids, first, kinds, rids = (np.repeat(column, counts) for column in columns)
        pages = first + np.arange(counts.sum()) - np.repeat(starts, counts)
        within = (pages >= 1) & (pages <= self._num_pages)
        return _Changes(forward_ids[within], pages[within], kinds[within], rids[within])

    def _apply(self, changes: _Changes) -> None:
        order = stable_order(changes.pages)
        forward_ids, pages, kinds, rids = (column[order] for column in changes)
        again = np.append(False, pages[1:] == pages[:-1])
        kinds_before = np.where(again, np.roll(kinds, 1), self._kinds[pages])
        rids_before = np.where(again, np.roll(rids, 1), self._rids[pages])
        self._note(forward_ids, kinds_before, rids_before, -1)
        self._note(forward_ids, kinds, rids, +1)
        last = np.append(pages[1:] != pages[:-1], True)[: len(pages)]
        self._kinds[pages[last]], self._rids[pages[last]] = kinds[last], rids[last]

    def _keyframe(self, forward_id: int, changes: _Changes) -> None:
        self._found.keyframes += 1
        kinds, rids = self._all_free()
        kinds[changes.pages], rids[changes.pages] = changes.kinds, changes.rids
        place = int(np.searchsorted(self._forward_ids, forward_id))
        if (place - self._begin) % KEYFRAME_FORWARDS:
            self._begin = place
            ids = np.full(self._num_pages, forward_id, dtype=np.int64)
            self._note(ids, self._kinds[1:], self._rids[1:], -1)
            self._note(ids, kinds[1:], rids[1:], +1)
            self._kinds, self._rids = kinds, rids
            return
        differ = np.flatnonzero((kinds != self._kinds) | (rids != self._rids))
        if len(differ):
            page = int(differ[0])
            told, replayed = _owner(kinds, rids, page), _owner(self._kinds, self._rids, page)
            self._found.differences.append((self._rank, forward_id, page, told, replayed))

    def _note(self, forward_ids: Ints, kinds: Ints, rids: Ints, sign: int) -> None:
        """Keep, added up, how many pages of each kind and of each row a forward took or gave."""
        self._found.totals.append(_counted(forward_ids, kinds, sign))
        of_rows = kinds == PRIVATE
        self._found.holdings.append(_counted(forward_ids[of_rows], rids[of_rows], sign))

    def _all_free(self) -> tuple[Ints, Ints]:
        size = self._num_pages + 1
        return np.full(size, FREE, dtype=np.int64), np.full(size, NOBODY, dtype=np.int64)


def _counted(forward_ids: Ints, keys: Ints, sign: int) -> pl.DataFrame:
    """How often a forward and a key occur together, times `sign`, as `more`."""
    pairs = pl.DataFrame({"forward_id": forward_ids, "key": keys})
    return pairs.group_by("forward_id", "key").agg(more=sign * pl.len().cast(pl.Int64))


def _summed(changes: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """Changes of numbers by forward and key, added up within each forward, in order."""
    none = pl.DataFrame(schema=dict.fromkeys(("forward_id", "key", "more"), pl.Int64))
    together = pl.concat([none, *changes]).group_by("forward_id", "key").agg(pl.col("more").sum())
    return together.sort("forward_id", "key")


def _totals(rank: int, num_pages: int, changes: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """Pages of each kind after each forward that changed any."""
    summed = _summed(changes)
    by_kind = [
        pl.col("more").filter(pl.col("key") == kind).sum().alias(f"owned_{name}")
        for kind, name in enumerate(KINDS)
    ]
    deltas = summed.group_by("forward_id", maintain_order=True).agg(by_kind)
    owned = [pl.col(f"owned_{name}").cum_sum() for name in KINDS]
    owned[FREE] += num_pages
    return deltas.select(pl.lit(rank, pl.Int64).alias("rank"), "forward_id", *owned)


def _holdings(rank: int, changes: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """Pages of each request's row after each forward that changed their number, in order of forwards."""
    summed = _summed(changes).rename({"key": "rid"}).filter(pl.col("more") != 0)
    held = pl.col("more").cum_sum().over("rid")
    return summed.select(pl.lit(rank, pl.Int64).alias("rank"), "rid", "forward_id", held_pages=held)


def _owner(kinds: Ints, rids: Ints, page: int) -> str:
    return f"row of request {rids[page]}" if kinds[page] == PRIVATE else KINDS[kinds[page]]


def _kind() -> pl.Expr:
    owner, locked = pl.col("owner"), pl.col("locked").fill_null(False)
    kind = (
        pl.when(owner == Owner.ROW.value)
        .then(PRIVATE)
        .when(owner == Owner.TREE.value)
        .then(pl.when(locked).then(PROTECTED).otherwise(EVICTABLE))
        .otherwise(FREE)
    )
    return kind.cast(pl.Int64)
