"""What `meta.json` learns while a run is recorded: clock anchors, and which columns are told at all."""

import time
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any

from engine.clock import Clock
from engine.observer import PoolState
from profiler.column_states import TOLD_BY_SOME, column_states

__all__ = ["LiveMeta"]

ANCHOR_NS = 60_000_000_000


class LiveMeta:
    """Keeps meta.json up to date through `update`, which replaces top-level entries."""

    def __init__(
        self,
        update: Callable[[Mapping[str, Any]], None],
        clock: Clock,
        *,
        rank: int,
        costs: bool,
        pages: bool,
        simulated: bool,
    ) -> None:
        self._update = update
        self._clock = clock
        self._rank = rank
        self._fixed = {"costs": costs, "pages": pages, "simulated": simulated}
        self._told: set[tuple[str, str]] = set()
        self._anchored_ns = clock.now_ns()
        self._anchors = [self._anchor()]
        update({"clock_anchors": self._anchors, "columns": self._states()})

    def tick(self, t_ns: int) -> None:
        """Compare the clocks again if a minute has passed; `t_ns` is the run's time."""
        if t_ns - self._anchored_ns >= ANCHOR_NS:
            self._anchored_ns = t_ns
            self._anchors.append(self._anchor())
            self._update({"clock_anchors": self._anchors})

    def note_told(self, table: str, columns: Mapping[str, Any]) -> None:
        """Say, once, that columns which may stay unknown are told in this run; None is an unknown one."""
        told = {(table, name) for name in TOLD_BY_SOME[table] if columns[name] is not None}
        if not told <= self._told:
            self._told |= told
            self._update({"columns": self._states()})

    def at_end(self, pool: PoolState | None) -> dict[str, Any]:
        """The last entries: clocks at the end, and the pool as the run left it, null if unknown."""
        return {
            "clock_anchors": [*self._anchors, self._anchor()],
            "columns": self._states(),
            "pool_at_end": asdict(pool) if pool else None,
        }

    def _states(self) -> dict[str, dict[str, str]]:
        return column_states(self._told, **self._fixed)

    def _anchor(self) -> dict[str, int]:
        """One moment on the run's clock, the host's monotonic clock and the wall clock."""
        return {
            "rank": self._rank,
            "run_ns": self._clock.now_ns(),
            "monotonic_ns": time.monotonic_ns(),
            "wall_ns": time.time_ns(),
        }
