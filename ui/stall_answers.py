"""Prints what `chunkscope stalls` found: of a whole trace, of one request that waited, of one culprit."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.table import Table

from profiler.ledger.culprit_costs import ChunkToll, costliest
from profiler.ledger.parts import GapDetail
from profiler.ledger.report import StallReport
from profiler.ledger.request_ledgers import worst_gaps
from profiler.ledger.ttft_parts import TtftLedger, TtftTotals
from profiler.ledger.why import mend_gap, why_late
from ui import stall_tables, ttft_tables
from ui.price_cells import print_table
from ui.stall_words import part_of, stalls_answer
from ui.tables import print_facts, reporter, say
from ui.words import clipped, count, plural, seconds

__all__ = ["print_basis", "print_culprit", "print_report", "print_request"]


def print_report(report: StallReport, ttft: TtftTotals, top: int, run_start_ns: int) -> None:
    """The answer, what the waiting went to, and who lost it to whom; then the same of first tokens."""
    say(reporter(), stalls_answer(report).text, "bold")
    _print_tables(
        stall_tables.causes_table(report),
        stall_tables.groups_table(report.groups[:top], run_start_ns),
        stall_tables.victims_table(report.victims[:top]),
        stall_tables.culprits_table(report.culprits[:top]),
        stall_tables.chunks_table(report.chunks[:top]),
        ttft_tables.ttft_totals_table(ttft),
        ttft_tables.ttft_culprits_table(ttft, top),
    )


def print_request(
    asked: str,
    gaps: Sequence[GapDetail],
    ttft: TtftLedger | None,
    top: int,
    meta: Mapping[str, Any],
    run_start_ns: int,
) -> None:
    """How long one request waited, and its first token and worst waits with every line of their ledgers.

    `meta` is the trace's, for what would have made the longest wait shorter; times count from `run_start_ns`.
    """
    console, who = reporter(), clipped(asked)
    if gaps:
        _print_waits(who, gaps, top, meta, run_start_ns)
    else:
        say(console, f"{who} gave fewer than two tokens: it has no wait between tokens to explain.", "bold")
    say(console, "")
    if ttft is None:
        say(console, f"The time to {who}'s first token is not known.", "bold")
        return
    late = f"{who}'s first token came {seconds(ttft.ttft_ns / 1e9)} after it arrived at"
    say(console, f"{late} {(ttft.arrival_ns - run_start_ns) / 1e9:.3f} s.", "bold")
    print_table(ttft_tables.ttft_ledger_table(ttft))


def _print_waits(
    who: str, gaps: Sequence[GapDetail], top: int, meta: Mapping[str, Any], run_start_ns: int
) -> None:
    console = reporter()
    worst = worst_gaps(gaps, top)
    waiting, late = sum(gap.gap_ns for gap in gaps), sum(gap.late_ns for gap in gaps)
    longest = seconds(worst[0].gap_ns / 1e9)
    lost = f"{part_of(late, waiting)} of waiting in {plural(len(gaps), 'gap')} made {who}'s tokens late"
    say(console, f"{lost}. Worst token: {longest}.", "bold")
    for gap in worst:
        say(console, "")
        say(console, _late(gap, run_start_ns), "bold")
        say(console, why_late(gap))
        print_table(stall_tables.ledger_table(gap))
    change = mend_gap(worst[0], meta)
    if change is not None:
        say(console, "")
        say(console, change.sentence)


def print_culprit(asked: str, tolls: Sequence[ChunkToll], top: int | None) -> None:
    """What one request's chunks cost others: each chunk, and each that waited. `top` bounds the chunks."""
    console, who = reporter(), clipped(asked)
    if not tolls:
        say(console, f"No request waited between tokens for a chunk of {who}.", "bold")
        return
    cost = seconds(sum(toll.cost_ns for toll in tolls) / 1e9)
    say(console, f"{who} cost others {cost}, in {plural(len(tolls), 'chunk')}.", "bold")
    shown = list(tolls) if top is None else costliest(tolls, top)
    _print_tables(stall_tables.tolls_table(shown), stall_tables.toll_victims_table(tolls))


def print_basis(path: Path, meta: Mapping[str, Any], split: str) -> None:
    """What the numbers rest on: the trace, its provenance, and what shared forwards were split by."""
    console = reporter()
    say(console, "")
    provenance = meta.get("provenance") or "of unknown provenance"
    print_facts(
        console,
        [
            ("trace", f"{path}, {provenance}; all sums are derived from its times"),
            ("split", f"a forward of several chunks is shared among them by {split}"),
        ],
    )


def _print_tables(*tables: Table) -> None:
    """Those that have rows."""
    for table in tables:
        if table.row_count:
            say(reporter(), "")
            print_table(table)


def _late(gap: GapDetail, run_start_ns: int) -> str:
    """Which token came how late, and since when it was awaited."""
    late, wait = seconds(gap.late_ns / 1e9), seconds(gap.gap_ns / 1e9)
    since = f"{(gap.start_ns - run_start_ns) / 1e9:.3f} s"
    return f"Token {count(gap.token_index)} came {late} late, in a wait of {wait} since {since}."
