"""What each kind of part of a time to first token is called, wherever it is shown."""

from collections.abc import Mapping
from types import MappingProxyType

from profiler.ledger.ttft_parts import TtftKind

__all__ = ["TTFT_WORDS"]

TTFT_WORDS: Mapping[TtftKind, str] = MappingProxyType(
    {
        TtftKind.QUEUED: "queued in the round under way",
        TtftKind.BLOCKED: "not admitted",
        TtftKind.DEFERRED: "deferred by the interval",
        TtftKind.OWN_CHUNKS: "own chunks",
        TtftKind.OWN_DECODE: "own decode, launched ahead",
        TtftKind.OTHERS_PREFILL: "others' prefill",
        TtftKind.OTHERS_MIXED: "others' mixed forwards",
        TtftKind.OTHERS_DECODE: "others' decodes",
        TtftKind.RETRACTED: "retracted",
        TtftKind.PLAN: "host: planning",
        TtftKind.LAUNCH: "host: launching",
        TtftKind.RESULT: "host: results",
        TtftKind.WAIT: "host: waiting",
        TtftKind.IDLE: "idle",
        TtftKind.UNTOLD: "not told",
    }
)
"""One for every kind."""
