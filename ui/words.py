"""Numbers and units as every view writes them. Unknown (None) is a dash, never a zero."""

import math

from profiler import wording
from profiler.wording import plural

__all__ = [
    "CUT",
    "UNKNOWN",
    "binary_bytes",
    "clipped",
    "count",
    "memory",
    "name",
    "plural",
    "rate",
    "seconds",
]

UNKNOWN = "–"
CUT = "…"

BYTE_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")


def count(value: int | None) -> str:
    """A whole number with thousands separated: 12,000."""
    return UNKNOWN if value is None else wording.count(value)


def seconds(value: float | None) -> str:
    """A duration: 24.6 ms, 1.53 s."""
    return UNKNOWN if value is None else wording.duration(value)


def memory(value: int | None) -> str:
    """Bytes that a run took, in a unit that keeps policies comparable: 1,234 MiB."""
    return UNKNOWN if value is None else wording.mebibytes(value)


def rate(value: float | None, of: str = "tokens") -> str:
    """So many of something a second: 1,230 tokens/s, 61.2 tokens/s."""
    if value is None:
        return UNKNOWN
    return f"{value:,.0f} {of}/s" if value >= 1000 else f"{value:,.1f} {of}/s"


def binary_bytes(value: int | None) -> str:
    """A size of what a machine has, in the largest unit that leaves a digit before the point: 1.25 GiB."""
    if value is None:
        return UNKNOWN
    power = min(int(math.log2(value)) // 10, len(BYTE_UNITS) - 1) if value > 0 else 0
    if power == 0:
        return f"{value:,} B"
    number = value / 1024**power
    return f"{number:,.{2 if number < 10 else 1 if number < 100 else 0}f} {BYTE_UNITS[power]}"


def name(text: str | None) -> str:
    """A user's name for something, on one line whatever characters it holds."""
    if text is None:
        return UNKNOWN
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def clipped(text: str | None, most: int = 48) -> str:
    """`name`, an ellipsis where it was cut: a name is recognised by its beginning."""
    if text is None:
        return UNKNOWN
    escaped = name(text[:most])
    return escaped if len(text) <= most and len(escaped) <= most else escaped[: most - 1] + CUT
