"""What a cell of the terminal means; `ui.tui.colours` says how each meaning looks."""

from enum import IntEnum

__all__ = ["BAND", "CURSOR", "Ink"]

CURSOR = 0x80
"""Added to an ink: the same background, crossed by the cursor."""

BAND = 0x40
"""Added to an ink: the same foreground, on the ground of a range or of the selected row."""


class Ink(IntEnum):
    """Meaning of a cell."""

    BLANK = 0
    TEXT = 1
    STRONG = 2
    MUTED = 3
    ACCENT = 4
    RULE = 5
    BAR = 6  # title and key bars
    BAR_STRONG = 7
    BAR_ACCENT = 8
    TAB = 9
    BAD = 10
    WATCH = 11
    GOOD = 12
    PREFILL = 13  # words about prefill
    DECODE = 14
    CHUNK = 15
    CHUNK_ALTERNATE = 16
    STALL = 17
    MIXED = 18
    HELD = 19
    QUEUED = 20
    DEFERRED = 21
    BAR_CHUNK = 22  # prefill part of a forward's bar
    BAR_CHUNK_ALTERNATE = 23
    DECODE_ON_CHUNK = 24  # decode below prefill in one cell
    DECODE_ON_ALTERNATE = 25
    LOCKED = 26
    PRIVATE = 27
    EVICTABLE = 28
    FREE = 29
    MIDDLE = 30
    PILL = 31
    NUMBER_AT_CURSOR = 32
