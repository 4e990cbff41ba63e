"""What is drawn over the curves of the throughput chart beside what the report itself says."""

from collections.abc import Sequence
from dataclasses import dataclass

from profiler.saturation_report import SaturationReport

__all__ = ["ChunkMark", "Marks", "other_chunks", "ridge_is_seen", "share_at"]


@dataclass(frozen=True, slots=True)
class ChunkMark:
    """A chunk size in use, and what it is called."""

    tokens: int
    label: str


@dataclass(frozen=True, slots=True)
class Marks:
    """What is drawn over the curves beside what the report itself says."""

    chunks: Sequence[ChunkMark] = ()
    recommended: int | None = None  # chunk size
    limit_s: float | None = None  # that a forward may take, where decodes ride along
    ridge_tokens: float | None = None  # where computing takes as long as reading the weights
    modelled: bool = False  # whether the model's curve is there


def ridge_is_seen(report: SaturationReport, marks: Marks) -> bool:
    """Whether the ridge lies in the measured range, so that the curve shows both its sides."""
    return marks.ridge_tokens is not None and report.fitted(round(marks.ridge_tokens)) is not None


def share_at(report: SaturationReport, tokens: float) -> float:
    """The fit there as a share of the best; 1 where nothing is measured, as nothing is drawn there."""
    fit = report.fitted(round(tokens))
    return 1.0 if fit is None else fit.share


def other_chunks(marks: Marks) -> list[ChunkMark]:
    """The chunk sizes in use that are not the recommended one, whose label names them."""
    return [mark for mark in marks.chunks if mark.tokens != marks.recommended]
