"""Findings as all views mark them: a glyph beside each colour, so that neither is needed alone."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from profiler.findings.finding import Severity

__all__ = ["MARKS", "FindingMark"]


@dataclass(frozen=True, slots=True)
class FindingMark:
    """How a finding of one severity looks; `colour` is a field of `ui.palette.Theme`."""

    glyph: str
    words: str
    colour: str


MARKS: Mapping[Severity, FindingMark] = MappingProxyType(
    {
        Severity.BAD: FindingMark("✕", "bad", "stall_prefill_text"),
        Severity.WATCH: FindingMark("▲", "watch", "stall_mixed_text"),
        Severity.FINE: FindingMark("✓", "fine", "decode_text"),
    }
)
"""One for every severity."""
