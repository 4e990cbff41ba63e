"""All that a picture of saturation shows of a trace, composed for both UIs; it computes nothing itself."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from profiler.ceilings import Ceilings
from profiler.ceilings_store import ceilings_of_trace
from profiler.roofline import Roof, mode_summary, roof_for, roofline_points, sample_by_mode, simulated_roof
from profiler.saturation_report import SaturationReport, saturation_report
from profiler.tables import TraceLike

__all__ = ["DRAWN_PER_MODE", "SaturationBoard", "saturation_board"]

DRAWN_PER_MODE = 400


@dataclass(frozen=True, slots=True)
class SaturationBoard:
    """The parts of the picture. A part that a trace cannot give is None, and `lacking` says why by its name.

    The price list is not among them: it takes seconds.

    - provenance: measured, simulated or imported, as the trace has it; None where it does not say;
    - report: the prefill forwards of one prompt without prefix, with fit, point and interval;
    - ceilings: what was measured of the machine, also where it gives no roof for this dtype;
    - roof: the ceilings that `forwards` are held against, measured, or of a data sheet;
    - modes: `mode_summary` of all forwards; forwards: `sample_by_mode`, those that are drawn.
    """

    provenance: str | None
    report: SaturationReport
    ceilings: Ceilings | None
    roof: Roof | None
    modes: pl.DataFrame
    forwards: pl.DataFrame
    lacking: Mapping[str, str]


def saturation_board(trace: TraceLike) -> SaturationBoard:
    """The board of a trace, in about a second. TraceError if it cannot be read."""
    roof = simulated_roof(trace.meta)
    ceilings = None if roof else ceilings_of_trace(trace.meta)
    model = trace.meta.get("model")
    roof = roof or roof_for(ceilings, model.get("dtype") if isinstance(model, Mapping) else None)
    points = roofline_points(trace, roof)
    lacking = {} if roof is not None else {"roof": _no_roof(ceilings)}
    return SaturationBoard(
        provenance=_text(trace.meta.get("provenance")),
        report=saturation_report(trace),
        ceilings=ceilings,
        roof=roof,
        modes=mode_summary(points),
        forwards=sample_by_mode(points, DRAWN_PER_MODE),
        lacking=lacking,
    )


def _no_roof(ceilings: Ceilings | None) -> str:
    if ceilings is None:
        return "no ceilings were measured for this machine"
    return "the machine's ceilings are of other dtypes than this run's"


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None
