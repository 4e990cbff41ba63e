"""What a prompt costs behind a prefix, by a cost model: the dashed curve beside the measured one."""

from dataclasses import dataclass

import numpy as np

from profiler.price_rows import ForwardCostModel
from profiler.price_sums import chunk_sums

__all__ = ["PrefixCurve", "prefix_curve"]

_POINTS = 60


@dataclass(frozen=True, slots=True)
class PrefixCurve:
    """Time of a forward against its tokens, all behind one prefix."""

    prefix_tokens: int
    tokens: tuple[int, ...]  # ascending
    times_s: tuple[float, ...]


def prefix_curve(cost: ForwardCostModel, low: int, high: int, prefix_tokens: int) -> PrefixCurve:
    """The curve from `low` to `high` tokens a forward, at geometric steps."""
    sizes = np.unique(np.round(np.geomspace(low, high, _POINTS))).astype(int).tolist()
    times = tuple(cost.seconds(chunk_sums(size, prefix_tokens)) for size in sizes)
    return PrefixCurve(prefix_tokens, tuple(sizes), times)
