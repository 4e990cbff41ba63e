"""Ledgers made by hand: of six decodes that two prompts hold up, as a report says it."""

from dataclasses import replace

import numpy as np

from profiler.culprits import Culprit
from profiler.ledger.parts import PartKind
from profiler.ledger.report import CausesOverTime, ChunkCost, CulpritCost, StallGroup, StallReport, Victim

__all__ = ["EMPTY", "FEW", "LONG", "WALL", "group"]

MS = 1_000_000

FEW = (
    *((f"decode-{i + 1}", 0, 20, 24) for i in range(3)),
    ("long-1", 20 * MS, 700, 3),
    ("short-1", 30 * MS, 40, 3),
    ("long-2", 160 * MS, 90, 3),
)
"""Arrivals for `record_three_runs`: few tokens, and a prompt of several chunks that they wait for."""
LONG = 3  # rid of long-1


def group(by_kind: dict[PartKind, int], *, rids: tuple[int, ...] = (1, 2, 3, 4, 5, 6)) -> StallGroup:
    """Gaps from 263 ms on, with these parts in milliseconds; 76 % of each went to r7, 21 % to r8."""
    parts = {kind: ms * MS for kind, ms in by_kind.items()}
    gap_ns = sum(parts.values())
    late_ns = gap_ns - parts.get(PartKind.OWN_DECODE, 0) - parts.get(PartKind.OWN_OTHER, 0)
    return StallGroup(
        start_ns=263 * MS,
        end_ns=263 * MS + gap_ns,
        own_forward_id=58,
        cause=max(by_kind, key=lambda kind: by_kind[kind]),
        rids=rids,
        names=tuple(f"r{rid}" for rid in rids),
        token_index=37,
        gap_ns=gap_ns,
        late_ns=late_ns,
        lost_ns=late_ns * len(rids),
        by_kind=parts,
        culprits=(Culprit(7, "r7", gap_ns * 76 // 100), Culprit(8, "r8", gap_ns * 21 // 100)),
    )


_WALL = group({PartKind.OWN_DECODE: 10, PartKind.OTHERS_PREFILL: 1_480, PartKind.LAUNCH: 10})

WALL = StallReport(
    gaps=915,
    waiting_ns=17_500 * MS,
    late_ns=9_860 * MS,
    by_kind={
        **dict.fromkeys(PartKind, 0),
        PartKind.OWN_DECODE: 7_640 * MS,
        PartKind.OTHERS_PREFILL: 9_590 * MS,
        PartKind.LAUNCH: 270 * MS,
    },
    longest=_WALL,
    groups=(_WALL, group({PartKind.OWN_DECODE: 10, PartKind.OTHERS_PREFILL: 340}, rids=(7,))),
    victims=(Victim(1, "r1", 150, 2_900 * MS, 1_600 * MS, 1_500 * MS, 37),),
    culprits=(
        CulpritCost(7, "r7", 2, 7_000 * MS, 1_140 * MS, 1_158 * MS),
        CulpritCost(8, "r8", 1, 2_590 * MS, 315 * MS, None),
    ),
    chunks=(
        ChunkCost(7, "r7", 50, 2, 2, 2_048, 4_096, 700 * MS, 4_200 * MS, 6),
        ChunkCost(7, "r7", 49, 1, 2, 0, 2_048, 458 * MS, 2_800 * MS, 6),
        ChunkCost(8, "r8", 51, 1, None, 0, 2_048, None, 2_590 * MS, 7),
    ),
    over_time=CausesOverTime(
        edges_ns=np.array([0, 1_000 * MS, 2_000 * MS], dtype=np.int64),
        waiting_ns=np.array(
            [[8_750 * MS if kind is PartKind.OWN_DECODE else 0 for kind in PartKind]] * 2, dtype=np.int64
        ),
    ),
    split="tokens",
    mixed_extra_estimator=None,
)

EMPTY = replace(
    WALL,
    gaps=0,
    waiting_ns=0,
    late_ns=0,
    by_kind=dict.fromkeys(PartKind, 0),
    longest=None,
    groups=(),
    victims=(),
    culprits=(),
    chunks=(),
)
