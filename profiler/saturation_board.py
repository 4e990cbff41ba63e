"""All that a picture of saturation shows of a trace, composed for both UIs; it computes nothing itself."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

import polars as pl

from engine.errors import EngineError
from profiler.ceilings import Ceilings
from profiler.fitted_cost import FittedCost
from profiler.flops_conventions import FlopsConventions, flops_conventions
from profiler.forward_model import ForwardModel, fit_forward_model
from profiler.memory import MemoryModel, memory_model
from profiler.memory_fit import measured_activations
from profiler.prefix_curve import PrefixCurve, prefix_curve
from profiler.roofline import Roof, mode_summary, sample_by_mode
from profiler.roofline_choice import Roofs
from profiler.roofline_operators import operator_summary, sample_by_operator
from profiler.roofline_report import Roofline, roofline
from profiler.saturation_report import SaturationReport, decode_report, saturation_report
from profiler.tables import TraceLike

__all__ = ["DRAWN_PER_MODE", "SaturationBoard", "saturation_board"]

DRAWN_PER_MODE = 400
_LEAST_PREFIX = 64  # a shorter one changes nothing that one could see

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class SaturationBoard:
    """The parts of the picture. A part that a trace cannot give is None, and `lacking` says why by its name.

    The price list is not among them: it takes seconds (`profiler.advice`).

    - provenance: measured, simulated or imported, as the trace has it; None where it does not say;
    - report: the prefill forwards of one prompt without prefix, with fit, point, plateau, dips;
    - decode: the same of decode rows alone, tokens being rows; None where no forward is of these;
    - model: time of any forward, fitted to all; by it, forwards of one prompt over the sizes that were
      fitted: plain without prefix, behind one as long as the trace's longest;
    - memory: what forwards need beside weights and KV; activations: what was measured of it;
    - conventions: FLOPs counted in three ways;
    - roofs: the ceilings known of the machine; roof: the one that points are held against;
    - modes: `mode_summary` of all forwards; forwards: `sample_by_mode`, those that are drawn;
    - operators: `operator_summary`; operator_points: `sample_by_operator`, drawn; operator_source: kernels
      or cost model, None where there are no points;
    - forwards_above, operators_above: all points above the roof, with the likely reason.
    """

    provenance: str | None
    report: SaturationReport
    decode: SaturationReport | None
    model: ForwardModel | None
    plain: PrefixCurve | None
    behind: PrefixCurve | None
    memory: MemoryModel | None
    activations: pl.DataFrame
    conventions: FlopsConventions
    roofs: Roofs
    modes: pl.DataFrame
    forwards: pl.DataFrame
    operators: pl.DataFrame
    operator_points: pl.DataFrame
    operator_source: str | None
    forwards_above: pl.DataFrame
    operators_above: pl.DataFrame
    lacking: Mapping[str, str]

    @property
    def roof(self) -> Roof | None:
        """The ceilings that points are held against, measured, or of a data sheet."""
        return self.roofs.roof

    @property
    def ceilings(self) -> Ceilings | None:
        """What was measured of the machine, also where it gives no roof for this dtype."""
        return self.roofs.ceilings

    @property
    def ridge_tokens(self) -> float | None:
        """Tokens at which computing takes as long as reading the weights, by the model; None without one."""
        return None if self.model is None else self.model.curve.weights / self.model.curve.compute


def saturation_board(trace: TraceLike) -> SaturationBoard:
    """The board of a trace, in a second or two. TraceError if it cannot be read."""
    lacking: dict[str, str] = {}
    report, drawn = saturation_report(trace), roofline(trace)
    model = _part("model", lambda: fit_forward_model(trace), lacking)
    memory = _part("memory", lambda: memory_model(trace), lacking)
    return SaturationBoard(
        provenance=_provenance(trace),
        report=report,
        decode=_decode(trace, lacking),
        model=model,
        plain=None if model is None else _curve(model, 0),
        behind=_behind(model, lacking),
        memory=memory,
        activations=measured_activations(trace),
        conventions=flops_conventions(trace),
        roofs=drawn.roofs,
        modes=mode_summary(drawn.forwards),
        forwards=sample_by_mode(drawn.forwards, DRAWN_PER_MODE),
        operators=operator_summary(drawn.operators.points),
        operator_points=sample_by_operator(drawn.operators.points, DRAWN_PER_MODE),
        operator_source=drawn.operators.source,
        forwards_above=drawn.forwards_above,
        operators_above=drawn.operators_above,
        lacking={**lacking, **_lacking_of(drawn)},
    )


def _part(name: str, make: Callable[[], T], lacking: dict[str, str]) -> T | None:
    """A part, or why the trace cannot give it."""
    try:
        return make()
    except EngineError as error:
        lacking[name] = str(error)
        return None


def _decode(trace: TraceLike, lacking: dict[str, str]) -> SaturationReport | None:
    report = decode_report(trace)
    if report.points.is_empty():
        lacking["decode"] = "no forward here has decode rows alone and a known device time"
        return None
    return report


def _behind(model: ForwardModel | None, lacking: dict[str, str]) -> PrefixCurve | None:
    if model is None:
        lacking["behind"] = lacking["model"]
        return None
    longest = model.reach.prefix_tokens[1]
    if longest < _LEAST_PREFIX:
        lacking["behind"] = f"no forward here stands behind a prefix of {_LEAST_PREFIX} tokens or more"
        return None
    return _curve(model, longest)


def _curve(model: ForwardModel, prefix_tokens: int) -> PrefixCurve:
    return prefix_curve(FittedCost(model), *model.reach.tokens, prefix_tokens)


def _lacking_of(drawn: Roofline) -> dict[str, str]:
    lacking = {} if drawn.roofs.lacking is None else {"roof": drawn.roofs.lacking}
    if drawn.operators.source is None:
        lacking["operators"] = "no kernels were recorded: run with --record kernels"
    return lacking


def _provenance(trace: TraceLike) -> str | None:
    value = trace.meta.get("provenance")
    return value if isinstance(value, str) else None
