"""Why a token was late, and what would change that, in lines."""

import re
from collections.abc import Mapping
from typing import Any

from profiler.ledger.parts import GapDetail, PartKind
from profiler.ledger.why import Mend, main_cause, mend_gap, why_late
from ui.tui.ink import Ink
from ui.tui.text import Line, wrapped

__all__ = ["why_lines"]

_OPTION = re.compile(r"(--[a-z-]+[a-z])")


def why_lines(gap: GapDetail, meta: Mapping[str, Any], cells: int, *, titled: bool = False) -> list[Line]:
    """Why the token was late, and what would change that under the options of its run."""
    cause = main_cause(gap)
    title = "Why no decode ran" if cause is PartKind.OTHERS_PREFILL else "Why it was late"
    lines = [*_title(title, titled), *wrapped([(why_late(gap), Ink.TEXT)], cells)]
    would = mend_gap(gap, meta)
    if would is None:
        return lines
    space: list[Line] = [[]] if titled else []
    return [*lines, *space, *_title("What would change it", titled), *wrapped(_marked(would), cells)]


def _title(text: str, titled: bool) -> list[Line]:
    return [[(text, Ink.STRONG)]] if titled else []


def _marked(would: Mend) -> Line:
    """The sentence, with its options in the colour of what can be pressed or typed."""
    pieces = _OPTION.split(would.sentence)
    return [(text, Ink.ACCENT if _OPTION.fullmatch(text) else Ink.TEXT) for text in pieces if text]
