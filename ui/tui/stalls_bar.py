"""Waiting by cause as bars of cells: all of it stacked, and what one row took of a whole."""

from collections.abc import Iterator, Mapping

from profiler.culprits import split_exactly
from ui import words
from ui.part_words import CauseGroup
from ui.tui.ink import Ink
from ui.tui.text import Line, together

__all__ = ["bar", "cause_ink", "cause_legend", "eighths", "stacked"]

_INKS = {
    "decode": Ink.DECODE,
    "stall_prefill": Ink.STALL,
    "stall_mixed": Ink.MIXED,
    "kv_private": Ink.HELD,
    "text": Ink.DEFERRED,
    "host": Ink.MIDDLE,
    "line": Ink.MUTED,
    "muted": Ink.MUTED,
}
_LEFT_EIGHTHS = " ▏▎▍▌▋▊▉"
_SOLID = "█"
_MAIN = ("own_decode", "others_prefill", "mixed_extra", "no_kv")


def cause_ink(cause: CauseGroup) -> Ink:
    """The ink of a cause's glyph."""
    return _INKS[cause.colour]


def stacked(by_cause: Mapping[CauseGroup, int], cells: int) -> Line:
    """All waiting in so many cells; a cause that has anything is at least one cell wide."""
    there = [(cause, ns) for cause, ns in by_cause.items() if ns > 0]
    widths = split_exactly(cells, [ns for _, ns in there])
    for i, width in enumerate(widths):
        if width == 0 and max(widths) > 1:
            widths[widths.index(max(widths))] -= 1
            widths[i] = 1
    return [(cause.glyph * width, cause_ink(cause)) for (cause, _), width in zip(there, widths, strict=True)]


def cause_legend(by_cause: Mapping[CauseGroup, int], cells: int, *, wide: bool) -> Line:
    """What the bar's parts are and how long; on a wide screen also the main ones that are nothing."""
    there = [cause for cause, ns in by_cause.items() if ns > 0]
    if wide:
        there += [cause for cause, ns in by_cause.items() if not ns and cause.key in _MAIN]
    return together(_entries(there, by_cause), cells, 3 if wide else 2)


def _entries(causes: list[CauseGroup], by_cause: Mapping[CauseGroup, int]) -> Iterator[Line]:
    for cause in causes:
        ns = by_cause[cause]
        amount = words.seconds(ns / 1e9) if ns else "0"
        yield [(cause.glyph, cause_ink(cause)), (f" {cause.words} ", Ink.MUTED), (amount, Ink.TEXT)]


def bar(cause: CauseGroup, ns: int, whole_ns: int, cells: int) -> Line:
    """A bar of a cause's glyph, `cells` long for `whole_ns`, and blanks behind it."""
    ink = cause_ink(cause)
    if cause.glyph == _SOLID:
        return [(eighths(ns, whole_ns, cells), ink)]
    width = min(max(round(cells * ns / max(whole_ns, 1)), 1), cells) if ns > 0 else 0
    return [(cause.glyph * width, ink), (" " * (cells - width), Ink.BLANK)]


def eighths(ns: int, whole_ns: int, cells: int) -> str:
    """A solid bar that ends on an eighth of a cell; anything is at least one eighth."""
    length = min(max(round(8 * cells * ns / max(whole_ns, 1)), 1), 8 * cells) if ns > 0 else 0
    whole, rest = divmod(length, 8)
    return (_SOLID * whole + (_LEFT_EIGHTHS[rest] if rest else "")).ljust(cells)
