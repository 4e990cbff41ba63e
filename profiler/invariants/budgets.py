"""Admission budgets: where they begin, what each row is charged, and what is left in the pool after it."""

import polars as pl

from engine.batch import ForwardMode, StopReason
from engine.config import CHUNKING_OFF
from engine.observer import EventKind
from engine.reserve import CLIP_MAX_NEW_TOKENS
from profiler.invariants.expressions import (
    FORWARD,
    ceil_page,
    ends_prefill,
    extend,
    is_decode,
    prefix,
    seq,
    starts_attempt,
)
from profiler.invariants.rule import Finding, Rule, Tables, untold_options

__all__ = ["BUDGET_RULES"]

BUDGETS = ("total", "current", "input", "chunk")
START = {name: pl.col(f"{name}_budget_start_tokens") for name in BUDGETS}
END = {name: pl.col(f"{name}_budget_end_tokens") for name in BUDGETS}
COLUMNS = tuple(f"{name}_budget_{edge}_tokens" for name in BUDGETS for edge in ("start", "end"))

admits = pl.col("mode") != ForwardMode.DECODE.value
deducted = pl.col("mixed_deducted_tokens")


def _begin(tables: Tables) -> Finding | str:
    """The input and chunk budgets begin at their options less the decode rows of a mixed forward.

    Those are the running requests, with those that gave way while requests were admitted; where these gave
    way in a round before, which planned no forward, without them.
    """
    why_not = untold_options(tables, "max_prefill_tokens", "chunked_prefill_size", "enable_mixed_chunk")
    if why_not is not None:
        return why_not
    chunk = tables.option("chunked_prefill_size")
    whole_chunk = pl.lit(None if chunk == CHUNKING_OFF else chunk, dtype=pl.Int64)
    riding = pl.col("running_reqs") if tables.option("enable_mixed_chunk") else pl.lit(0, pl.Int64)
    gave_way = pl.col("preempted") if tables.option("enable_mixed_chunk") else pl.lit(0, pl.Int64)
    forwards = _with_preemptions(tables, tables.decided).with_columns(
        riding=riding,
        gave_way=gave_way,
        expected_input=tables.option("max_prefill_tokens") - deducted,
        expected_chunk=whole_chunk - deducted,
    )
    wrong = (
        ~deducted.is_between(pl.col("riding"), pl.col("riding") + pl.col("gave_way")).fill_null(False)
        | START["input"].ne_missing(pl.col("expected_input"))
        | START["chunk"].ne_missing(pl.col("expected_chunk"))
    )
    told = pl.any_horizontal(pl.col(name).is_not_null() for name in COLUMNS)
    broken = forwards.filter(pl.when(admits).then(wrong).otherwise(told))
    shown = (
        *("mode", "mixed_deducted_tokens", "riding", "gave_way"),
        *("input_budget_start_tokens", "expected_input"),
        *("chunk_budget_start_tokens", "expected_chunk"),
    )
    return Finding(len(forwards), broken.select("forward_id", *shown))


def _charged(tables: Tables) -> Finding | str:
    """Input and chunk: new tokens in whole pages. Current: a page of slack a row more, and cached prefixes
    that are locked from now on, of which only the most is known. Total: also what is reserved for output
    where a prompt is complete. Requests that give way in the same round free memory: then only input and
    chunk are held.
    """
    why_not = untold_options(tables, "page_size")
    if why_not is not None:
        return why_not
    charges = _charges(tables, tables.option("page_size"))
    forwards = _with_preemptions(tables, tables.decided).filter(admits)
    forwards = forwards.join(charges, on=FORWARD, how="left", maintain_order="left")
    forwards = forwards.with_columns(
        pl.col("paged", "slack", "hits", "reserved").fill_null(0),
        *((START[name] - END[name]).alias(f"{name}_charged") for name in BUDGETS),
    )
    memory = pl.col("paged") + pl.col("slack")
    output = pl.col("total_charged") - pl.col("current_charged")
    truncated = (END["total"] <= 0) & (START["total"] >= 0)  # towards 0 from both sides
    of_memory = (
        ~pl.col("current_charged").is_between(memory, memory + pl.col("hits"))
        | ~output.is_between(pl.col("reserved") - truncated, pl.col("reserved"))
    )  # fmt: skip
    wrong = (
        (pl.col("input_charged") != pl.col("paged"))
        | (pl.col("chunk_charged") != pl.col("paged"))
        | (of_memory & (pl.col("preempted") == 0))
    )
    broken = forwards.filter(wrong.fill_null(False))
    shown = [f"{name}_charged" for name in BUDGETS]
    return Finding(
        len(tables.forwards), broken.select("forward_id", *shown, "paged", "slack", "hits", "reserved")
    )


def _charges(tables: Tables, page: int) -> pl.DataFrame:
    """Per forward, what its extend rows are charged."""
    limits = tables.requests.select("rid", "max_new_tokens")
    rows = tables.rows.filter(~is_decode).join(limits, on="rid", how="left", maintain_order="left")
    reserve = pl.min_horizontal("max_new_tokens", pl.lit(CLIP_MAX_NEW_TOKENS))
    return rows.group_by(FORWARD).agg(
        paged=ceil_page(extend, page).sum(),
        slack=pl.len().cast(pl.Int64) * page,
        hits=prefix.filter(starts_attempt).sum(),
        reserved=reserve.filter(ends_prefill).sum(),
    )


