"""The cursor: what each attempt of a request computes, chunk by chunk, without gap or overlap."""

import polars as pl

from engine.batch import Role
from engine.observer import EventKind
from engine.request import FinishReason
from profiler.invariants.expressions import (
    ATTEMPT,
    PLACE,
    REQUEST,
    emitted,
    ends_prefill,
    extend,
    is_decode,
    is_middle,
    prefix,
    role,
    seq,
)
from profiler.invariants.rule import Finding, Rule, Tables

__all__ = ["CURSOR_RULES", "prefill_targets"]


def _start(tables: Tables) -> Finding:
    """The matched prefix is told by the attempt's HIT, 0 if it was admitted without one.

    In a first attempt it is what the row was credited with, too.
    """
    first = tables.rows.group_by(ATTEMPT, maintain_order=True).first()
    first = first.join(_matched(tables.events), on=ATTEMPT, how="left", maintain_order="left")
    credit = pl.when(pl.col("attempt") == 0).then(pl.col("cached_tokens"))
    first = first.with_columns(matched_prefix=pl.coalesce("matched_prefix", credit))
    checked = first.filter(pl.col("matched_prefix").is_not_null())
    wrong = (pl.col("matched_prefix") != prefix) | (credit != prefix)
    return Finding(
        len(checked), checked.filter(wrong).select(*PLACE, "prefix_len", "cached_tokens", "matched_prefix")
    )


def _matched(events: pl.DataFrame) -> pl.DataFrame:
    """The matched prefix of each attempt that was admitted."""
    kind = pl.col("kind")
    admissions = events.filter(kind.is_in([EventKind.ADMIT.value, EventKind.HIT.value]))
    hit = pl.when(kind == EventKind.HIT.value).then(pl.col("tokens")).otherwise(0)
    return admissions.group_by(ATTEMPT).agg(matched_prefix=hit.max())


def _contiguous(tables: Tables) -> Finding:
    rows = tables.rows.with_columns(previous_end=seq.shift(1).over(ATTEMPT))
    broken = rows.filter(pl.col("previous_end") != prefix)
    return Finding(len(rows), broken.select(*PLACE, "previous_end", "prefix_len"))


def _roles(tables: Tables) -> Finding:
    """WHOLE, or FIRST, any number of MIDDLE and LAST; then DECODE."""
    rows = tables.rows.with_columns(previous_role=role.shift(1).over(ATTEMPT))
    before = pl.col("previous_role")
    half_done = before.is_in([Role.FIRST.value, Role.MIDDLE.value])
    allowed = (
        pl.when(before.is_null())
        .then(role.is_in([Role.WHOLE.value, Role.FIRST.value]))
        .when(half_done)
        .then(role.is_in([Role.MIDDLE.value, Role.LAST.value]))
        .otherwise(is_decode)
    )
    return Finding(len(rows), rows.filter(~allowed).select(*PLACE, "previous_role", "role"))


def _end(tables: Tables) -> Finding:
    """No chunk goes beyond the prompt and the tokens kept at admission; the last one ends there."""
    rows = tables.rows.filter(~is_decode).join(prefill_targets(tables), on=ATTEMPT, maintain_order="left")
    wrong = (ends_prefill & (pl.col("target") != seq)) | (is_middle & (pl.col("target") <= seq))
    return Finding(
        len(rows), rows.filter(wrong).select(*PLACE, "role", "seq_len", "prompt_tokens", "kept_tokens")
    )


def _completed(tables: Tables) -> Finding:
    """The last attempt of a request that ended otherwise than by abort has a last chunk."""
    last = (
        tables.rows.with_columns(newest=pl.col("attempt").max().over(REQUEST))
        .filter(pl.col("attempt") == pl.col("newest"))
        .group_by(ATTEMPT, maintain_order=True)
        .agg(pl.col("forward_id").last(), completed=ends_prefill.any(), reached=seq.max())
    )
    ended = tables.requests.filter(
        pl.col("finish_ns").is_not_null() & (pl.col("finish_reason") != FinishReason.ABORT.value)
    )
    ended = ended.select("rid", "prompt_tokens")
    both = ended.join(last, on="rid", how="left", maintain_order="left")
    broken = both.filter(~pl.col("completed").fill_null(False))
    return Finding(len(both), broken.select(*PLACE, "reached", "prompt_tokens"))


def _pairs(tables: Tables) -> Finding:
    """However the extent [m, e) is cut, its pairs are (e (e + 1) - m (m + 1)) / 2."""
    attempts = (
        tables.rows.filter(~is_decode)
        .group_by(ATTEMPT, maintain_order=True)
        .agg(
            pl.col("forward_id").last(),
            matched_prefix=prefix.first(),
            end=seq.last(),
            pairs=(extend * prefix + extend * (extend + 1) // 2).sum(),
        )
    )
    end, start = pl.col("end"), pl.col("matched_prefix")
    attempts = attempts.with_columns(expected_pairs=(end * (end + 1) - start * (start + 1)) // 2)
    broken = attempts.filter(pl.col("pairs") != pl.col("expected_pairs"))
    return Finding(len(attempts), broken.select(*PLACE, "matched_prefix", "end", "pairs", "expected_pairs"))


def prefill_targets(tables: Tables) -> pl.DataFrame:
    """Where each attempt's prefill ends: prompt tokens and the output tokens of the attempts before it."""
    tokens = emitted.sum().cast(pl.Int64)
    attempts = tables.rows.group_by(ATTEMPT).agg(tokens=tokens).sort(ATTEMPT)
    kept = pl.col("tokens").cum_sum().over(REQUEST) - pl.col("tokens")
    prompts = tables.requests.select("rid", "prompt_tokens")
    return (
        attempts.with_columns(kept_tokens=kept)
        .join(prompts, on="rid")
        .with_columns(target=pl.col("prompt_tokens") + pl.col("kept_tokens"))
    )


_LENGTHS = ("rows.role", "rows.prefix_len", "rows.extend_len", "rows.seq_len")

CURSOR_RULES = (
    Rule(
        "cursor_start",
        "an attempt starts at the prefix that was matched for it",
        ("rows.prefix_len", "rows.cached_tokens"),
        _start,
    ),
    Rule(
        "cursor_contiguous",
        "each row of an attempt starts where the one before it ended",
        ("rows.prefix_len", "rows.seq_len"),
        _contiguous,
    ),
    Rule(
        "cursor_end",
        "the last chunk ends at the prompt and the tokens kept at admission, and no other chunk does",
        ("rows.role", "rows.seq_len", "rows.outcome", "requests.prompt_tokens"),
        _end,
    ),
    Rule(
        "cursor_completed",
        "a request that ended otherwise than by abort was computed to its end",
        ("rows.role", "rows.seq_len", "requests.finish_ns", "requests.finish_reason"),
        _completed,
    ),
    Rule(
        "chunk_roles",
        "an attempt is one whole prompt, or a first chunk, middle ones and a last; then it decodes",
        ("rows.role",),
        _roles,
    ),
    Rule(
        "pairs_per_attempt",
        "an attempt's attention pairs do not depend on how it was cut",
        _LENGTHS,
        _pairs,
    ),
)
