"""A first token's ledger as a person reads it: one line a kind, and what kept the request from admission."""

from dataclasses import dataclass

from engine.batch import StopReason
from profiler.ledger.ttft_parts import TtftKind, TtftLedger, TtftPart

__all__ = ["TtftLine", "ttft_lines"]


@dataclass(frozen=True, slots=True)
class TtftLine:
    """Parts of one kind; of BLOCKED those that one budget ended behind one request."""

    kind: TtftKind
    part_ns: int
    share: float  # of the time to first token
    budget: StopReason | None = None
    behind: str | None = None  # the request that admission stopped at


def ttft_lines(ledger: TtftLedger) -> tuple[TtftLine, ...]:
    """The lines of a ledger, which sum to it: by kind, of one kind most time first."""
    parts: dict[tuple[TtftKind, StopReason | None, int | None], list[TtftPart]] = {}
    for part in ledger.parts:
        parts.setdefault((part.kind, part.budget, part.behind_rid), []).append(part)
    lines = [_line(ledger, alike) for alike in parts.values()]
    return tuple(sorted(lines, key=lambda line: (line.kind, -line.part_ns)))


def _line(ledger: TtftLedger, alike: list[TtftPart]) -> TtftLine:
    first, part_ns = alike[0], sum(part.part_ns for part in alike)
    share = part_ns / ledger.ttft_ns if ledger.ttft_ns else 0.0
    return TtftLine(first.kind, part_ns, share, first.budget, first.behind_name)
