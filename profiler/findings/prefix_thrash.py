"""Prefix-cache thrash: prefixes that had been computed were evicted, and computed again."""

import polars as pl

from engine.request import FinishReason
from profiler.findings.build import build, median, total
from profiler.findings.finding import Finding, FindingKind, Severity
from profiler.findings.mends import larger_pool
from profiler.findings.run import Run
from profiler.findings.words import named, percent
from profiler.ledger.why import Mend
from profiler.prefix_hashes import HASHED_TOKENS
from profiler.wording import plural, tokens

__all__ = ["prefix_thrash"]


def prefix_thrash(run: Run) -> Finding | None:
    """The finding, with the requests that lost most; None without evictions, or where little was lost."""
    limit, table = run.thresholds.thrash_share, run.forwards
    evicting = table.filter(pl.col("evicted_pages") > 0)
    computed = total(table["extend_tokens"])
    if evicting.is_empty() or not computed or run.flag("disable_radix_cache"):
        return None
    lost = _lost_prefixes(run)
    again, evicted = total(lost["lost_tokens"]), total(evicting["evicted_pages"])
    share = again / computed
    if lost.is_empty() or share < limit:
        return None
    rids: list[int] = lost["rid"].to_list()
    return build(
        FindingKind.PREFIX_CACHE_THRASH,
        Severity.BAD,
        "Prefix-cache thrash",
        f"{tokens(again)} of prefixes were evicted and computed again, by {named(run.names(rids))}.",
        evidence=(
            f"{percent(share)} of the prompt tokens computed",
            f"{plural(evicted, 'page')} evicted in {plural(evicting.height, 'forward')}",
            f"threshold {percent(limit)}",
        ),
        numbers={
            "recomputed_tokens": again,
            "share": share,
            "requests": lost.height,
            "evicted_pages": evicted,
        },
        threshold=("thrash_share", limit),
        forward_ids=evicting.sort("evicted_pages", descending=True, maintain_order=True)["forward_id"].head(
            5
        ),
        rids=rids,
        mend=_mend(run, evicting),
        at_ns=lost["first_scheduled_ns"][0],
        lost_ns=_decode_ns(table, share),
    )


def _lost_prefixes(run: Run) -> pl.DataFrame:
    """rid, first_scheduled_ns, lost_tokens of requests that did not find what had been cached; most first.

    A block of a prompt was cached if a request with the same hash had ended, not aborted, before this one was
    first scheduled. A prompt's last token is always computed, and only whole pages are found.
    """
    known = run.requests.filter(pl.col("prefix_hashes").list.len() > 0).with_columns(
        pl.col("rank").fill_null(0)
    )
    block = ["rank", "prefix_hashes"]  # each rank has a cache of its own
    blocks = known.select(*block, "rid", "first_scheduled_ns", "finish_ns", "finish_reason").explode(block[1])
    kept = (
        blocks.filter(pl.col("finish_reason") != FinishReason.ABORT.value)
        .group_by(block)
        .agg(cached_ns=pl.col("finish_ns").min())
    )
    found = (
        blocks.join(kept, on=block)
        .filter(pl.col("cached_ns") < pl.col("first_scheduled_ns"))
        .group_by("rid")
        .agg(blocks=pl.len())
    )
    page = run.page_size
    most = pl.min_horizontal(pl.col("blocks").cast(pl.Int64) * HASHED_TOKENS, pl.col("prompt_tokens") - 1)
    return (
        known.select("rid", "first_scheduled_ns", "prompt_tokens", "cached_tokens")
        .join(found, on="rid")
        .with_columns(lost_tokens=most // page * page - pl.col("cached_tokens"))
        .filter(pl.col("lost_tokens") > 0)
        .sort("lost_tokens", "rid", descending=[True, False])
        .select("rid", "first_scheduled_ns", "lost_tokens")
    )


def _decode_ns(table: pl.DataFrame, share: float) -> int | None:
    """That share of what decodes waited for prefill forwards."""
    prefills = table.filter(pl.col("extend_tokens") > 0)
    if prefills["device_ns"].null_count():
        return None
    return round(share * total(prefills["device_ns"] * prefills["waiting_decodes"]))


def _mend(run: Run, evicting: pl.DataFrame) -> Mend:
    """Another order where there mostly is a queue to order, and a larger pool in any case."""
    pool, queued = larger_pool(run), median(evicting["waiting_reqs"])
    if run.text("schedule_policy") != "fcfs" or queued is None or queued < 2:
        return pool
    return Mend(
        f"--schedule-policy lpm runs requests while their prefix is cached. {pool.sentence}",
        ("--schedule-policy", "lpm"),
    )
