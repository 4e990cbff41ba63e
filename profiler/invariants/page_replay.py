"""Page owners over a run, rebuilt from the extents of the `pages` table."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl

from engine.observer import Owner

__all__ = ["KINDS", "PageReplay", "replay_pages"]

KINDS = ("free", "evictable", "protected", "private")
FREE, EVICTABLE, PROTECTED, PRIVATE = range(len(KINDS))
NOBODY = -1  # the rid of a page that is no row's

TOTALS = {"rank": pl.Int64, "forward_id": pl.Int64, **{f"owned_{kind}": pl.Int64 for kind in KINDS}}
HOLDINGS = {"rank": pl.Int64, "rid": pl.Int64, "forward_id": pl.Int64, "held_pages": pl.Int64}
DIFFERENCES = {
    "rank": pl.Int64,
    "forward_id": pl.Int64,
    "page": pl.Int64,
    **dict.fromkeys(("told", "replayed"), pl.String),
}


@dataclass(frozen=True, slots=True)
class PageReplay:
    """What the extents say about each forward after whose result something had changed."""

    totals: pl.DataFrame  # pages of each kind after a forward: owned_free, owned_evictable, ...
    holdings: pl.DataFrame  # pages of a request's row after a forward, where their number changed
    differences: (
        pl.DataFrame
    )  # the first page in which a keyframe is not what the changes before it add up to
    keyframes: int  # how many there are


@dataclass(slots=True)
class _Found:
    totals: list[tuple[int, ...]] = field(default_factory=list)
    holdings: list[tuple[int, ...]] = field(default_factory=list)
    differences: list[tuple[Any, ...]] = field(default_factory=list)
    keyframes: int = 0


class _Pool:
    """Kind and row of each page; all are free at first. Pages beyond `num_pages` are passed over."""

    def __init__(self, num_pages: int) -> None:
        self.kinds = np.zeros(num_pages + 1, dtype=np.uint8)
        self.rids = np.full(num_pages + 1, NOBODY, dtype=np.int64)
        self.totals = np.array([num_pages, 0, 0, 0], dtype=np.int64)
        self.held: Counter[int] = Counter()  # pages by rid

    def assign(self, first: int, count: int, kind: int, rid: int) -> set[int]:
        """Give an extent to somebody; returns the requests whose pages changed in number."""
        places = slice(max(first, 1), max(first, 1) + count)
        before, owners = self.kinds[places], self.rids[places]
        self.totals -= np.bincount(before, minlength=len(KINDS))
        self.totals[kind] += len(before)
        losers, lost = np.unique(owners[before == PRIVATE], return_counts=True)
        for loser, pages in zip(losers.tolist(), lost.tolist(), strict=True):
            self.held[loser] -= pages
        changed = set(losers.tolist())
        if kind == PRIVATE:
            self.held[rid] += len(before)
            changed.add(rid)
        self.kinds[places], self.rids[places] = kind, rid
        return changed

    def describe(self, page: int) -> str:
        """A page's owner in words."""
        if self.kinds[page] == PRIVATE:
            return f"row of request {self.rids[page]}"
        return KINDS[self.kinds[page]]


def replay_pages(pages: pl.DataFrame, forwards: pl.DataFrame) -> PageReplay:
    """Apply the extents rank by rank, in the order in which they were written.

    `pages` and `forwards` are the trace's tables; the pool's size is `forwards.pages_total`.
    """
    found = _Found()
    sizes = dict(forwards.group_by("rank").agg(pl.col("pages_total").max()).iter_rows())
    for (rank,), extents in pages.partition_by("rank", as_dict=True, maintain_order=True).items():
        _replay_rank(rank, extents, sizes.get(rank) or 0, found)
    return PageReplay(
        totals=pl.DataFrame(found.totals, TOTALS, orient="row"),
        holdings=pl.DataFrame(found.holdings, HOLDINGS, orient="row"),
        differences=pl.DataFrame(found.differences, DIFFERENCES, orient="row"),
        keyframes=found.keyframes,
    )


def _replay_rank(rank: int, extents: pl.DataFrame, num_pages: int, found: _Found) -> None:
    pool = _Pool(num_pages)
    told = extents.with_columns(kind=_kind(), rid=pl.col("rid").fill_null(NOBODY))
    by_forward = told.partition_by("forward_id", as_dict=True, maintain_order=True)
    for (forward_id,), of_forward in by_forward.items():
        is_keyframe = pl.col("keyframe").fill_null(False)
        changed: set[int] = set()
        for extent in _extents(of_forward.filter(~is_keyframe)):
            changed |= pool.assign(*extent)
        keyframe = of_forward.filter(is_keyframe)
        if len(keyframe):
            found.keyframes += 1
            frame = _Pool(num_pages)
            for extent in _extents(keyframe):
                frame.assign(*extent)
            _compare(rank, forward_id, pool, frame, found)
        found.totals.append((rank, forward_id, *pool.totals.tolist()))
        found.holdings += [(rank, rid, forward_id, pool.held[rid]) for rid in sorted(changed)]


def _compare(rank: int, forward_id: int, pool: _Pool, frame: _Pool, found: _Found) -> None:
    differ = np.flatnonzero((pool.kinds != frame.kinds) | (pool.rids != frame.rids))
    if len(differ):
        page = int(differ[0])
        found.differences.append((rank, forward_id, page, frame.describe(page), pool.describe(page)))


def _extents(told: pl.DataFrame) -> list[tuple[int, int, int, int]]:
    return told.select(pl.col("first_page", "num_pages").fill_null(0), "kind", "rid").rows()


def _kind() -> pl.Expr:
    owner, locked = pl.col("owner"), pl.col("locked").fill_null(False)
    return (
        pl.when(owner == Owner.ROW.value)
        .then(PRIVATE)
        .when(owner != Owner.TREE.value)
        .then(FREE)
        .when(locked)
        .then(PROTECTED)
        .otherwise(EVICTABLE)
    )
