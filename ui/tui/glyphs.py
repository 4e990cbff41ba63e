"""The characters that cells are drawn with, and what stands for them where only ASCII can be shown."""

from collections.abc import Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from rich.segment import Segment
from textual.color import Color
from textual.filter import LineFilter

__all__ = ["EIGHTHS", "PLAIN", "UNICODE", "AsciiFilter", "Marks", "to_ascii"]

EIGHTHS = " ▁▂▃▄▅▆▇█"


@dataclass(frozen=True, slots=True)
class Marks:
    """Glyph of each kind of a lane's cells."""

    decode: str = "│"
    stall: str = "╱"
    mixed: str = "░"
    held: str = "▓"
    queued: str = "┄"
    deferred: str = "╌"
    chunk: str = " "


UNICODE = Marks()
PLAIN = Marks(decode="|", stall="/", mixed=":", held="%", queued=".", deferred="-", chunk="#")

_ASCII = str.maketrans(
    {
        "│": "|", "┃": "|", "╱": "/", "╲": "\\", "░": ":", "▒": "=", "▓": "%", "┄": ".", "╌": "-",
        "─": "-", "━": "=",
        "◆": "*", "▸": ">", "◂": "<", "▼": "v", "▽": "m", "●": "o", "◇": "o", "✕": "x", "▲": "^", "✓": "v",
        "–": "-", "…": "~", "·": ".", "→": ">", "←": "<", "↑": "^", "↓": "v", "×": "x", "❙": "|", "▶": ">",
        "µ": "u", "≥": ">", "\u2068": "", "\u2069": "",
        "▁": "_", "▂": ".", "▃": ":", "▄": "-", "▅": "=", "▆": "+", "▇": "*", "█": "#",
        "▏": "|", "▎": "|", "▍": "|", "▌": "#", "▋": "#", "▊": "#", "▉": "#",
        "╭": "+", "╮": "+", "╰": "+", "╯": "+", "┊": "|", "◦": "o", "•": "*",
    }
)  # fmt: skip
_UPPER, _LOWER = 0x1B, 0xE4  # dots of a braille cell's upper and lower half
_ASCII |= {0x2800 + dots: " '.:"[bool(dots & _UPPER) + 2 * bool(dots & _LOWER)] for dots in range(256)}


def to_ascii(text: str) -> str:
    """The text in ASCII, as many cells wide; what has no likeness is a question mark."""
    text = text.translate(_ASCII)
    if text.isascii():
        return text
    return "".join(c if c.isascii() else "?" * cell_len(c) for c in text)


class AsciiFilter(LineFilter):
    """Passes every line of every widget through `to_ascii`."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        """The same segments in ASCII."""
        return _plain(segments)


def _plain(segments: Sequence[Segment]) -> list[Segment]:
    return [Segment(to_ascii(text), style, control) for text, style, control in segments]
