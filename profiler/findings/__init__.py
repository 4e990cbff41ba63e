"""What is wrong with a run in plain words, each with its evidence and an option that would mend it."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from profiler.findings.find import findings
    from profiler.findings.finding import Finding, FindingKind, Severity
    from profiler.findings.thresholds import Thresholds

__all__ = ["Finding", "FindingKind", "Severity", "Thresholds", "findings"]

_HOME = {
    "findings": "find",
    "Finding": "finding",
    "FindingKind": "finding",
    "Severity": "finding",
    "Thresholds": "thresholds",
}


def __getattr__(name: str) -> Any:
    """Load a public name when it is first asked for, so that words of findings need no polars."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