def _left_in_pool(tables: Tables) -> Finding | str:
    """What the current budget ends with, and the slack and the decode rows it was charged for, lies free or
    evictable in the pool once the forward's pages are taken, but for what their last pages have beyond it.
    """
    why_not = untold_options(tables, "page_size")
    if why_not is not None:
        return why_not
    page = tables.option("page_size")
    new = (
        pl.when(is_decode)
        .then((prefix % page == 0) * page)
        .otherwise(ceil_page(seq, page) - ceil_page(prefix, page))
    )
    taken = tables.rows.group_by(FORWARD).agg(
        taken_tokens=new.sum(),
        charged_tokens=(ceil_page(extend, page) + page).filter(~is_decode).sum(),
    )
    forwards = tables.forwards.filter(admits).join(taken, on=FORWARD, how="inner", maintain_order="left")
    obtainable = (pl.col("pages_free") + pl.col("pages_evictable")) * page
    forwards = forwards.with_columns(
        expected_end=obtainable + pl.col("taken_tokens") - pl.col("charged_tokens") - deducted
    )
    broken = forwards.filter(END["current"] != pl.col("expected_end"))
    return Finding(
        len(tables.forwards),
        broken.select(
            "forward_id",
            "current_budget_end_tokens",
            "expected_end",
            *("pages_free", "pages_evictable", "taken_tokens", "charged_tokens", "mixed_deducted_tokens"),
        ),
    )


def _chunk_kept(tables: Tables) -> Finding | str:
    """A half-done request gets a page even where decode rows ate the whole budget."""
    why_not = untold_options(tables, "page_size")
    if why_not is not None:
        return why_not
    most = pl.max_horizontal(START["chunk"], pl.lit(tables.option("page_size")))
    broken = tables.forwards.filter(START["chunk"].is_not_null() & (pl.col("extend_tokens") > most))
    return Finding(
        len(tables.forwards), broken.select("forward_id", "extend_tokens", "chunk_budget_start_tokens")
    )


def _stops(tables: Tables) -> Finding:
    """The reason why admission ended is what the budgets at its end, and the queue, say."""
    forwards = _with_preemptions(tables, tables.decided).filter(admits)
    reason, blocked, waiting = pl.col("stop_reason"), pl.col("blocked_rid"), pl.col("waiting_reqs")
    is_empty = reason == StopReason.QUEUE_EMPTY.value
    cuts = END["chunk"].is_not_null()
    wrong = (
        (blocked.is_null() != is_empty)
        | (is_empty & (waiting > pl.col("preempted")))
        | (~is_empty & (waiting < 1))
        | ((reason == StopReason.CHUNK.value) & (END["chunk"].fill_null(1) > 0))
        | ((reason == StopReason.INPUT.value) & cuts & (END["input"] > 0))
    )
    broken = forwards.filter(wrong.fill_null(True))
    return Finding(
        len(tables.forwards),
        broken.select(
            "forward_id",
            *("stop_reason", "blocked_rid", "waiting_reqs", "preempted"),
            *("input_budget_end_tokens", "chunk_budget_end_tokens"),
        ),
    )


def _with_preemptions(tables: Tables, forwards: pl.DataFrame) -> pl.DataFrame:
    """Forwards with `preempted`, the requests that gave way while they were planned."""
    preempted = tables.events.filter(pl.col("kind") == EventKind.PREEMPT.value)
    counts = preempted.group_by(FORWARD).agg(preempted=pl.len().cast(pl.Int64))
    both = forwards.join(counts, on=FORWARD, how="left", maintain_order="left")
    return both.with_columns(pl.col("preempted").fill_null(0))


def _needs(*more: str) -> tuple[str, ...]:
    """`chunk_budget_*` is null throughout where chunking is off, so nobody needs it."""
    kinds = ("total", "current", "input")
    budgets = (f"forwards.{name}_budget_{edge}_tokens" for name in kinds for edge in ("start", "end"))
    return ("forwards.mode", "forwards.mixed_deducted_tokens", *budgets, *more)


_ROWS = ("rows.role", "rows.prefix_len", "rows.extend_len")

BUDGET_RULES = (
    Rule(
        "budgets_begin",
        "where requests are admitted, input and chunk budgets begin at their options, less mixed decode rows",
        _needs("forwards.running_reqs"),
        _begin,
    ),
    Rule(
        "budgets_charged",
        "each budget is charged what the rows take: new tokens in whole pages, slack, cached prefix, output",
        _needs(*_ROWS, "requests.max_new_tokens"),
        _charged,
    ),
    Rule(
        "budget_left_in_pool",
        "what is left of the current budget is what the pool has to give",
        _needs(*_ROWS, "rows.seq_len", "forwards.pages_free", "forwards.pages_evictable"),
        _left_in_pool,
    ),
    Rule(
        "chunk_budget_kept",
        "a forward takes no more new prompt tokens than its chunk budget, or one page of a half-done prompt",
        ("forwards.extend_tokens", "forwards.input_budget_start_tokens"),
        _chunk_kept,
    ),
    Rule(
        "stop_explained",
        "admission stops at an empty queue or at a request, for a reason that budgets and queue bear out",
        _needs("forwards.stop_reason", "forwards.waiting_reqs"),
        _stops,
    ),
)
