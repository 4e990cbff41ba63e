"""Ledgers of first tokens as tables for a terminal."""

from collections.abc import Iterator

from rich.table import Table

from engine.batch import StopReason
from profiler.ledger.ttft_lines import TtftLine, ttft_lines
from profiler.ledger.ttft_parts import TtftKind, TtftLedger, TtftTotals
from profiler.ledger.ttft_words import TTFT_WORDS
from ui.stall_cells import cells_table, milliseconds, share
from ui.words import name

__all__ = ["ttft_culprits_table", "ttft_ledger_table", "ttft_totals_table"]


def ttft_totals_table(totals: TtftTotals) -> Table:
    """What all times to first tokens went to; what took nothing is left out."""
    whole_ns = totals.waiting_ns
    rows = [(words, milliseconds(ns), share(ns, whole_ns)) for words, ns in _sums(totals) if ns]
    if rows:
        rows.append(("all first tokens together", milliseconds(whole_ns), share(whole_ns, whole_ns)))
    if totals.worst:
        rows.append(("the latest one", milliseconds(totals.worst[0].ttft_ns), ""))
    return cells_table("where time to first tokens went", ("ms", "share"), rows)


def ttft_culprits_table(totals: TtftTotals, top: int) -> Table:
    """Whose chunks kept others from their first tokens, for the budget or for the device."""
    rows = [
        (name(each.name), *map(milliseconds, (each.cost_ns, each.budget_ns, each.cost_ns - each.budget_ns)))
        for each in totals.culprits[:top]
    ]
    heads = ("cost first tokens, ms", "by its budget, ms", "on the device, ms")
    return cells_table("culprits", heads, rows)


def ttft_ledger_table(ledger: TtftLedger) -> Table:
    """One time to first token, line by line."""
    rows = [
        (_words(line), milliseconds(line.part_ns), f"{100 * line.share:.1f} %") for line in ttft_lines(ledger)
    ]
    whole_ns = ledger.ttft_ns
    total = ("time to first token, parts sum exactly", milliseconds(whole_ns), share(whole_ns, whole_ns))
    return cells_table("ledger", ("ms", "share"), (*rows, total))


def _sums(totals: TtftTotals) -> Iterator[tuple[str, int]]:
    """By kind; of rounds that did not admit a request by the budget that ended them."""
    for kind in TtftKind:
        if kind is TtftKind.BLOCKED:
            for budget, ns in totals.by_budget.items():
                yield _stopped(budget), ns
        else:
            yield TTFT_WORDS[kind], totals.by_kind.get(kind, 0)


def _stopped(budget: StopReason | None) -> str:
    words = TTFT_WORDS[TtftKind.BLOCKED]
    return f"{words}, why is not told" if budget is None else f"{words}, stopped by {budget.name}"


def _words(line: TtftLine) -> str:
    """A kind; of rounds that did not admit it also the budget that ended them, and behind whom."""
    words = TTFT_WORDS[line.kind] if line.kind is not TtftKind.BLOCKED else _stopped(line.budget)
    return words if line.behind is None else f"{words} at {name(line.behind)}"
