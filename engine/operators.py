"""`Operator`: the parts of a forward that time, FLOPs and bytes are told of."""

from enum import IntEnum

__all__ = ["MARK_PREFIX", "Operator"]

MARK_PREFIX = "chunkscope:"
"""A mark's range is called `chunkscope:QKV:3`: operator and layer; the layer is empty where there is none."""


class Operator(IntEnum):
    """One logical operator, however many kernels compute it; the order is that of the trace's enum."""

    QKV = 0
    ATTENTION_EXTEND = 1
    ATTENTION_DECODE = 2
    O = 3  # noqa: E741 - the field's name for the output projection
    GATE_UP = 4  # with the activation
    DOWN = 5
    HEAD = 6
    NORM = 7
    COPY = 8  # keys and values into their pages, rotated on the way; copies between memories
    COLLECTIVE = 9
    OTHER = 10  # embedding, choice of rows, sampling
