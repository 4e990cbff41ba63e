"""A gap's ledger as a person reads it: one line a culprit with its chunks, then one a kind."""

from collections.abc import Iterable
from dataclasses import dataclass

from profiler.ledger.parts import OWN_KINDS, Chunk, GapDetail, Part, PartKind

__all__ = ["LedgerLine", "ledger_lines"]


@dataclass(frozen=True, slots=True)
class LedgerLine:
    """Parts of one kind, charged to one request or to nobody."""

    kind: PartKind
    name: str | None  # the request's that it is charged to
    part_ns: int
    share: float  # of the gap
    forwards: int  # that the parts lie in; 0 for the host's
    chunks: tuple[int, int, int | None] | None = None  # first and last k of k/n, and n, of that request


def ledger_lines(gap: GapDetail) -> tuple[LedgerLine, ...]:
    """The lines of a gap, which sum to it: culprits first, most time first; then kinds, its own last."""
    charged: dict[tuple[PartKind, int | None], list[Part]] = {}
    for part in gap.parts:
        charged.setdefault((part.kind, part.chunk.rid if part.chunk else None), []).append(part)
    lines = {key: _line(gap, key[0], parts) for key, parts in charged.items()}
    culprits = [key for key in lines if key[1] is not None]
    culprits.sort(key=lambda key: (-lines[key].part_ns, key[0], key[1]))
    rest = [key for key in lines if key[1] is None]
    rest.sort(key=lambda key: (key[0] in OWN_KINDS, key[0]))
    return tuple(lines[key] for key in (*culprits, *rest))


def _line(gap: GapDetail, kind: PartKind, parts: list[Part]) -> LedgerLine:
    chunks = [part.chunk for part in parts if part.chunk is not None]
    part_ns = sum(part.part_ns for part in parts)
    return LedgerLine(
        kind=kind,
        name=chunks[0].name if chunks else None,
        part_ns=part_ns,
        share=part_ns / gap.gap_ns if gap.gap_ns else 0.0,
        forwards=len({part.forward_id for part in parts} - {None}),
        chunks=_span(chunks),
    )


def _span(chunks: Iterable[Chunk]) -> tuple[int, int, int | None] | None:
    numbered = sorted(chunks, key=lambda chunk: chunk.number)
    return (numbered[0].number, numbered[-1].number, numbered[-1].of) if numbered else None
