"""Text measured in cells: spans of one ink, clipped, padded and put at the two ends of a line."""

import re
import unicodedata
from collections.abc import Iterable, Sequence

from rich.cells import cell_len, set_cell_size

from ui import words
from ui.tui.ink import Ink

__all__ = [
    "Line",
    "Span",
    "between",
    "clip",
    "cut",
    "fit",
    "instant",
    "isolated",
    "shown",
    "span_length",
    "together",
    "wrapped",
]

Span = tuple[str, int]  # text, ink
Line = list[Span]

ELLIPSIS = "…"
ISOLATE, POP_ISOLATE = "\u2068", "\u2069"
LONGEST_NAME = 400  # characters of a name that are ever looked at


def shown(name: str | None, cells: int) -> str:
    """A user's name in at most so many cells: whatever it holds, it is text and stays in its place."""
    if name is None:
        return words.UNKNOWN
    return isolated(clip(words.name(name[:LONGEST_NAME]), cells))


def isolated(text: str) -> str:
    """The text, kept from changing the direction of what stands beside it."""
    if any(unicodedata.bidirectional(c) in ("R", "AL") for c in text):
        return f"{ISOLATE}{text}{POP_ISOLATE}"
    return text


def clip(text: str, cells: int) -> str:
    """The text, cut to at most so many cells with an ellipsis; marks that take no cell are cut as well."""
    text = text[: 4 * max(cells, 0)] if len(text) > 4 * cells else text
    if cell_len(text) <= cells:
        return text
    return "" if cells <= 0 else set_cell_size(text, cells - 1).rstrip() + ELLIPSIS


def instant(t_ns: int | None, decimals: int = 3) -> str:
    """A moment of the trace, in seconds without a unit: 1.200."""
    return words.UNKNOWN if t_ns is None else f"{t_ns / 1e9:,.{decimals}f}"


def span_length(spans: Iterable[Span]) -> int:
    """Cells that the spans take."""
    return sum(cell_len(text) for text, _ in spans)


def fit(spans: Sequence[Span], cells: int, ink: Ink = Ink.BLANK) -> Line:
    """The spans in exactly so many cells: clipped, or filled up with spaces of `ink`."""
    left = cells - span_length(spans)
    if left >= 0:
        return [*spans, (" " * left, ink)] if left else list(spans)
    line: Line = []
    left = cells
    for text, code in spans:
        if left <= 0:
            break
        text = clip(text, left)
        line.append((text, code))
        left -= cell_len(text)
    return [*line, (" " * left, ink)] if left else line


def together(groups: Iterable[Line], cells: int, gap: int = 2, ink: Ink = Ink.BLANK) -> Line:
    """As many of the groups, in their order, as fit whole into so many cells."""
    line: Line = []
    for group in groups:
        more: Line = [*([(" " * gap, int(ink))] if line else []), *group]
        if span_length(line) + span_length(more) <= cells:
            line += more
    return line


def wrapped(spans: Sequence[Span], cells: int) -> list[Line]:
    """The spans in lines of at most so many cells, broken at spaces; a longer word is clipped."""
    lines: list[Line] = [[]]
    for text, ink in spans:
        for part in re.findall(r" *[^ ]+| +$", text):
            if span_length(lines[-1]) + cell_len(part) > cells:
                lines.append([])
            word = clip(part if lines[-1] else part.lstrip(), cells)
            if lines[-1] and lines[-1][-1][1] == ink:
                lines[-1][-1] = (lines[-1][-1][0] + word, ink)
            elif word:
                lines[-1].append((word, ink))
    return [line for line in lines if line]


def cut(lines: Sequence[Line], rows: int, cells: int, end: str) -> list[Line]:
    """At most so many of the lines; where some are left out, the last one has `end` behind its words."""
    if rows <= 0 or len(lines) <= rows:
        return list(lines[: max(rows, 0)])
    *kept, last = lines[:rows]
    words = wrapped(last, cells - cell_len(end) - 1)[:1]
    return [*kept, [*(words[0] if words else []), (f" {end}", Ink.MUTED)]]


def between(left: Sequence[Span], right: Sequence[Span], cells: int, ink: Ink = Ink.BLANK) -> Line:
    """`left` at the start and `right` at the end of so many cells; `left` is clipped to leave room."""
    length = min(span_length(right), cells)
    return [*fit(left, cells - length, ink), *fit(right, length, ink)]
