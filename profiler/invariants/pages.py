"""Page owners: one a page, none lost, and as many of each kind as the pool and the rows say."""

from collections.abc import Mapping

import polars as pl

from engine.observer import Owner
from engine.request import FinishReason
from profiler.invariants.expressions import FORWARD, REQUEST, emitted, is_decode
from profiler.invariants.neighbours import neighbours
from profiler.invariants.page_replay import KINDS, MOST_PAGES, pool_size
from profiler.invariants.rule import Finding, Rule, Tables, untold_options

__all__ = ["PAGE_RULES"]


first, count, owner = pl.col("first_page"), pl.col("num_pages"), pl.col("owner")
keyframe = pl.col("keyframe").fill_null(False)


def _one_owner(tables: Tables) -> Finding:
    """Page 0 is padding and never told of. What a row owns has a request, what the tree owns a node."""
    sizes = tables.forwards.group_by("rank").agg(pages_total=pl.col("pages_total").max())
    extents = tables.pages.join(sizes, on="rank", how="left", maintain_order="left")
    extents = extents.sort(*FORWARD, "keyframe", "first_page", maintain_order=True).with_columns(
        end_of_previous=(first + count).cum_max().shift(1).over(*FORWARD, "keyframe")
    )
    outside = (first < 1) | (count < 1) | (first + count - 1 > pl.col("pages_total"))
    of_row, of_tree = owner == Owner.ROW.value, owner == Owner.TREE.value
    nameless = (pl.col("rid").is_not_null() != of_row) | (pl.col("node").is_not_null() != of_tree)
    shared = (first < pl.col("end_of_previous")).fill_null(False)
    wrong = outside | nameless | shared
    broken = extents.filter(wrong.fill_null(True))
    shown = ("first_page", "num_pages", "owner", "node", "keyframe", "end_of_previous", "pages_total")
    return Finding(len(extents), broken.select("forward_id", "rid", *shown))


def _too_large(tables: Tables) -> str | None:
    """Why the owners of the pool's pages are not followed, if they are not."""
    pages = pool_size(tables.forwards)
    return f"a pool of {pages} pages is too large to follow each" if pages > MOST_PAGES else None


def _none_lost(tables: Tables) -> Finding | str:
    """A keyframe tells of every page, and says what the changes before it add up to."""
    why_not = _too_large(tables)
    if why_not is not None:
        return why_not
    sizes = tables.forwards.group_by("rank").agg(pages_total=pl.col("pages_total").max())
    told = tables.pages.filter(keyframe).group_by(FORWARD).agg(pages_told=count.sum())
    told = told.join(sizes, on="rank", how="left").filter(pl.col("pages_told") != pl.col("pages_total"))
    differences = tables.page_replay.differences.drop("rank")
    return Finding(tables.page_replay.keyframes, pl.concat([told.drop("rank"), differences], how="diagonal"))


def _as_the_pool(tables: Tables) -> Finding | str:
    """The pool is counted when a forward is planned, owners are told when a result has been processed.

    That is the same forward's, or under overlap that of the one before. Both are compared where the result
    moves no page: no row of it ends its prompt or its request.
    """
    why_not = _too_large(tables) or untold_options(tables, "disable_overlap_schedule")
    if why_not is not None:
        return why_not
    still = _without_moves(tables)
    if tables.option("disable_overlap_schedule"):
        compared = still.with_columns(counted_id=pl.col("forward_id"))
    else:
        pairs = neighbours(tables).filter("next_overlapped").select(*FORWARD, counted_id="next_id")
        compared = still.join(pairs, on=FORWARD, how="inner", maintain_order="left")
    pool = tables.forwards.select("rank", *(f"pages_{kind}" for kind in KINDS), counted_id="forward_id")
    both = compared.join(pool, on=("rank", "counted_id"), how="inner", maintain_order="left")
    both = both.sort(FORWARD).join_asof(
        tables.page_replay.totals.sort(FORWARD), on="forward_id", by="rank", check_sortedness=False
    )
    wrong = pl.any_horizontal(pl.col(f"owned_{kind}") != pl.col(f"pages_{kind}") for kind in KINDS)
    broken = both.filter(wrong.fill_null(True))
    shown = [name for kind in KINDS for name in (f"pages_{kind}", f"owned_{kind}")]
    return Finding(len(tables.forwards), broken.select(pl.col("counted_id").alias("forward_id"), *shown))


def _without_moves(tables: Tables) -> pl.DataFrame:
    """Forwards whose result neither ends a request nor hands a prompt's KV to the tree."""
    last = tables.rows.filter(emitted).group_by(REQUEST).agg(last_token_id=pl.col("forward_id").max())
    ends = tables.requests.filter(pl.col("finish_ns").is_not_null()).select("rid", "finish_reason")
    rows = tables.rows.join(last, on=REQUEST, how="left").join(ends, on="rid", how="left")
    by_token = pl.col("finish_reason").is_not_null() & (pl.col("finish_reason") != FinishReason.ABORT.value)
    moves = emitted & (~is_decode | (by_token & (pl.col("forward_id") == pl.col("last_token_id"))))
    moving = rows.filter(moves.fill_null(False)).select(FORWARD).unique()
    return tables.forwards.select(FORWARD).join(moving, on=FORWARD, how="anti", maintain_order="left")


