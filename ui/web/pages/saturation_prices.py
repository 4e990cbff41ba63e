"""The price list of the Saturation page: what each chunk size costs, the recommended row, broken limits."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from profiler.advice import Advice
from profiler.price_rows import Options, PriceRow
from ui.metric_entries import explained
from ui.si_words import percent
from ui.words import UNKNOWN, binary_bytes, count, rate, seconds

__all__ = ["POLICIES", "policy_of", "policy_words", "price_table", "whole_list"]

POLICIES = {"prefill-first": "prefill first", "mixed": "mixed", "interval": "interval"}
"""The address's names of policies, and those that people read."""

_Column = tuple[str, str, Callable[[PriceRow], str]]  # key of its entry, head, text
_LIMITED = {"longest_wait": "itl_max_s", "price_itl_p99": "itl_p99_s", "ttft_p99": "ttft_p99_s"}

_COLUMNS: tuple[_Column, ...] = (
    ("plateau_share", "of best", lambda row: percent(row.plateau_share)),
    ("first_forward", "first", lambda row: seconds(row.first_forward_s)),
    ("last_forward", "last", lambda row: seconds(row.last_forward_s)),
    ("longest_wait", "longest wait", lambda row: seconds(row.longest_wait_s)),
    ("price_itl_p99", "ITL p99", lambda row: seconds(row.itl_p99_s)),
    ("ttft_p99", "TTFT p99", lambda row: seconds(row.ttft_p99_s)),
    ("ttft_long", "TTFT long", lambda row: seconds(row.ttft_long_s)),
    ("against_whole", "vs whole", lambda row: _against(row)),
    ("activation_bytes", "activations", lambda row: binary_bytes(row.activation_bytes)),
)
_FURTHER: tuple[_Column, ...] = (
    ("forwards_of_prompt", "forwards", lambda row: count(row.forwards)),
    ("price_output", "output", lambda row: rate(row.output_tokens_per_s)),
    ("kv_tokens", "KV tokens", lambda row: count(row.kv_tokens)),
)


def policy_of(options: Options) -> str | None:
    """A key of POLICIES; None for whole prompts, which stand in the list of every policy."""
    if options.chunk_tokens is None:
        return None
    return "mixed" if options.mixed else "interval" if options.interval else "prefill-first"


def policy_words(options: Options) -> str:
    """The options' policy as people read it: mixed, interval 1."""
    policy = policy_of(options) or "prefill-first"
    return f"{POLICIES[policy]} {options.interval}" if policy == "interval" else POLICIES[policy]


def price_table(advice: Advice, policy: str) -> dict[str, Any]:
    """The rows of one policy and whole prompts, smallest chunk first; the recommended row is marked.

    A value over its limit, with the margin that measured forwards ask for, is marked as broken. The table is
    data that the page's script draws: hundreds of components would take a browser longer than a drag allows.
    """
    rows = [row for row in advice.rows if policy_of(row.options) in (policy, None)]
    rows.sort(key=lambda row: (row.options.chunk_tokens is None, row.options.chunk_tokens or 0))
    return _table("Price list", advice, rows, _COLUMNS)


def whole_list(advice: Advice) -> dict[str, Any]:
    """Every row with every number, as `price_table` has them."""
    return _table("Price list of all policies", advice, advice.rows, (*_COLUMNS, *_FURTHER), policies=True)


def _table(
    caption: str,
    advice: Advice,
    rows: Iterable[PriceRow],
    columns: Sequence[_Column],
    *,
    policies: bool = False,
) -> dict[str, Any]:
    heads = [_head("chunk_tokens", "chunk"), *([{"text": "policy"}] if policies else [])]
    heads += [_head(key, text) for key, text, _ in columns]
    told = [_row(row, advice, columns, policies=policies) for row in rows]
    return {"caption": caption, "heads": heads, "rows": told}


def _head(key: str, text: str) -> dict[str, str]:
    return {"text": text, "metric": key, "title": explained(key)}


def _row(row: PriceRow, advice: Advice, columns: Sequence[_Column], *, policies: bool) -> dict[str, Any]:
    taken = advice.choice.row is not None and advice.choice.row.options == row.options
    broken = row.breaks(advice.margins.tightened(row, advice.choice.limits))
    chunk = "whole" if row.options.chunk_tokens is None else count(row.options.chunk_tokens)
    cells: list[dict[str, Any]] = [{"text": policy_words(row.options)}] if policies else []
    cells += [{"text": text(row), "broken": _LIMITED.get(key) in broken} for key, _, text in columns]
    return {"name": chunk, "recommended": taken, "cells": cells}


def _against(row: PriceRow) -> str:
    if row.against_whole is None or row.options.chunk_tokens is None:
        return UNKNOWN
    later = round(row.against_whole * 100)
    return f"{later:+,} %".replace("-", "−") if later else "0 %"
