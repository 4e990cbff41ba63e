"""How points of the roofline look and what they are called: colour by mode, shape by mode or by operator."""

from typing import NamedTuple

from ui.palette import FILLS

__all__ = ["MODES", "OPERATORS", "ModeMark", "OperatorMark"]


class ModeMark(NamedTuple):
    """How forwards of a mode look and what they are called."""

    symbol: str
    glyph: str
    word: str
    fill: str
    edge: str


class OperatorMark(NamedTuple):
    """The shape of an operator's points, in whatever colours its forward's mode has."""

    symbol: str
    glyph: str
    word: str


MODES = {
    "EXTEND": ModeMark("square", "■", "prefill", FILLS["prefill"], FILLS["prefill"]),
    "DECODE": ModeMark("circle", "●", "decode", FILLS["decode"], FILLS["decode"]),
    "MIXED": ModeMark("diamond", "◆", "mixed", FILLS["prefill"], FILLS["decode"]),
    None: ModeMark("x", "✕", "mode unknown", FILLS["host"], FILLS["host"]),
}
"""By the trace's name of a mode; a mixed forward has the colours of both that it is made of."""

OPERATORS = {
    "QKV": OperatorMark("square", "■", "QKV"),
    "O": OperatorMark("circle", "●", "O"),
    "GATE_UP": OperatorMark("triangle-up", "▲", "gate and up"),
    "DOWN": OperatorMark("triangle-down", "▼", "down"),
    "HEAD": OperatorMark("star", "★", "head"),
    "ATTENTION_EXTEND": OperatorMark("diamond", "◆", "attention, extend"),
    "ATTENTION_DECODE": OperatorMark("diamond-tall", "♦", "attention, decode"),
}
"""By the trace's name of an operator."""
