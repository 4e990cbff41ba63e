"""The rules held against an engine while it runs, and against what it recorded when it has run."""

from profiler.invariants.live.broken import InvariantError
from profiler.invariants.live.engine_check import EngineCheck
from profiler.invariants.live.kept_trace import KeptTrace
from profiler.invariants.live.pool import hold_pool

__all__ = ["EngineCheck", "InvariantError", "KeptTrace", "hold_pool"]
