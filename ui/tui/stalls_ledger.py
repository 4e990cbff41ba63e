"""A gap's ledger as rows of cells: a line a culprit with its chunks, the host's, its own, and their sum."""

from collections.abc import Sequence
from dataclasses import dataclass

from rich.cells import cell_len

from profiler.ledger.lines import LedgerLine, ledger_lines
from profiler.ledger.parts import DEVICE_KINDS, HOST_KINDS, GapDetail, PartKind
from ui import words
from ui.part_words import PART_WORDS, CauseGroup, cause_of
from ui.tui.ink import Ink
from ui.tui.stalls_bar import bar, cause_ink
from ui.tui.stalls_numbers import Durations, share_words
from ui.tui.text import Line, clip, fit, shown

__all__ = ["ledger_rows"]

NAME_CELLS = 16
LEAST_NUMBER, SHARE_CELLS = 11, 8
BARS_FROM = 52  # cells, from which there is room for bars
LEAST_LABEL, MOST_LABEL = 21, 30  # beside bars
GLYPH_CELLS = 2
_OWN = (PartKind.RECOMPUTE, PartKind.OWN_OTHER, PartKind.OWN_DECODE)
_SUM, _BRIEF_SUM = "gap, parts sum exactly", "gap, exact sum"


@dataclass(frozen=True, slots=True)
class _Row:
    cause: CauseGroup | None
    label: str
    brief: str  # where there is no room for the label
    part_ns: int


def ledger_rows(gap: GapDetail, cells: int, most: int, *, rule: bool, full: bool = False) -> list[Line]:
    """At most so many lines, of which the last is the sum; the smallest parts are taken together.

    `rule` draws a line above the sum; `full` tells what the host did apart.
    """
    lines = ledger_lines(gap)
    above: list[Line] = [[("─" * cells, Ink.RULE)]] if rule else []
    rows = [*_others(lines), *_own(lines)]
    rows = _folded(rows if full else _host_as_one(rows), max(most - 1 - len(above), 1))
    form = Durations.in_ms(gap.gap_ns, 1)
    columns = _Columns.of(rows, form.with_unit(gap.gap_ns), cells)
    drawn = [_drawn(row, gap, form, columns) for row in rows]
    return [*drawn, *above, _sum(gap, lines, form, columns)]


@dataclass(frozen=True, slots=True)
class _Columns:
    """Cells of the columns; where there is no room for bars, they have none."""

    label: int
    bar: int
    number: int

    @classmethod
    def of(cls, rows: Sequence[_Row], largest: str, cells: int) -> "_Columns":
        number = max(len(largest) + 1, LEAST_NUMBER)
        room = cells - number - SHARE_CELLS
        if cells < BARS_FROM:
            return cls(room, 0, number)
        longest = max((cell_len(row.label) for row in rows), default=0) + GLYPH_CELLS + 1
        label = min(max(longest, LEAST_LABEL), MOST_LABEL)
        return cls(label, room - label, number)


def _others(lines: Sequence[LedgerLine]) -> list[_Row]:
    """Device time that went to others, most first; then what no forward holds."""
    device = [line for line in lines if line.kind in DEVICE_KINDS and line.kind not in _OWN]
    rest = (line for line in lines if line.kind in HOST_KINDS)
    return [_row(line) for line in (*sorted(device, key=lambda line: -line.part_ns), *rest)]


def _own(lines: Sequence[LedgerLine]) -> list[_Row]:
    """What is its own comes last."""
    own = (line for line in lines if line.kind in _OWN)
    return [_row(line) for line in sorted(own, key=lambda line: _OWN.index(line.kind))]


def _row(line: LedgerLine) -> _Row:
    return _Row(cause_of(line.kind), *_labels(line), line.part_ns)


def _host_as_one(rows: Sequence[_Row]) -> list[_Row]:
    """What the host did on one row, where its first was."""
    host = cause_of(PartKind.LAUNCH)
    sums_ns = sum(row.part_ns for row in rows if row.cause is host)
    first = next((i for i, row in enumerate(rows) if row.cause is host), None)
    merged = _Row(host, host.words, host.words, sums_ns)
    return [
        merged if i == first else row for i, row in enumerate(rows) if row.cause is not host or i == first
    ]


def _folded(rows: list[_Row], most: int) -> list[_Row]:
    """At most so many rows, of which the last is then the smallest taken together."""
    if len(rows) <= most:
        return rows
    kept = sorted(sorted(range(len(rows)), key=lambda i: -rows[i].part_ns)[: most - 1])
    left = [row for i, row in enumerate(rows) if i not in kept]
    label = f"{words.count(len(left))} more, together"
    more = _Row(None, label, label, sum(row.part_ns for row in left))
    return [*(rows[i] for i in kept), more]


def _labels(line: LedgerLine) -> tuple[str, str]:
    """Whose and which chunks, or what kind, in full and in brief, where the glyph alone tells the kind."""
    kind = PART_WORDS[line.kind]
    if line.name is None:
        full = f"{kind}, {words.plural(line.forwards, 'forward')}" if line.forwards > 1 else kind
        return full, kind
    brief = f"{shown(line.name, NAME_CELLS)}{_chunks(line)}"
    return (brief if line.kind is PartKind.OTHERS_PREFILL else f"{brief}: {kind}"), brief


def _chunks(line: LedgerLine) -> str:
    if line.chunks is None:
        return ""
    first, last, of = line.chunks
    if of == 1:
        return ", whole"
    return f", chunk {first}" if first == last else f", chunks {first}–{last}"


def _drawn(row: _Row, gap: GapDetail, form: Durations, columns: _Columns) -> Line:
    glyph = (" ", Ink.BLANK) if row.cause is None else (row.cause.glyph, cause_ink(row.cause))
    room = columns.label - GLYPH_CELLS - bool(columns.bar)
    label = row.label if cell_len(row.label) <= room else clip(row.brief, room)
    line = fit([glyph, (f" {label}", Ink.TEXT)], columns.label)
    if row.cause is not None and columns.bar:
        line += bar(row.cause, row.part_ns, gap.gap_ns, columns.bar)
    line = fit(line, columns.label + columns.bar)
    amount = (f"{form.with_unit(row.part_ns):>{columns.number}}", Ink.TEXT)
    return [*line, amount, (f"{share_words(row.part_ns, gap.gap_ns):>{SHARE_CELLS}}", Ink.MUTED)]


def _sum(gap: GapDetail, lines: Sequence[LedgerLine], form: Durations, columns: _Columns) -> Line:
    """The gap, and whether the lines make it up to the nanosecond."""
    off_ns = gap.gap_ns - sum(line.part_ns for line in lines)
    said, mark = _SUM if columns.bar else _BRIEF_SUM, ("✓", Ink.GOOD)
    if off_ns:
        said, mark = f"gap, parts miss {off_ns:,} ns", ("✕", Ink.BAD)
    amount = f"{form.with_unit(gap.gap_ns):>{columns.number}}"
    line = fit([(f"  {said}", Ink.STRONG)], columns.label + columns.bar)
    return [*line, (amount, Ink.STRONG), (" " * (SHARE_CELLS - 1), Ink.BLANK), mark]
