"""Ledgers of waits between tokens as tables for a terminal."""

from collections.abc import Iterable, Sequence
from functools import partial

from rich.table import Table

from profiler.ledger.culprit_costs import ChunkToll, victims_of
from profiler.ledger.lines import LedgerLine, ledger_lines
from profiler.ledger.parts import Chunk, GapDetail
from profiler.ledger.report import ChunkCost, CulpritCost, StallGroup, StallReport, Victim
from ui.part_words import PART_WORDS, causes_ns
from ui.stall_cells import cells_table, milliseconds, share
from ui.stall_words import culprit_shares, names_words
from ui.words import clipped, count

__all__ = [
    "causes_table",
    "chunks_table",
    "culprits_table",
    "groups_table",
    "ledger_table",
    "toll_victims_table",
    "tolls_table",
    "victims_table",
]

_short = partial(clipped, most=20)  # of a name that shares its cell with others


def causes_table(report: StallReport) -> Table:
    """What all waiting went to; a cause that took nothing is left out."""
    rows = [
        (cause.words, milliseconds(ns), share(ns, report.waiting_ns))
        for cause, ns in causes_ns(report.by_kind).items()
        if ns
    ]
    whole_ns, longest = report.waiting_ns, report.longest
    if longest is not None:
        rows.append(("all waits together", milliseconds(whole_ns), share(whole_ns, whole_ns)))
        rows.append(("the longest one", milliseconds(longest.gap_ns), ""))
    return cells_table("where the waiting went", ("ms", "share"), rows)


def groups_table(groups: Iterable[StallGroup], run_start_ns: int) -> Table:
    """Late tokens, a row for all that were late at one instant for one cause."""
    heads = ("since, s", "late by, ms", "gap, ms", "lost in all, ms", "cause", "culprits, share of the gap")
    return cells_table("worst tokens", heads, (_group(group, run_start_ns) for group in groups))


def victims_table(victims: Iterable[Victim]) -> Table:
    """Who lost how much between their tokens."""
    heads = ("gaps", "waiting, ms", "late, ms", "longest, ms", "at token")
    return cells_table(
        "who waited",
        heads,
        (
            (
                clipped(victim.name),
                count(victim.gaps),
                *map(milliseconds, (victim.waiting_ns, victim.late_ns, victim.longest_ns)),
                count(victim.longest_token_index),
            )
            for victim in victims
        ),
    )


def culprits_table(culprits: Iterable[CulpritCost]) -> Table:
    """Whose chunks cost others how much."""
    heads = ("chunks", "cost others, ms", "one chunk at most, ms", "ran, ms")
    return cells_table(
        "culprits",
        heads,
        (
            (
                clipped(culprit.name),
                count(culprit.chunks),
                *map(milliseconds, (culprit.cost_ns, culprit.longest_ns, culprit.device_ns)),
            )
            for culprit in culprits
        ),
    )


def chunks_table(chunks: Iterable[ChunkCost]) -> Table:
    """What each chunk cost others."""
    heads = ("forward", "tokens", "cost others, ms", "ran, ms", "gaps")
    return cells_table(
        "chunks",
        heads,
        (
            (*_place(chunk), milliseconds(chunk.cost_ns), milliseconds(chunk.device_ns), count(chunk.gaps))
            for chunk in chunks
        ),
    )


def tolls_table(tolls: Sequence[ChunkToll]) -> Table:
    """What each chunk of one request cost whom."""
    rows = [
        (
            *_place(toll.chunk),
            milliseconds(toll.cost_ns),
            names_words([victim.name for victim in toll.victims], _short),
        )
        for toll in tolls
    ]
    return cells_table("chunks", ("forward", "tokens", "cost others, ms", "who waited"), rows)


def toll_victims_table(tolls: Sequence[ChunkToll]) -> Table:
    """What all chunks of one request cost each that waited for them."""
    rows = [(clipped(victim), milliseconds(cost_ns)) for victim, cost_ns in victims_of(tolls)]
    return cells_table("who waited", ("cost, ms",), rows)


def ledger_table(gap: GapDetail) -> Table:
    """One gap, line by line."""
    rows = [
        (_line(line), milliseconds(line.part_ns), share(line.part_ns, gap.gap_ns))
        for line in ledger_lines(gap)
    ]
    total = ("gap, parts sum exactly", milliseconds(gap.gap_ns), share(gap.gap_ns, gap.gap_ns))
    return cells_table("ledger", ("ms", "share"), (*rows, total))


def _group(group: StallGroup, run_start_ns: int) -> tuple[str, ...]:
    who = names_words(group.names, _short)
    if group.requests > 1:
        who += f"  ×{count(group.requests)}"
    return (
        who,
        f"{(group.start_ns - run_start_ns) / 1e9:.3f}",
        *map(milliseconds, (group.late_ns, group.gap_ns, group.lost_ns)),
        PART_WORDS[group.cause],
        culprit_shares(group, _short),
    )


def _line(line: LedgerLine) -> str:
    """Whose chunks they were, and that they rode along; or the kind."""
    if line.name is None or line.chunks is None:
        return PART_WORDS[line.kind]
    first, last, of = line.chunks
    numbers = "whole" if of == 1 else f"chunk {first}" if first == last else f"chunks {first}–{last}"
    return f"{clipped(line.name)}, {numbers}: {PART_WORDS[line.kind]}"


def _place(chunk: Chunk | ChunkCost) -> tuple[str, str, str]:
    """Which chunk, its forward, and its part of the prompt."""
    number = count(chunk.number) if chunk.of is None else f"{count(chunk.number)}/{count(chunk.of)}"
    return (
        f"{clipped(chunk.name)} {number}",
        count(chunk.forward_id),
        f"[{count(chunk.prefix_len)}, {count(chunk.extend_end)})",
    )
