"""The tables of a run that ended while two decodes had been silent for longer than ever before."""

from typing import Any

from engine.batch import ForwardMode, Role
from engine.observer import EventKind
from tests.support.traces import decode_row, event, extend_row, forward, request

__all__ = ["MS", "silent_tables"]

MS = 1_000_000


def silent_tables() -> dict[str, list[dict[str, Any]]]:
    """a and b decode at 10 and 20 ms, then doc's chunks run alone up to 90 ms; c has a token at the end."""
    return {
        "requests": [request(rid, 0, name) for rid, name in enumerate(("a", "b\n", "doc", "c"))],
        "forwards": [
            forward(0, 0, 10 * MS, ForwardMode.EXTEND),
            forward(1, 10 * MS, 20 * MS),
            forward(2, 20 * MS, 50 * MS, ForwardMode.EXTEND, chunked_rid=2),
            forward(3, 50 * MS, 90 * MS, ForwardMode.EXTEND, chunked_rid=2),
        ],
        "rows": [
            extend_row(0, 0, 8, 0),
            extend_row(0, 1, 8, 0),
            decode_row(1, 0, 1),
            decode_row(1, 1, 1),
            extend_row(2, 2, 128, role=Role.FIRST),
            extend_row(3, 2, 128, role=Role.MIDDLE),
            extend_row(3, 3, 8, 0),
        ],
        "events": [
            *(event(0, rid, EventKind.ADMIT, forward_id=0) for rid in (0, 1)),
            event(20 * MS, 2, EventKind.ADMIT, forward_id=2),
            event(50 * MS, 3, EventKind.ADMIT, forward_id=3),
        ],
    }
