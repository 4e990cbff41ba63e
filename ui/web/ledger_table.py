"""A gap's ledger as a table: one line a culprit, then what nobody is charged with, and their exact sum."""

from collections.abc import Sequence

from dash import html

from profiler.ledger.lines import LedgerLine, ledger_lines
from profiler.ledger.parts import GapDetail, PartKind
from ui.part_words import PART_WORDS, cause_of
from ui.web.attributes import data
from ui.web.instants import instant_link
from ui.web.metric_heads import named
from ui.web.names import shown
from ui.web.runs import Run
from ui.words import plural

__all__ = ["chunk_name", "even_ms", "ledger_table"]

_LAST = frozenset({PartKind.OWN_DECODE, PartKind.OWN_OTHER})
_NS_PER_MS = 1e6


def ledger_table(run: Run, gap: GapDetail, most: int) -> html.Table:
    """Every part of a gap, the largest first; of its culprits at most so many, the others in one line.

    Its own decode forwards stand last, as what would be left.
    """
    lines = ledger_lines(gap)
    culprits = [line for line in lines if line.name is not None]
    kept = [*culprits[:most], *(line for line in lines if line.name is None)]
    own = sorted((line for line in kept if line.kind in _LAST), key=lambda line: -line.kind)
    rows = [_row(run, gap, line) for line in sorted(kept, key=_size) if line not in own]
    if len(culprits) > most:
        rows.append(_others(gap, culprits[most:]))
    rows += [_row(run, gap, line) for line in own]
    return html.Table(
        [html.Tbody(rows), html.Tfoot(_total(gap, lines))],
        className="parts ledger",
        **named("gap_ledger"),
    )


def even_ms(part_ns: int, whole_ns: int) -> str:
    """Milliseconds with as many decimals for every part of a whole: 1,158.2 ms beside 9.2 ms."""
    decimals = 1 if whole_ns >= 10 * _NS_PER_MS else 2 if whole_ns >= _NS_PER_MS else 4
    return f"{part_ns / _NS_PER_MS:,.{decimals}f} ms"


def chunk_name(name: str, number: int, of: int | None) -> str:
    """r7 chunk 3/16; r7 whole; r7 chunk 3 where the last is not planned yet."""
    return f"{shown(name)} {_chunk_words(number, of)}"


def _chunk_words(number: int, of: int | None) -> str:
    if of == 1:
        return "whole"
    return f"chunk {number}" + (f"/{of}" if of else "")


def _size(line: LedgerLine) -> int:
    return -line.part_ns


def _row(run: Run, gap: GapDetail, line: LedgerLine) -> html.Tr:
    start_ns, end_ns = _instant(gap, line)
    words = html.Span(_label(line), className="label")
    link = instant_link(words, run, start_ns, end_ns, gap, title="show this instant in Compare")
    return _line(cause_of(line.kind).swatch, link, line.part_ns, gap.gap_ns)


def _others(gap: GapDetail, lines: Sequence[LedgerLine]) -> html.Tr:
    rest_ns = sum(line.part_ns for line in lines)
    words = html.Span(plural(len(lines), "more culprit"), className="label")
    return _line(cause_of(lines[0].kind).swatch, words, rest_ns, gap.gap_ns)


def _line(swatch: str, label: html.A | html.Span, part_ns: int, whole_ns: int) -> html.Tr:
    share = part_ns / whole_ns if whole_ns else 0.0
    return html.Tr(
        [
            html.Th([html.Span(className=f"swatch {swatch}"), label], scope="row"),
            html.Td(html.Span(className=f"bar {swatch}", style={"width": f"{share * 100:.2f}%"})),
            html.Td(even_ms(part_ns, whole_ns)),
            html.Td(f"{share * 100:.1f} %", className="muted"),
        ],
        **data(ns=part_ns),
    )


def _total(gap: GapDetail, lines: Sequence[LedgerLine]) -> html.Tr:
    exact = sum(line.part_ns for line in lines) == gap.gap_ns
    words = "gap, parts sum exactly" if exact else "gap, parts do not sum to it"
    mark = html.Span("✓", className="held") if exact else html.Span("✕", className="violated")
    return html.Tr(
        [html.Th(words, scope="row", colSpan=2), html.Td(even_ms(gap.gap_ns, gap.gap_ns)), html.Td(mark)],
        className="total",
        **data(ns=gap.gap_ns),
    )


def _label(line: LedgerLine) -> str:
    if line.name is None:
        return PART_WORDS[line.kind]
    if line.chunks is None:
        return shown(line.name)
    first, last, of = line.chunks
    if first == last:
        return f"{shown(line.name)}, {_chunk_words(first, of)}"
    return f"{shown(line.name)}, chunks {first}–{last}"


def _instant(gap: GapDetail, line: LedgerLine) -> tuple[int, int]:
    """Where a line's largest part lies; of what no forward holds, the whole gap."""
    mine = [
        part
        for part in gap.parts
        if part.kind is line.kind and (part.chunk.name if part.chunk else None) == line.name
    ]
    largest = max(mine, key=lambda part: part.part_ns)
    if largest.chunk is not None:
        return largest.chunk.start_ns, largest.chunk.end_ns
    found = next((each for each in gap.forwards if each.forward_id == largest.forward_id), None)
    return (gap.start_ns, gap.end_ns) if found is None else (found.start_ns, found.end_ns)
