"""What the Saturation page shows of a run, computed when first asked for."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from string import ascii_uppercase
from threading import Lock
from typing import Any

import polars as pl

from profiler.ceilings import Ceilings
from profiler.ceilings_store import ceilings_of_trace
from profiler.roofline import Roof, mode_summary, roof_for, roofline_points, sample_by_mode, simulated_roof
from profiler.saturation import prefill_points
from profiler.saturation_report import SaturationReport, saturation_report
from profiler.timeline.timeline import Timeline
from traces.errors import TraceError
from traces.reader import Trace, open_trace
from ui.web.figures.roofline import DRAWN_PER_MODE
from ui.web.figures.throughput_marks import ChunkMark
from ui.web.runs import Run, make_runs

__all__ = ["Evidence", "EvidenceOf", "chunk_marks"]


@dataclass(frozen=True, slots=True)
class Evidence:
    """A run's saturation report and its forwards under the roof."""

    timeline: Timeline
    report: SaturationReport
    ceilings: Ceilings | None
    roof: Roof | None
    modes: pl.DataFrame  # of `mode_summary`
    sample: pl.DataFrame  # of `sample_by_mode`


class EvidenceOf:
    """Evidence of each run, kept unless the run still grows.

    It opens traces anew, so that whole tables are let go, and no other thread reads by the same object.
    """

    def __init__(self, runs: Sequence[Timeline]) -> None:
        self._runs = make_runs(runs)
        self._lock = Lock()  # two requests at once compute one evidence
        self._kept: dict[int, Evidence] = {}
        self._richest: int | None = None

    def __call__(self, index: int) -> Evidence:
        """Evidence of one run. TraceError if the trace cannot be read."""
        with self._lock:
            kept = self._kept.get(index)
            if kept is not None:
                return kept
            trace = open_trace(self._runs[index].timeline.path)
            evidence = _evidence(self._runs[index], trace)
            if trace.sealed:
                self._kept[index] = evidence
            return evidence

    def richest(self) -> int:
        """Index of the run to show first: a sweep, else the run with the most distinct sizes."""
        with self._lock:
            if self._richest is None:
                sweeps = [run.index for run in self._runs if run.sweep]
                self._richest = sweeps[0] if sweeps else max(range(len(self._runs)), key=self._sizes)
            return self._richest

    def _sizes(self, index: int) -> int:
        if len(self._runs) == 1:
            return 0
        try:
            return prefill_points(open_trace(self._runs[index].timeline.path))["tokens"].n_unique()
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


def _evidence(run: Run, trace: Trace) -> Evidence:
    roof = simulated_roof(trace.meta)
    ceilings = None if roof else ceilings_of_trace(trace.meta)
    model = trace.meta.get("model")
    roof = roof or roof_for(ceilings, model.get("dtype") if isinstance(model, Mapping) else None)
    points = roofline_points(trace, roof)
    sample = sample_by_mode(points, DRAWN_PER_MODE)
    return Evidence(run.timeline, saturation_report(trace), ceilings, roof, mode_summary(points), sample)


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
