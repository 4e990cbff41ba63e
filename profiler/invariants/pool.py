"""Pages: each has one owner at a time, and at the end nobody holds any."""

from collections.abc import Mapping

import polars as pl

from profiler.invariants.expressions import FORWARD
from profiler.invariants.rule import Finding, Rule, Tables

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
        "nothing_leaks",
        "when every request has ended, all pages are free or evictable",
        ("requests.rid",),
        _nothing_leaks,
    ),
)
