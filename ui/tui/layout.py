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


def layout(width: int, height: int, requests: int) -> Layout | None:
    """The layout for a trace of so many requests, or None for a terminal that is too small for any.

    Rows that the lanes do not need make the forwards' bars higher, up to twice as high.
    """
    if width < LEAST_WIDTH or height < LEAST_HEIGHT:
        return None
    wide = width >= WIDE_WIDTH and height >= WIDE_HEIGHT
    strip_rows = 6 if wide else 3
    lane_rows = height - (_WIDE_FIXED if wide else _COMPACT_FIXED)
    higher = min(max(lane_rows - requests - 1, 0), strip_rows)
    label_cells = 12 if wide else 10
    return Layout(
        width=width,
        height=height,
        wide=wide,
        label_cells=label_cells,
        columns=width - label_cells - (PANEL_CELLS + 4 if wide else 2),
        strip_rows=strip_rows + higher,
        lane_rows=lane_rows - higher,
    )
