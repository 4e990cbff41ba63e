"""How each meaning looks: in full colour, in the sixteen colours of any terminal, and in greys."""

from enum import Enum
from functools import lru_cache

from rich.style import Style
from textual.theme import Theme

from ui.palette import DARK, FILLS
from ui.tui.ink import BAND, CURSOR, Ink

__all__ = ["Depth", "Inks", "theme_of"]

DECODE_GREEN = "#2CC494"  # thin strokes on a dark page need more light than a filled area
STALL_ORANGE, STALL_GROUND = "#FF8A45", "#3A1D08"

Colours = tuple[str, str, bool]  # foreground, background, bold

_PAGE, _PANEL = DARK.page, DARK.panel
_CHUNK, _ALTERNATE = FILLS["prefill"], FILLS["prefill_alternate"]

_FULL: dict[Ink, Colours] = {
    Ink.BLANK: (DARK.text, _PAGE, False),
    Ink.TEXT: (DARK.text, _PAGE, False),
    Ink.STRONG: (DARK.text, _PAGE, True),
    Ink.MUTED: (DARK.muted, _PAGE, False),
    Ink.ACCENT: (DARK.accent, _PAGE, True),
    Ink.RULE: (DARK.line, _PAGE, False),
    Ink.BAR: (DARK.muted, _PANEL, False),
    Ink.BAR_STRONG: (DARK.text, _PANEL, True),
    Ink.BAR_ACCENT: (DARK.accent, _PANEL, True),
    Ink.TAB: (DARK.text, DARK.selected, True),
    Ink.BAD: (DARK.stall_prefill_text, _PAGE, True),
    Ink.WATCH: (DARK.stall_mixed_text, _PAGE, True),
    Ink.GOOD: (DARK.decode_text, _PAGE, True),
    Ink.PREFILL: (DARK.prefill_text, _PAGE, True),
    Ink.DECODE: (DECODE_GREEN, _PAGE, False),
    Ink.CHUNK: ("#FFFFFF", _CHUNK, False),
    Ink.CHUNK_ALTERNATE: ("#FFFFFF", _ALTERNATE, False),
    Ink.STALL: (STALL_ORANGE, STALL_GROUND, False),
    Ink.MIXED: (DARK.stall_mixed_text, _PAGE, False),
    Ink.HELD: (DARK.kv_private_text, _PAGE, False),
    Ink.QUEUED: (DARK.muted, _PAGE, False),
    Ink.DEFERRED: (DARK.text, _PAGE, False),
    Ink.BAR_CHUNK: (_CHUNK, _PAGE, False),
    Ink.BAR_CHUNK_ALTERNATE: (_ALTERNATE, _PAGE, False),
    Ink.DECODE_ON_CHUNK: (DECODE_GREEN, _CHUNK, False),
    Ink.DECODE_ON_ALTERNATE: (DECODE_GREEN, _ALTERNATE, False),
    Ink.LOCKED: (FILLS["kv_locked"], _PAGE, False),
    Ink.PRIVATE: (DARK.kv_private_text, _PAGE, False),
    Ink.EVICTABLE: (DARK.kv_locked, _PAGE, False),
    Ink.FREE: (DARK.muted, _PAGE, False),
    Ink.MIDDLE: (FILLS["host"], _PAGE, False),
    Ink.PILL: (DARK.text, _PAGE, True),
    Ink.NUMBER_AT_CURSOR: (_PAGE, DARK.text, True),
}

# Of the sixteen colours every terminal has, as the exact values that Rich maps to them. Plain blue and plain
# red are hard to see on black, so bars do not alternate there.
_BLACK, _GREY, _WHITE, _BRIGHT = "#000000", "#555555", "#AAAAAA", "#FFFFFF"
_GREEN, _YELLOW, _BLUE, _MAGENTA, _CYAN = (
    "#00AA00", "#AA5500", "#0000AA", "#AA00AA", "#00AAAA"
)  # fmt: skip
_BRIGHT_RED, _BRIGHT_GREEN, _BRIGHT_YELLOW = "#FF5555", "#55FF55", "#FFFF55"
_BRIGHT_BLUE, _BRIGHT_CYAN = "#5555FF", "#55FFFF"