def _none_of_the_ended(tables: Tables) -> Finding | str:
    """Neither after the result that a request ended with nor later."""
    why_not = _too_large(tables)
    if why_not is not None:
        return why_not
    holdings, keys = tables.page_replay.holdings, ("rank", "rid")
    changes = holdings.join(_ends(tables), on=keys, how="inner", maintain_order="left")
    at_the_end = changes.filter(pl.col("forward_id") <= pl.col("end_id")).group_by(keys).last()
    later = changes.filter(pl.col("forward_id") > pl.col("end_id"))
    told = pl.concat([at_the_end.with_columns(forward_id="end_id"), later.select(at_the_end.columns)])
    broken = told.filter(pl.col("held_pages") > 0)
    return Finding(
        len(tables.page_replay.totals), broken.select("forward_id", "rid", "held_pages", "finish_ns")
    )


def _ends(tables: Tables) -> pl.DataFrame:
    """Per rank and request that ended, the first forward whose result was processed then or later.

    An abort in the very nanosecond of a result may have come after it.
    """
    results = tables.forwards.select("rank", "result_end_ns", end_id="forward_id").drop_nulls()
    results = results.sort("result_end_ns")
    ended = tables.requests.filter(pl.col("finish_ns").is_not_null())
    after_result = (pl.col("finish_reason") == FinishReason.ABORT.value).fill_null(False).cast(pl.Int64)
    ended = ended.select("rid", "finish_ns", due_ns=pl.col("finish_ns") + after_result).sort("due_ns")
    ranks = results.partition_by("rank", maintain_order=True) or [results]
    found = [
        ended.join_asof(of_rank, left_on="due_ns", right_on="result_end_ns", strategy="forward")
        for of_rank in ranks
    ]
    return pl.concat(found).drop_nulls("end_id").select("rank", "rid", "end_id", "finish_ns")


def _as_left(tables: Tables) -> Finding | str:
    """Since the last result nobody was handed a page: locks may be given back, and what is unlocked evicted.

    Private pages are given back by requests that ended since then, and by no others.
    """
    pool = tables.meta.get("pool_at_end")
    if not isinstance(pool, Mapping) or not all(isinstance(pool.get(kind), int) for kind in KINDS):
        return "meta.json does not say how the pool was left (pool_at_end)"
    why_not = _too_large(tables)
    if why_not is not None:
        return why_not
    last_ns = pl.lit(tables.forwards["result_end_ns"].max(), pl.Int64)
    ended_since = tables.requests.select((pl.col("finish_ns") > last_ns).fill_null(True).any()).item()
    told = tables.page_replay.totals.group_by("rank", maintain_order=True).last()
    told = told.with_columns(pl.lit(pool[kind], pl.Int64).alias(f"left_{kind}") for kind in KINDS)
    owned, left = ({kind: pl.col(f"{what}_{kind}") for kind in KINDS} for what in ("owned", "left"))
    wrong = (
        (left["free"] < owned["free"])
        | (left["private"] > owned["private"])
        | (left["protected"] > owned["protected"])
        | (left["evictable"] + left["protected"] > owned["evictable"] + owned["protected"])
    )
    if not ended_since:
        wrong |= left["private"] != owned["private"]
    broken = told.filter(wrong)
    shown = [name for kind in KINDS for name in (f"owned_{kind}", f"left_{kind}")]
    return Finding(len(told), broken.select("forward_id", *shown))


_PAGES = ("pages.first_page", "pages.num_pages", "pages.owner", "forwards.pages_total")

PAGE_RULES = (
    Rule(
        "one_owner_per_page",
        "a page of the pool has one owner at a time: nobody, a request's row, or a node of the tree",
        _PAGES,
        _one_owner,
    ),
    Rule(
        "no_page_lost",
        "every page is accounted for, and owned as the changes so far say",
        _PAGES,
        _none_lost,
    ),
    Rule(
        "owners_match_pool",
        "as many pages are owned in each way as the pool counts",
        (*_PAGES, *(f"forwards.pages_{kind}" for kind in KINDS), "rows.outcome", "forwards.overlapped"),
        _as_the_pool,
    ),
    Rule(
        "ended_hold_nothing",
        "a request that has ended owns no page",
        (*_PAGES, "forwards.result_end_ns", "requests.finish_ns"),
        _none_of_the_ended,
    ),
    Rule(
        "pages_as_left",
        "the pool was left as pages were owned after the last result, but for what was given back since",
        (*_PAGES, "forwards.result_end_ns"),
        _as_left,
    ),
)
