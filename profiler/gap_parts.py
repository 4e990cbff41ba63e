"""What filled a gap, as parts that sum to it exactly: others' prefill, the own forward, and the rest."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from engine.batch import ForwardMode
from profiler.ledger.parts import Chunk, GapDetail
from profiler.ledger.parts import PartKind as Ledger

__all__ = ["GapPart", "PartKind", "gap_parts"]


class PartKind(StrEnum):
    """What a part of a gap is."""

    PREFILL = "prefill"  # another request's prompt, in forwards that the waiting one had no row in
    MIXED = "mixed"  # another request's prompt, only in the own forward
    DECODES = "decodes"  # forwards of others' decodes
    OWN = "own"  # the own forward, without what others' prompts are charged of it
    OWN_OTHERS = "own others"  # forwards of the request that yield other tokens, or none
    HOST = "host"  # no forward of this rank: planning, launches, results, waits


@dataclass(frozen=True, slots=True)
class GapPart:
    """One part; `chunks` are the first and last chunk's k of k/n, and n, of a request that prefilled."""

    kind: PartKind
    name: str | None  # the request's, of PREFILL and MIXED
    part_ns: int
    share: float  # of the gap
    chunks: tuple[int, int, int | None] | None = None


def gap_parts(gap: GapDetail) -> tuple[GapPart, ...]:
    """The culprits, most device time first, then the rest.

    Parts of no length are left out, but for OWN, where it can be told from what rode along.
    """
    own_ns = sum(forward.in_gap_ns for forward in gap.forwards if forward.forward_id == gap.own_forward_id)
    others_ns = sum(forward.in_gap_ns for forward in gap.forwards) - own_ns
    in_own = sum(chunk.in_gap_ns for chunk in gap.chunks if chunk.forward_id == gap.own_forward_id)
    own_elsewhere_ns = gap.sum_ns((Ledger.OWN_OTHER, Ledger.RECOMPUTE))
    charged = sum(culprit.device_ns for culprit in gap.culprits) - in_own
    decodes_ns = max(0, others_ns - charged)
    own_rest_ns = max(0, own_ns - in_own)
    known_ns = charged + in_own + decodes_ns + own_rest_ns + own_elsewhere_ns
    shared = gap.own_mode == ForwardMode.MIXED.name and gap.mixed_extra_ns is None
    rest = (
        (PartKind.DECODES, decodes_ns),
        (PartKind.OWN, own_rest_ns),
        (PartKind.OWN_OTHERS, own_elsewhere_ns),
        (PartKind.HOST, max(0, gap.gap_ns - known_ns)),
    )
    return (
        *(_prefill(gap, culprit.rid, culprit.name, culprit.device_ns) for culprit in gap.culprits),
        *(_part(gap, kind, ns) for kind, ns in rest if ns > 0 or (kind is PartKind.OWN and not shared)),
    )


def _prefill(gap: GapDetail, rid: int, name: str, device_ns: int) -> GapPart:
    chunks = [chunk for chunk in gap.chunks if chunk.rid == rid]
    only_own = all(chunk.forward_id == gap.own_forward_id for chunk in chunks) and bool(chunks)
    kind = PartKind.MIXED if only_own else PartKind.PREFILL
    return GapPart(kind, name, device_ns, _share(device_ns, gap), _span(chunks))


def _span(chunks: Iterable[Chunk]) -> tuple[int, int, int | None] | None:
    numbered = sorted(chunks, key=lambda chunk: chunk.number)
    return (numbered[0].number, numbered[-1].number, numbered[-1].of) if numbered else None


def _part(gap: GapDetail, kind: PartKind, part_ns: int) -> GapPart:
    return GapPart(kind, None, part_ns, _share(part_ns, gap))


def _share(part_ns: int, gap: GapDetail) -> float:
    return part_ns / gap.gap_ns if gap.gap_ns else 0.0