_SIXTEEN: dict[Ink, Colours] = {
    Ink.BLANK: (_WHITE, _BLACK, False),
    Ink.TEXT: (_WHITE, _BLACK, False),
    Ink.STRONG: (_BRIGHT, _BLACK, True),
    Ink.MUTED: (_WHITE, _BLACK, False),
    Ink.ACCENT: (_BRIGHT_CYAN, _BLACK, True),
    Ink.RULE: (_GREY, _BLACK, False),
    Ink.BAR: (_WHITE, _BLACK, False),
    Ink.BAR_STRONG: (_BRIGHT, _BLACK, True),
    Ink.BAR_ACCENT: (_BRIGHT_CYAN, _BLACK, True),
    Ink.TAB: (_BRIGHT, _BLUE, True),
    Ink.BAD: (_BRIGHT_RED, _BLACK, True),
    Ink.WATCH: (_BRIGHT_YELLOW, _BLACK, True),
    Ink.GOOD: (_BRIGHT_GREEN, _BLACK, True),
    Ink.PREFILL: (_BRIGHT_CYAN, _BLACK, True),
    Ink.DECODE: (_GREEN, _BLACK, False),
    Ink.CHUNK: (_BRIGHT, _BLUE, False),
    Ink.CHUNK_ALTERNATE: (_BRIGHT, _BRIGHT_BLUE, False),
    Ink.STALL: (_BRIGHT_RED, _BLACK, False),
    Ink.MIXED: (_YELLOW, _BLACK, False),
    Ink.HELD: (_MAGENTA, _BLACK, False),
    Ink.QUEUED: (_WHITE, _BLACK, False),
    Ink.DEFERRED: (_WHITE, _BLACK, False),
    Ink.BAR_CHUNK: (_BRIGHT_BLUE, _BLACK, False),
    Ink.BAR_CHUNK_ALTERNATE: (_BRIGHT_BLUE, _BLACK, False),
    Ink.DECODE_ON_CHUNK: (_GREEN, _BRIGHT_BLUE, False),
    Ink.DECODE_ON_ALTERNATE: (_GREEN, _BRIGHT_BLUE, False),
    Ink.LOCKED: (_BRIGHT_CYAN, _BLACK, False),
    Ink.PRIVATE: (_MAGENTA, _BLACK, False),
    Ink.EVICTABLE: (_CYAN, _BLACK, False),
    Ink.FREE: (_WHITE, _BLACK, False),
    Ink.MIDDLE: (_GREY, _BLACK, False),
    Ink.PILL: (_BRIGHT, _BLACK, True),
    Ink.NUMBER_AT_CURSOR: (_BLACK, _WHITE, True),
}


# Where colours are not wanted: glyphs tell the kinds apart, greys what lies above what.
_LIGHT, _MIDDLE, _DIM = "#D0D0D0", "#9A9A9A", "#6A6A6A"
_ABOVE_PAGE = {
    Ink.BAR: (_WHITE, "#202020", False),
    Ink.BAR_STRONG: (_BRIGHT, "#202020", True),
    Ink.BAR_ACCENT: (_BRIGHT, "#202020", True),
    Ink.TAB: (_BLACK, _LIGHT, True),
    Ink.CHUNK: (_BLACK, _LIGHT, False),
    Ink.CHUNK_ALTERNATE: (_BLACK, _MIDDLE, False),
    Ink.STALL: (_BRIGHT, "#303030", False),
    Ink.BAR_CHUNK: (_LIGHT, _BLACK, False),
    Ink.BAR_CHUNK_ALTERNATE: (_MIDDLE, _BLACK, False),
    Ink.DECODE_ON_CHUNK: (_DIM, _LIGHT, False),
    Ink.DECODE_ON_ALTERNATE: (_GREY, _MIDDLE, False),
    Ink.NUMBER_AT_CURSOR: (_BLACK, _BRIGHT, True),
}
_GREYS: dict[Ink, Colours] = {
    ink: _ABOVE_PAGE.get(ink, (_BRIGHT if bold else _WHITE, _BLACK, bold))
    for ink, (_, _, bold) in _FULL.items()
}
_GREYS[Ink.RULE] = (_GREY, _BLACK, False)


class Depth(Enum):
    """How many colours there are."""

    FULL = 0
    SIXTEEN = 1
    GREY = 2


_COLOURS = {Depth.FULL: _FULL, Depth.SIXTEEN: _SIXTEEN, Depth.GREY: _GREYS}


def theme_of(depth: Depth) -> Theme:
    """The same colours for what Textual itself draws: tables, pages, the line to type on."""
    colours = _COLOURS[depth]
    text, accent, bar, chosen = (colours[ink] for ink in (Ink.TEXT, Ink.ACCENT, Ink.BAR, Ink.TAB))
    return Theme(
        name=f"chunkscope-{depth.name.lower()}",
        primary=accent[0],
        accent=accent[0],
        foreground=text[0],
        background=text[1],
        surface=text[1],
        panel=bar[1],
        dark=True,
        variables={"block-cursor-background": chosen[1], "block-cursor-foreground": chosen[0]},
    )


class Inks:
    """Rich styles of the inks."""

    def __init__(self, depth: Depth = Depth.FULL) -> None:
        self._depth = depth
        self._colours = _COLOURS[depth]
        self.style = lru_cache(maxsize=None)(self._style)

    def _style(self, code: int) -> Style:
        """Style of an ink, or of an ink with CURSOR or BAND added."""
        foreground, background, bold = self._colours[Ink(code & ~(CURSOR | BAND))]
        if code & BAND:
            foreground, background = _on_band(self._depth, foreground)
        if code & CURSOR:
            foreground, bold = self._colours[Ink.STRONG][0], True
        return Style(color=foreground, bgcolor=background, bold=bold)


def _on_band(depth: Depth, foreground: str) -> tuple[str, str]:
    """Foreground and ground of a band: in sixteen colours only white can be read on blue."""
    if depth is Depth.SIXTEEN:
        return _BRIGHT, _BLUE
    return foreground, DARK.selected if depth is Depth.FULL else "#303030"
