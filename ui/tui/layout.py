"""How many rows and columns each part of the screen gets in a terminal of some size."""

from dataclasses import dataclass

__all__ = ["LEAST_HEIGHT", "LEAST_WIDTH", "Layout", "layout"]

LEAST_WIDTH, LEAST_HEIGHT = 60, 20
WIDE_WIDTH, WIDE_HEIGHT = 120, 34
PANEL_CELLS = 32

_WIDE_FIXED = 28  # all rows of a wide screen but the lanes
_COMPACT_FIXED = 13


@dataclass(frozen=True, slots=True)
class Layout:
    """A wide screen has a panel of the state at its right, and every part; a compact one the main parts."""

    width: int
    height: int
    wide: bool
    label_cells: int
    columns: int  # cells of the chart
    strip_rows: int
    lane_rows: int

    @property
    def chart_cells(self) -> int:
        """Margin, label and chart together."""
        return 1 + self.label_cells + self.columns


def layout(width: int, height: int) -> Layout | None:
    """The layout, or None for a terminal that is too small for any."""
    if width < LEAST_WIDTH or height < LEAST_HEIGHT:
        return None
    if width >= WIDE_WIDTH and height >= WIDE_HEIGHT:
        columns = width - PANEL_CELLS - 16
        return Layout(width, height, True, 12, columns, 6, height - _WIDE_FIXED)
    return Layout(width, height, False, 10, width - 12, 3, height - _COMPACT_FIXED)
