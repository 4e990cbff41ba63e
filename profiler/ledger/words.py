"""What each kind of part is called, wherever a ledger is shown."""

from collections.abc import Mapping
from types import MappingProxyType

from profiler.ledger.parts import PartKind

__all__ = ["PART_WORDS"]

PART_WORDS: Mapping[PartKind, str] = MappingProxyType(
    {
        PartKind.OWN_DECODE: "own decode",
        PartKind.OWN_OTHER: "its other decode forwards",
        PartKind.RECOMPUTE: "own prompt computed anew",
        PartKind.OTHERS_PREFILL: "others' prefill",
        PartKind.OTHERS_MIXED: "others' mixed forwards",
        PartKind.OTHERS_DECODE: "others' decodes",
        PartKind.MIXED_EXTRA: "mixed extra",
        PartKind.MIXED_UNKNOWN: "mixed, extra unknown",
        PartKind.SIT_OUT: "sat out for lack of KV",
        PartKind.RETRACTED: "retracted",
        PartKind.DEFERRED: "deferred by the interval",
        PartKind.PREEMPTED: "preempted",
        PartKind.PLAN: "host: planning",
        PartKind.LAUNCH: "host: launching",
        PartKind.RESULT: "host: results",
        PartKind.WAIT: "host: waiting",
        PartKind.IDLE: "idle",
        PartKind.UNTOLD: "not told",
    }
)
"""One for every kind; others' chunks stand under the names of their requests where there is room."""
