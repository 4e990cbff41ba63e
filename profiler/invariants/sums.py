"""Per forward, the stored sums are those over its rows."""

from collections.abc import Mapping

import polars as pl

from engine.batch import ForwardMode
from profiler.invariants.expressions import FORWARD, PLACE, extend, is_decode, prefix, seq
from profiler.invariants.rule import Finding, Rule, Tables

__all__ = ["SUM_RULES"]

SEQUENCES = {
    "num_extend_seqs": (~is_decode).sum().cast(pl.Int64),
    "num_decode_seqs": is_decode.sum().cast(pl.Int64),
}
TOKENS = {
    "extend_tokens": extend.filter(~is_decode).sum(),
    "decode_tokens": extend.filter(is_decode).sum(),
    "prefix_tokens": prefix.filter(~is_decode).sum(),
    "kv_tokens": seq.sum(),
}
PAIRS = {
    "pairs_prefix": (extend * prefix).filter(~is_decode).sum(),
    "pairs_causal": (extend * (extend + 1) // 2).filter(~is_decode).sum(),
    "pairs_decode": seq.filter(is_decode).sum(),
}


def _compare(tables: Tables, sums: Mapping[str, pl.Expr]) -> Finding:
    """Forwards where a stored sum is not that over its rows; a forward without rows has sums of 0."""
    summed = tables.rows.group_by(FORWARD).agg(**{f"{name}_of_rows": sum_ for name, sum_ in sums.items()})
    both = tables.forwards.join(summed, on=FORWARD, how="left", maintain_order="left")
    both = both.with_columns(pl.col(f"{name}_of_rows").fill_null(0) for name in sums)
    differ = [
        both.filter(pl.col(name) != pl.col(f"{name}_of_rows")).select(
            "forward_id", sum=pl.lit(name), stored=pl.col(name), over_rows=pl.col(f"{name}_of_rows")
        )
        for name in sums
    ]
    return Finding(len(both), pl.concat(differ))


def _sequences(tables: Tables) -> Finding:
    return _compare(tables, SEQUENCES)


def _tokens(tables: Tables) -> Finding:
    return _compare(tables, TOKENS)


def _pairs(tables: Tables) -> Finding:
    return _compare(tables, PAIRS)


def _row_lengths(tables: Tables) -> Finding:
    rows = tables.rows
    wrong = (seq != prefix + extend) | (extend < 1) | (prefix < 0) | (is_decode & (extend != 1))
    broken = rows.filter(wrong)
    return Finding(
        len(rows),
        broken.select(*PLACE, "role", "prefix_len", "extend_len", "seq_len"),
    )


def _modes(tables: Tables) -> Finding:
    extends, decodes = pl.col("num_extend_seqs") > 0, pl.col("num_decode_seqs") > 0
    mode = (
        pl.when(extends & decodes)
        .then(ForwardMode.MIXED.value)
        .when(extends)
        .then(ForwardMode.EXTEND.value)
        .otherwise(ForwardMode.DECODE.value)
    )
    broken = tables.forwards.filter(pl.col("mode") != mode)
    return Finding(
        len(tables.forwards), broken.select("forward_id", "mode", "num_extend_seqs", "num_decode_seqs")
    )


def _needs(sums: Mapping[str, pl.Expr], *rows: str) -> tuple[str, ...]:
    return (*(f"forwards.{name}" for name in sums), *(f"rows.{name}" for name in rows))


SUM_RULES = (
    Rule(
        "row_lengths",
        "a row's sequence is its prefix and its new tokens, one of them in a decode row",
        ("rows.role", "rows.prefix_len", "rows.extend_len", "rows.seq_len"),
        _row_lengths,
        of_scheduler=False,
    ),
    Rule(
        "forward_mode",
        "a forward is MIXED if it has extend and decode rows, else named after those it has",
        ("forwards.mode", "forwards.num_extend_seqs", "forwards.num_decode_seqs"),
        _modes,
        of_scheduler=False,
    ),
    Rule(
        "forward_sequences",
        "a forward's sequences are counted by its rows",
        _needs(SEQUENCES, "role"),
        _sequences,
        of_scheduler=False,
    ),
    Rule(
        "forward_tokens",
        "a forward's new, prefix and KV tokens are the sums over its rows",
        _needs(TOKENS, "role", "prefix_len", "extend_len", "seq_len"),
        _tokens,
        of_scheduler=False,
    ),
    Rule(
        "forward_pairs",
        "a forward's attention pairs, rectangle, triangle and decode, are the sums over its rows",
        _needs(PAIRS, "role", "prefix_len", "extend_len", "seq_len"),
        _pairs,
        of_scheduler=False,
    ),
)
