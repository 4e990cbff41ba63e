"""What the Saturation page shows of a run, computed when first asked for."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from string import ascii_uppercase
from threading import Lock
from typing import Any

from engine.errors import ConfigError, EngineError
from profiler.advice import Advice, advise
from profiler.forward_fit_setting import shared_setting
from profiler.points import prefill_points
from profiler.price_rows import Limits
from profiler.saturation_board import SaturationBoard, saturation_board
from profiler.timeline.timeline import Timeline
from traces.errors import TraceError
from traces.reader import Trace, open_trace
from ui.web.figures.throughput_marks import ChunkMark
from ui.web.runs import make_runs

__all__ = ["Evidence", "EvidenceOf", "chunk_marks"]


@dataclass(frozen=True, slots=True)
class Evidence:
    """A run's board, and the chunk sizes that it and runs of the same setup were made with."""

    timeline: Timeline
    board: SaturationBoard
    chunks: Sequence[ChunkMark]
    sweep: str | None = None  # heading of another run that swept the same model on the same machine


class EvidenceOf:
    """Evidence and advice of each run, kept unless the run still grows.

    It opens traces anew, so that whole tables are let go, and no other thread reads by the same object.
    """

    def __init__(self, runs: Sequence[Timeline]) -> None:
        self._timelines = runs
        self._runs = make_runs(runs)
        self._lock, self._advice_lock = Lock(), Lock()  # two requests at once compute one evidence
        self._kept: dict[int, Evidence] = {}
        self._advice: dict[int, Advice | str] = {}
        self._tried_for: dict[int, Limits] = {}
        self._richest: int | None = None

    def __call__(self, index: int) -> Evidence:
        """Evidence of one run. TraceError if the trace cannot be read."""
        with self._lock:
            kept = self._kept.get(index)
            if kept is not None:
                return kept
            trace = open_trace(self._runs[index].timeline.path)
            marks = chunk_marks(self._timelines, index)
            evidence = Evidence(
                self._timelines[index], saturation_board(trace), marks, self._sweep_like(trace, index)
            )
            if trace.sealed:
                self._kept[index] = evidence
            return evidence

    def advise(self, index: int, limits: Limits) -> Advice | str:
        """Advice for a run's workload, or why there is none; takes seconds, and is kept.

        Forward times are fitted to all runs of its setup together; a sweep takes a workload of theirs. A run
        that grows is tried anew, and so is one none of whose rows keeps the limits: smaller chunks may.
        """
        with self._advice_lock:
            if not self._is_told(index, limits):
                self._advice[index] = self._advised(index, limits)
                self._tried_for[index] = limits
            return self._advice[index]

    def advised(self, index: int) -> Advice | str | None:
        """What `advise` gave last; None before it did."""
        return self._advice.get(index)

    def tried_for(self, index: int) -> Limits | None:
        """The limits for which `advise` chose what to try last; None before it did."""
        return self._tried_for.get(index)

    def richest(self) -> int:
        """Index of the run to show first: a sweep, else the run with the most distinct sizes."""
        with self._lock:
            if self._richest is None:
                sweeps = [run.index for run in self._runs if run.sweep]
                self._richest = sweeps[0] if sweeps else max(range(len(self._runs)), key=self._sizes)
            return self._richest

    def _is_told(self, index: int, limits: Limits) -> bool:
        advice = self._advice.get(index)
        if advice is None or not self._timelines[index].trace.sealed:
            return False
        if isinstance(advice, str) or limits == self._tried_for[index]:
            return True
        return advice.choose(limits).row is not None

    def _advised(self, index: int, limits: Limits) -> Advice | str:
        try:
            own = open_trace(self._runs[index].timeline.path)
            return advise([own, *self._alike(own, index)], limits)
        except (EngineError, TraceError) as error:
            return str(error)

    def _alike(self, own: Trace, index: int) -> list[Trace]:
        """The other runs whose forwards tell of the same model on the same machine."""
        others = [run.timeline.path for run in self._runs if run.index != index]
        return [trace for path in others if (trace := _opened(path)) is not None and _same(own, trace)]

    def _sweep_like(self, own: Trace, index: int) -> str | None:
        """Heading of the first other run that is a sweep of the same setting."""
        sweeps = [run for run in self._runs if run.sweep and run.index != index]
        return next((run.heading for run in sweeps if _same(own, run.timeline.trace)), None)

    def _sizes(self, index: int) -> int:
        if len(self._runs) == 1:
            return 0
        try:
            return prefill_points(open_trace(self._runs[index].timeline.path)).num_sizes
        except TraceError:  # said when the run is chosen
            return 0


def chunk_marks(runs: Sequence[Timeline], chosen: int) -> list[ChunkMark]:
    """Chunk sizes of the runs that had the same model and machine as the chosen one, each with its runs."""
    setup = _setup(runs[chosen].trace.meta)
    if setup is None:
        return []
    letters: dict[int, list[str]] = {}
    for letter, run in zip(ascii_uppercase, runs, strict=False):
        size = _chunk_size(run.trace.meta)
        if size is not None and _setup(run.trace.meta) == setup:
            letters.setdefault(size, []).append(letter)
    return [
        ChunkMark(size, f"chunk {size:,} in {', '.join(named)}") for size, named in sorted(letters.items())
    ]


def _opened(path: Path) -> Trace | None:
    """None if it cannot be read, which its own page says."""
    try:
        return open_trace(path)
    except TraceError:
        return None


def _same(own: Trace, other: Trace) -> bool:
    try:
        shared_setting([own, other])
    except ConfigError:
        return False
    return True


def _setup(meta: Mapping[str, Any]) -> tuple[object, ...] | None:
    """What must agree for forward times to be comparable; None if the trace does not tell it."""
    model, hardware = meta.get("model"), meta.get("hardware")
    if not isinstance(model, Mapping) or not isinstance(hardware, Mapping):
        return None
    return (
        *(str(model.get(key)) for key in ("name", "num_params", "dtype")),
        *(str(hardware.get(key)) for key in ("device", "name", "threads")),
    )


def _chunk_size(meta: Mapping[str, Any]) -> int | None:
    engine = meta.get("engine")
    size = engine.get("chunked_prefill_size") if isinstance(engine, Mapping) else None
    return size if isinstance(size, int) and size > 0 else None
