"""Pages: each has one owner at a time, and at the end nobody holds any."""

from collections.abc import Mapping

import polars as pl

from engine.batch import Outcome
from profiler.invariants.expressions import FORWARD, PLACE, REQUEST, is_middle, seq
from profiler.invariants.neighbours import neighbours
from profiler.invariants.rule import Finding, Rule, Tables, untold_options

__all__ = ["POOL_RULES"]

KINDS = ("free", "evictable", "protected", "private")
PAGES = tuple(f"pages_{kind}" for kind in KINDS)


def _conservation(tables: Tables) -> Finding:
    forwards = tables.forwards.drop_nulls([*PAGES, "pages_total"])
    broken = forwards.filter(
        (pl.sum_horizontal(PAGES) != pl.col("pages_total")) | pl.any_horizontal(pl.col(PAGES) < 0)
    )
    return Finding(len(forwards), broken.select("forward_id", *PAGES, "pages_total"))


def _rows_within_private(tables: Tables) -> Finding:
    held = tables.rows.group_by(FORWARD).agg(rows_private_pages=pl.col("private_pages").sum())
    both = tables.forwards.join(held, on=FORWARD, maintain_order="left")
    broken = both.filter(pl.col("rows_private_pages") > pl.col("pages_private"))
    return Finding(len(both), broken.select("forward_id", "rows_private_pages", "pages_private"))


def _row_pages(tables: Tables) -> Finding | str:
    """Without a prefix cache all pages of a row are private."""
    why_not = untold_options(tables, "page_size")
    if why_not is not None:
        return why_not
    page = tables.option("page_size")
    pages, private = pl.col("kv_pages"), pl.col("private_pages")
    rows = tables.rows.with_columns(expected_pages=(seq + (page - 1)) // page)
    least = pages if tables.option("disable_radix_cache") else pl.lit(0)
    broken = rows.filter((pages != pl.col("expected_pages")) | ~private.is_between(least, pages))
    return Finding(len(rows), broken.select(*PLACE, "seq_len", "kv_pages", "expected_pages", private))


def _private_told(tables: Tables) -> Finding:
    """Where nobody holds KV without a row: no running request is absent, a half-done one has its chunk in the
    forward, and nobody ends by length with an outstanding result.
    """
    told = tables.rows.group_by(FORWARD).agg(
        rows_private_pages=pl.col("private_pages").sum(),
        with_middle=is_middle.any(),
    )
    forwards = tables.forwards.join(told, on=FORWARD, how="left", maintain_order="left")
    forwards = forwards.join(_outstanding(tables), on=FORWARD, how="anti", maintain_order="left")
    parked = pl.col("chunked_rid").is_not_null() & ~pl.col("with_middle")
    broken = forwards.filter(
        (pl.col("absent_decode_reqs") == 0)
        & ~parked
        & (pl.col("rows_private_pages") != pl.col("pages_private"))
    )
    return Finding(len(forwards), broken.select("forward_id", "rows_private_pages", "pages_private"))


def _outstanding(tables: Tables) -> pl.DataFrame:
    """Forwards that were planned while a result was outstanding for a request that has no row in them."""
    kept = pl.col("outcome").is_in([Outcome.EMITTED.value, Outcome.MIDDLE_DROPPED.value])
    return (
        tables.rows.filter(kept)
        .join(neighbours(tables).filter("next_overlapped"), on=FORWARD, how="inner")
        .join(tables.rows.select(*REQUEST, next_id="forward_id"), on=(*REQUEST, "next_id"), how="anti")
        .select("rank", forward_id="next_id")
        .unique()
    )


def _nothing_leaks(tables: Tables) -> Finding | str:
    pool = tables.meta.get("pool_at_end")
    if not isinstance(pool, Mapping) or not all(
        isinstance(pool.get(kind), int) for kind in (*KINDS, "total")
    ):
        return "meta.json does not say how the pool was left (pool_at_end)"
    unfinished = tables.requests["finish_ns"].null_count()
    if unfinished:
        return f"{unfinished} requests had not ended when the recording did"
    state = pl.DataFrame({kind: pool[kind] for kind in (*KINDS, "total")})
    return Finding(1, state.filter(pl.col("free") + pl.col("evictable") != pl.col("total")))


POOL_RULES = (
    Rule(
        "pool_conservation",
        "free, evictable, protected and private pages make up the pool at each forward",
        tuple(f"forwards.{column}" for column in (*PAGES, "pages_total")),
        _conservation,
    ),
    Rule(
        "rows_within_private_pages",
        "the private pages of a forward's rows are among the private pages of the pool",
        ("forwards.pages_private", "rows.private_pages"),
        _rows_within_private,
    ),
    Rule(
        "row_pages",
        "a row has the pages of its sequence, and no more private ones",
        ("rows.seq_len", "rows.kv_pages", "rows.private_pages"),
        _row_pages,
    ),
    Rule(
        "private_pages_told",
        "where everybody who holds KV has a row, the private pages of the pool are those of the rows",
        (
            *("forwards.pages_private", "forwards.absent_decode_reqs", "forwards.overlapped"),
            *("rows.private_pages", "rows.role", "rows.outcome"),
        ),
        _private_told,
    ),
    Rule(
        "nothing_leaks",
        "when every request has ended, all pages are free or evictable",
        ("requests.rid",),
        _nothing_leaks,
    ),
)
