"""The cost model that forwards can be split by: a simulated run's own, else one fitted to the trace."""

from profiler.advice_cost import cost_of
from profiler.price_rows import ForwardCostModel
from profiler.tables import TraceLike
from profiler.wording import count

__all__ = ["split_cost"]


def split_cost(trace: TraceLike) -> tuple[str, ForwardCostModel]:
    """The model and its name. Raises ConfigError where the trace tells no model, or no device time."""
    basis = cost_of([trace])
    if basis.model is None:
        return "the run's own cost model", basis.cost
    return f"cost model fitted to {count(basis.num_forwards)} forwards", basis.cost
