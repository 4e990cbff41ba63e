"""Names that people gave to requests, files and machines, made safe to stand inside a line of text."""

from dataclasses import replace

from profiler.ledger.parts import GapDetail
from ui.words import name

__all__ = ["clipped", "shown", "with_shown_names"]

_MOST = 48  # characters; a name is recognised by its beginning
_CUT = "…"
_ISOLATE, _END = "\u2068", "\u2069"  # so that right-to-left letters turn nothing around them


def shown(text: str) -> str:
    """A name on one line, of a readable length, isolated where its direction could turn its neighbours."""
    cut = clipped(text, _MOST)
    return cut if cut.removesuffix(_CUT).isascii() else f"{_ISOLATE}{cut}{_END}"


def clipped(text: str, most: int) -> str:
    """A text on one line whatever characters it holds, an ellipsis where it was cut."""
    escaped = name(text[:most])
    return escaped if len(text) <= most and len(escaped) <= most else escaped[: most - 1] + _CUT


def with_shown_names(gap: GapDetail) -> GapDetail:
    """The same gap with every name as `shown` writes it."""
    return replace(
        gap,
        name=shown(gap.name),
        culprits=tuple(replace(culprit, name=shown(culprit.name)) for culprit in gap.culprits),
        chunks=tuple(replace(chunk, name=shown(chunk.name)) for chunk in gap.chunks),
        costliest=gap.costliest and replace(gap.costliest, name=shown(gap.costliest.name)),
    )
