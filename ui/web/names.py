"""Names that people gave to requests, files and machines, made safe to stand inside a line of text."""

from dataclasses import replace

from profiler.ledger.parts import GapDetail
from ui.words import CUT, clipped

__all__ = ["shown", "with_shown_names"]

_ISOLATE, _END = "\u2068", "\u2069"  # so that right-to-left letters turn nothing around them


def shown(text: str) -> str:
    """A name on one line, of a readable length, isolated where its direction could turn its neighbours."""
    cut = clipped(text)
    return cut if cut.removesuffix(CUT).isascii() else f"{_ISOLATE}{cut}{_END}"


def with_shown_names(gap: GapDetail) -> GapDetail:
    """The same gap with every name as `shown` writes it."""
    return replace(
        gap,
        name=shown(gap.name),
        culprits=tuple(replace(culprit, name=shown(culprit.name)) for culprit in gap.culprits),
        chunks=tuple(replace(chunk, name=shown(chunk.name)) for chunk in gap.chunks),
        costliest=gap.costliest and replace(gap.costliest, name=shown(gap.costliest.name)),
    )
