"""A gap taken apart, in lines: its ledger, which chunk cost most, why it was late, and its forwards."""

from collections.abc import Iterator, Mapping
from typing import Any

from profiler.ledger.parts import Chunk, GapDetail
from ui import words
from ui.tui.ink import Ink
from ui.tui.stalls_ledger import ledger_rows
from ui.tui.stalls_why import why_lines
from ui.tui.text import Line, instant, shown

__all__ = ["gap_lines"]

MOST_FORWARDS = 500
MOST_PARTS = 200
NAME_CELLS = 24


def gap_lines(gap: GapDetail, meta: Mapping[str, Any], cells: int) -> list[Line]:
    """All that is known of the gap, effect first, then its ledger; `meta` is the trace's."""
    ledger = ledger_rows(gap, cells - 1, MOST_PARTS, rule=True, full=True)
    return [
        *_head(gap),
        [],
        *ledger,
        [],
        *_costliest(gap),
        *_mixed(gap),
        *why_lines(gap, meta, cells),
        [],
        *_forwards(gap),
    ]


def _head(gap: GapDetail) -> Iterator[Line]:
    yield [
        (f"{shown(gap.name, NAME_CELLS)} waits {_ms(gap.gap_ns)} for its token {gap.token_index:,}", Ink.BAD)
    ]
    times = ""
    if gap.median_gap_ns:
        times = f", {gap.gap_ns / gap.median_gap_ns:,.1f} times its median gap of {_ms(gap.median_gap_ns)}"
    yield [(f"from {instant(gap.start_ns)} to {instant(gap.end_ns)} s{times}", Ink.MUTED)]
    own = f"own forward {gap.own_forward_id}, {gap.own_mode or words.UNKNOWN}"
    yield [(f"{own}, begins at {instant(gap.own_start_ns)} s", Ink.MUTED)]


def _costliest(gap: GapDetail) -> Iterator[Line]:
    if gap.costliest is not None:
        chunk = gap.costliest
        yield [
            ("costliest: ", Ink.MUTED),
            (f"{shown(chunk.name, NAME_CELLS)} {_number(chunk)}", Ink.PREFILL),
            (f", forward {chunk.forward_id}, ", Ink.MUTED),
            (_ms(chunk.in_gap_ns), Ink.BAD),
        ]


def _mixed(gap: GapDetail) -> Iterator[Line]:
    if gap.mixed_extra_ns is not None:
        text = f"mixed extra {_ms(gap.mixed_extra_ns)}, estimated by {gap.mixed_extra_estimator}"
        yield [(text, Ink.WATCH)]


def _forwards(gap: GapDetail) -> Iterator[Line]:
    yield [(f"{words.plural(len(gap.forwards), 'forward')} in it, the own one last", Ink.STRONG)]
    yield _table_row("forward", "mode", "at s", "took", "in gap", "tokens", Ink.MUTED)
    for forward in gap.forwards[:MOST_FORWARDS]:
        yield _table_row(
            f"#{forward.forward_id}",
            forward.mode or words.UNKNOWN,
            instant(forward.start_ns),
            _ms(forward.end_ns - forward.start_ns),
            _ms(forward.in_gap_ns),
            f"{words.count(forward.extend_tokens)} + {words.count(forward.decode_tokens)}",
            Ink.TEXT,
        )
    if len(gap.forwards) > MOST_FORWARDS:
        yield [(f"and {words.count(len(gap.forwards) - MOST_FORWARDS)} more", Ink.MUTED)]


def _table_row(forward: str, mode: str, at: str, took: str, in_gap: str, tokens: str, ink: Ink) -> Line:
    return [(f"{forward:<9}{mode:<8}{at:>10}{took:>10}{in_gap:>10}  {tokens}", ink)]


def _number(chunk: Chunk) -> str:
    if chunk.of == 1:
        return "whole prompt"
    return f"chunk {chunk.number}" if chunk.of is None else f"chunk {chunk.number} of {chunk.of}"


def _ms(ns: float) -> str:
    return words.seconds(ns / 1e9)
