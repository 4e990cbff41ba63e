"""How many tokens, or rows, fill a forward, with the throughput of other sizes beside it."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from engine.errors import EngineError
from profiler.tables import TraceLike, frame

if TYPE_CHECKING:
    from profiler.saturation_report import SaturationReport

__all__ = ["SizePoint", "point_of_cost", "point_of_report"]

_GRID = 240  # sizes of a cost model's curve, in geometric steps


@dataclass(frozen=True, slots=True)
class SizePoint:
    """A saturation point with its 95 % interval, and the curve that it lies on."""

    tokens: int
    low: int
    high: int
    q: float
    by: str  # what tells it, in words
    residual: float | None  # of the fit; None for a cost model, which is exact
    sizes: NDArray[np.float64]  # (sizes,) ascending
    rates: NDArray[np.float64]  # (sizes,) fitted tokens/s

    def share(self, tokens: int) -> float | None:
        """The most that forwards of up to so many tokens reach, of the best; None below all known sizes."""
        if tokens < self.sizes[0]:
            return None
        reached = np.maximum.accumulate(self.rates) / self.rates.max()
        return float(np.interp(np.log(tokens), np.log(self.sizes), reached))

    def seconds(self, tokens: int) -> float:
        """Time of a forward of a size within the known ones, by the curve."""
        return tokens / float(np.interp(np.log(tokens), np.log(self.sizes), self.rates))


def point_of_report(report: "SaturationReport") -> SizePoint | None:
    """The point of forwards; None unless they tell it."""
    found = report.found
    if found.status != "ok" or found.tokens is None or found.low is None or found.high is None:
        return None
    curve = report.curve.sort("tokens")
    return SizePoint(
        tokens=found.tokens,
        low=found.low,
        high=found.high,
        q=found.q,
        by=f"a fit to {found.layout}",
        residual=report.residual,
        sizes=curve["tokens"].to_numpy(),
        rates=curve["tokens_per_s"].to_numpy(),
    )


def point_of_cost(trace: TraceLike) -> SizePoint | None:
    """The point of a simulated run's own cost model; None where there is none or it cannot be made again."""
    if trace.meta.get("provenance") != "simulated":
        return None
    from profiler.advice import LARGEST_FORWARD
    from profiler.advice_choice import Q
    from profiler.advice_point import point_by_model
    from profiler.cost_table import cost_table
    from profiler.operator_model import operator_model
    from profiler.price_sums import chunk_sums

    model = operator_model(trace.meta)
    if model is None or any(trace.meta["cost_model"].get(key) != told for key, told in cost_table().items()):
        return None  # none, or one of another version of this program
    largest = max(_longest_prompt(trace), min(LARGEST_FORWARD, model.shape.max_position_embeddings))
    sizes = np.unique(np.round(np.geomspace(1, largest, _GRID)))
    try:
        seconds = np.array([model.cost.seconds(chunk_sums(int(size))) for size in sizes])
        point = point_by_model(model.cost, largest)
    except EngineError:  # a forward that takes longer than any run may
        return None
    return SizePoint(
        point.tokens, point.low, point.high, Q, "the run's cost model", None, sizes, sizes / seconds
    )


def _longest_prompt(trace: TraceLike) -> int:
    longest = frame(trace, "requests")["prompt_tokens"].max()
    return longest if isinstance(longest, int) else 1
