"""The left panel of the Stalls screen: a wait's ledger, why it was late, and what would change that."""

from collections.abc import Mapping
from typing import Any

from profiler.ledger.parts import GapDetail, PartKind
from profiler.ledger.report import StallReport
from ui import words
from ui.tui.ink import Ink
from ui.tui.stalls_ledger import ledger_rows
from ui.tui.stalls_numbers import Durations, share_words
from ui.tui.stalls_view import StallsView
from ui.tui.stalls_why import why_lines
from ui.tui.text import Line, between, cut, shown, together

__all__ = ["ledger_panel"]

NAME_CELLS = 12
LEAST_WHY, LEAST_LEDGER, LEAST_IN_ALL = 2, 6, 4  # rows
COST_CELLS, SHARE_CELLS = 12, 9
TENFOLD = 9.95  # from which times are whole numbers
MORE = "… Enter twice"  # the replay at that instant, and all of the gap


def ledger_panel(view: StallsView, cells: int, rows: int, *, wide: bool) -> list[Line]:
    """Exactly so many rows: whose wait, its ledger, why, and what would change it."""
    gap = view.gap
    lines: list[Line] = [] if gap is None else _lines(gap, _meta(view), cells, rows, wide=wide)
    if wide and lines:
        lines += _in_all(view.report, cells, rows - len(lines))
    return [*lines, *([[]] * rows)][:rows]


def _lines(gap: GapDetail, meta: Mapping[str, Any], cells: int, rows: int, *, wide: bool) -> list[Line]:
    """As much of the ledger as leaves room for why, then that."""
    space: list[Line] = [[]] if wide else []
    head = [_ledger_head(gap, cells), *space]
    why = why_lines(gap, meta, cells, titled=wide)
    room = rows - len(head)
    least = len(why) + 1 if wide else LEAST_WHY
    ledger = ledger_rows(gap, cells, max(room - least, min(room - LEAST_WHY, LEAST_LEDGER)), rule=wide)
    return [*head, *ledger, *cut([*space, *why], room - len(ledger), cells, MORE)]


def _in_all(report: StallReport | None, cells: int, rows: int) -> list[Line]:
    """Who cost all others most, where so many rows are left for it."""
    if report is None or not report.culprits or rows < LEAST_IN_ALL:
        return []
    form = Durations.of_sums(report.culprits[0].cost_ns)
    lines: list[Line] = [[], [("What culprits cost all others, share of all waiting", Ink.STRONG)]]
    for culprit in report.culprits[: rows - 2]:
        who: Line = [(shown(culprit.name, NAME_CELLS), Ink.TEXT)]
        who += [(f", {words.plural(culprit.chunks, 'chunk')}", Ink.MUTED)]
        cost: Line = [(f"{form.with_unit(culprit.cost_ns):>{COST_CELLS}}", Ink.TEXT)]
        share = share_words(culprit.cost_ns, report.waiting_ns)
        lines.append(between(who, [*cost, (f"{share:>{SHARE_CELLS}}", Ink.MUTED)], cells))
    return lines


def _ledger_head(gap: GapDetail, cells: int) -> Line:
    """Whose wait, and as there is room how long and how many times its own decode."""
    form = Durations.in_ms(gap.gap_ns, 1)
    own_ns = gap.sum_ns([PartKind.OWN_DECODE])
    who = f"Ledger: {shown(gap.name, NAME_CELLS)}, token {gap.token_index:,}"
    groups: list[Line] = [[(who, Ink.STRONG)], [(f"gap {form.with_unit(gap.gap_ns)}", Ink.MUTED)]]
    if own_ns:
        times = gap.gap_ns / own_ns
        groups.append([(f"{times:,.{0 if times >= TENFOLD else 1}f} × own decode", Ink.MUTED)])
    return together(groups, cells, 3)


def _meta(view: StallsView) -> Mapping[str, Any]:
    return {} if view.timeline is None else view.timeline.trace.meta
