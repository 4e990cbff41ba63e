"""Words of the rules: keys, and polars expressions over rows."""

import polars as pl

from engine.batch import Outcome, Role

__all__ = [
    "ATTEMPT",
    "FORWARD",
    "PLACE",
    "REQUEST",
    "ceil_page",
    "emitted",
    "ends_prefill",
    "extend",
    "is_decode",
    "is_middle",
    "outcome",
    "prefix",
    "role",
    "seq",
    "starts_attempt",
]

FORWARD = ("rank", "forward_id")
REQUEST = ("rank", "rid")
ATTEMPT = ("rank", "rid", "attempt")
PLACE = ("forward_id", "rid", "attempt")  # where a violation is

prefix, extend, seq = pl.col("prefix_len"), pl.col("extend_len"), pl.col("seq_len")
role = pl.col("role")
is_decode = role == Role.DECODE.value
is_middle = role.is_in([Role.FIRST.value, Role.MIDDLE.value])
ends_prefill = role.is_in([Role.WHOLE.value, Role.LAST.value])
starts_attempt = role.is_in([Role.WHOLE.value, Role.FIRST.value])
outcome = pl.col("outcome")
emitted = outcome == Outcome.EMITTED.value


def ceil_page(tokens: pl.Expr, page_size: int) -> pl.Expr:
    """Tokens in whole pages, rounded up."""
    return (tokens + (page_size - 1)) // page_size * page_size
