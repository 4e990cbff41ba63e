"""`FittedCost`: a fitted `ForwardModel` in the place of a roofline, for what-if runs and price lists."""

from typing import Any

from engine.arithmetic import ForwardSums, forward_sums
from engine.batch import ForwardBatch
from profiler.forward_model import ForwardModel

__all__ = ["FittedCost"]


class FittedCost:
    """A `ForwardCostModel` that says what forwards took on the machine that `model` was fitted to.

    Times are positive and grow with every sum over the rows.
    """

    def __init__(self, model: ForwardModel) -> None:
        self.model = model
        self._launch_gap_ns = model.host.launch_gap_ns or 0

    @property
    def host_overhead_ns(self) -> int:
        """What `SimulatedExecutor` should take for the host; 0 if the traces do not tell."""
        return self.model.host.overhead_ns or 0

    def seconds(self, sums: ForwardSums) -> float:
        """Seconds that a forward with these sums takes on the device."""
        return self.model.seconds(sums)

    def forward_ns(self, batch: ForwardBatch) -> int:
        """Nanoseconds of one planned forward, with the gap before it that no overlap hides."""
        return round(self.seconds(forward_sums(batch)) * 1e9) + self._launch_gap_ns

    def describe(self) -> dict[str, Any]:
        """The model as plain values, for meta.json."""
        return {"kind": "fitted", **self.model.as_json()}
