"""A gap taken apart, in lines: what filled it, who is to blame, and which chunk cost most."""

from collections.abc import Iterator

from profiler.ledger.parts import Chunk, GapDetail
from ui import words
from ui.tui.ink import Ink
from ui.tui.text import Line, fit, instant, shown

__all__ = ["gap_lines"]

MOST_FORWARDS = 500
NAME_CELLS = 24


def gap_lines(gap: GapDetail) -> list[Line]:
    """All that is known of the gap, effect first."""
    return [*_head(gap), [], *_culprits(gap), *_mixed(gap), [], *_forwards(gap)]


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


def _culprits(gap: GapDetail) -> Iterator[Line]:
    yield [("Whose prefill held the device", Ink.STRONG)]
    if not gap.culprits:
        yield [("nobody's: no prefill of others in it", Ink.MUTED)]
    for culprit in gap.culprits:
        chunks = [chunk for chunk in gap.chunks if chunk.rid == culprit.rid]
        yield _columns(shown(culprit.name, NAME_CELLS), _ms(culprit.device_ns), _chunk_range(chunks))
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


def _columns(name: str, cost: str, rest: str) -> Line:
    return [*fit([(name, Ink.TEXT)], NAME_CELLS + 1), (f"{cost:>10}", Ink.BAD), (f"  {rest}", Ink.MUTED)]


def _chunk_range(chunks: list[Chunk]) -> str:
    if not chunks:
        return ""
    first, last = chunks[0], chunks[-1]
    if len(chunks) == 1:
        return _number(first)
    of = "" if last.of is None else f" of {last.of}"
    return f"chunks {first.number} to {last.number}{of}"


def _number(chunk: Chunk) -> str:
    if chunk.of == 1:
        return "whole prompt"
    return f"chunk {chunk.number}" if chunk.of is None else f"chunk {chunk.number} of {chunk.of}"


def _ms(ns: float) -> str:
    return words.seconds(ns / 1e9)
