"""What says how long a forward takes: a simulated run's own cost model, or one fitted to its forwards."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.arithmetic import ForwardSums
from engine.batch import ForwardBatch, ForwardMode
from engine.peaks import Peaks
from profiler.advice_choice import Margins
from profiler.cost import RooflineCost
from profiler.cost_table import cost_table
from profiler.fitted_cost import FittedCost
from profiler.forward_features import Forwards, forwards_of, joined
from profiler.forward_fit_setting import Setting, shared_setting
from profiler.forward_model import ForwardModel, fit_forward_model
from profiler.price_rows import ForwardCostModel
from profiler.price_sums import chunk_sums
from profiler.tables import TraceLike

__all__ = ["CostBasis", "Slower", "cost_of"]

Array = NDArray[np.float64]

NEAR = 2.0  # forwards like a chunk size's are those of between half and twice as many tokens
ENOUGH_NEAR = 8  # of them at least, if need be those that come next in size
RUN_TO_RUN = 0.1  # that a machine may be slower in another run: least margin of what was measured
ONE, SOME, MANY = 0.99, 0.95, 0.9  # quantiles of measured / fit: of one forward, of a few, of many in a row


@dataclass(frozen=True, slots=True)
class CostBasis:
    """A cost model with what it rests on; a simulated run's own is exact and has no fitted `model`."""

    cost: ForwardCostModel
    host_overhead_ns: int
    setting: Setting
    model: ForwardModel | None = None
    misses: "_Misses | None" = None

    @property
    def num_forwards(self) -> int:
        """Forwards that it was fitted to; 0 for a run's own model."""
        return self.model.num_forwards if self.model else 0

    def margins(self, chunks: Sequence[int | None], longest_prompt: int) -> Margins:
        """How far measured forwards lie above the model, for each chunk size of a price list."""
        if self.model is None or self.misses is None:
            return Margins()
        least = RUN_TO_RUN if self.setting.provenance == "measured" else 0.0
        return Margins(
            prompts={chunk: max(least, self._of_prompts(chunk, longest_prompt, ONE)) for chunk in chunks},
            sums={chunk: max(least, self._of_prompts(chunk, longest_prompt, MANY)) for chunk in chunks},
            decode=max(least, self.misses.of_decodes(ONE)),
            short=max(least, self.misses.of_all_prompts(SOME)),
        )

    def _of_prompts(self, chunk: int | None, longest_prompt: int, quantile: float) -> float:
        """The larger of what forwards near that size missed the fit by, and of the fit's own uncertainty."""
        assert self.model is not None
        assert self.misses is not None
        size = min(chunk or longest_prompt, longest_prompt)
        sums = chunk_sums(size, longest_prompt - size)
        high = self.model.interval(sums)[1]
        return max(self.misses.of_prompts(size, quantile), high / self.model.seconds(sums) - 1)


@dataclass(frozen=True, slots=True)
class _Misses:
    """(forwards,) measured / fit, with what the forwards were."""

    ratios: Array
    tokens: Array
    decodes: NDArray[np.bool_]

    @classmethod
    def of(cls, model: ForwardModel, forwards: Forwards) -> "_Misses":
        ratios = forwards.seconds / model.curve.seconds(forwards.features)
        return cls(ratios, forwards.column("tokens"), forwards.mode == ForwardMode.DECODE.value)

    def of_prompts(self, tokens: int, quantile: float) -> float:
        """Of prompt forwards of about so many tokens; 0 where there are none."""
        ratios = self.ratios[~self.decodes]
        apart = np.abs(np.log(self.tokens[~self.decodes] / tokens))
        nearest = np.sort(apart)[:ENOUGH_NEAR]
        return _excess(ratios[apart <= max(np.log(NEAR), *nearest)], quantile)

    def of_all_prompts(self, quantile: float) -> float:
        """Of prompt forwards of any size; 0 where there are none."""
        return _excess(self.ratios[~self.decodes], quantile)

    def of_decodes(self, quantile: float) -> float:
        """Of forwards of decode rows alone, else of all."""
        return _excess(self.ratios[self.decodes] if self.decodes.any() else self.ratios, quantile)


class Slower:
    """A cost model whose forwards all take `factor` times as long."""

    def __init__(self, cost: ForwardCostModel, factor: float) -> None:
        self._cost = cost
        self._factor = factor

    def seconds(self, sums: ForwardSums) -> float:
        """Seconds of a forward with these sums."""
        return self._cost.seconds(sums) * self._factor

    def forward_ns(self, batch: ForwardBatch) -> int:
        """Nanoseconds of one planned forward."""
        return round(self._cost.forward_ns(batch) * self._factor)


def cost_of(traces: Sequence[TraceLike]) -> CostBasis:
    """The cost model of traces of one model on one machine: their own where they are simulated by one that
    can be made again, else fitted to all their forwards.

    Raises ConfigError where the traces differ, tell no model, or have no forward with a device time.
    """
    setting = shared_setting(traces)
    own = _own_cost(traces[0].meta, setting)
    if own is not None:
        return CostBasis(own, _own_overhead_ns(traces[0].meta), setting)
    model = fit_forward_model(traces)
    fitted = FittedCost(model)
    forwards = joined([forwards_of(trace, setting.shape) for trace in traces])
    return CostBasis(fitted, fitted.host_overhead_ns, setting, model, _Misses.of(model, forwards))


def _own_cost(meta: Mapping[str, Any], setting: Setting) -> RooflineCost | None:
    """The roofline that a run was simulated with, if this program has the same; None of any other run."""
    told, hardware = meta.get("cost_model"), meta.get("hardware")
    if setting.provenance != "simulated" or not isinstance(told, Mapping):
        return None
    table = {key: told.get(key) for key in cost_table()}
    if told.get("kind") != "roofline" or told.get("gemm_profile") is not None or table != cost_table():
        return None
    peaks = hardware.get("peaks") if isinstance(hardware, Mapping) else None
    if not isinstance(peaks, Mapping) or peaks.keys() != Peaks.__dataclass_fields__.keys():
        return None
    return RooflineCost(setting.shape, Peaks(**peaks), setting.element_bytes)


def _own_overhead_ns(meta: Mapping[str, Any]) -> int:
    told = meta["cost_model"].get("host_overhead_ns")
    return told if isinstance(told, int) else 0


def _excess(ratios: Array, quantile: float) -> float:
    """How far a quantile lies above the fit; 0 if below, or of nothing."""
    return max(0.0, float(np.quantile(ratios, quantile)) - 1) if len(ratios) else 0.0
