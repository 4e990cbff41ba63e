"""Everything a roofline is drawn and told from: roofs, forwards, operators, and what lies above the roof."""

from dataclasses import dataclass

import polars as pl

from profiler.roofline import roofline_points
from profiler.roofline_above import points_above
from profiler.roofline_choice import Roofs, roofs_of
from profiler.roofline_operators import OperatorPoints, operator_points
from profiler.tables import TraceLike

__all__ = ["Roofline", "roofline"]


@dataclass(frozen=True, slots=True)
class Roofline:
    """A trace's forwards and operators under the roof of its machine."""

    roofs: Roofs
    forwards: pl.DataFrame  # of `roofline_points`
    operators: OperatorPoints
    forwards_above: pl.DataFrame  # of `points_above`
    operators_above: pl.DataFrame


def roofline(trace: TraceLike) -> Roofline:
    """The roofline of a trace, under the roof that is chosen for it."""
    roofs = roofs_of(trace.meta)
    forwards = roofline_points(trace, roofs.roof)
    operators = operator_points(trace, roofs.roof)
    return Roofline(
        roofs,
        forwards,
        operators,
        points_above(forwards, roofs.chosen),
        points_above(operators.points, roofs.chosen),
    )
