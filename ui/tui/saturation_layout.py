"""How many rows and columns each part of the Saturation screen gets in a terminal of some size."""

from dataclasses import dataclass

from ui.tui.layout import LEAST_HEIGHT, LEAST_WIDTH, WIDE_HEIGHT, WIDE_WIDTH
from ui.tui.saturation_charts import LABEL_CELLS

__all__ = ["SaturationLayout", "saturation_layout"]

WIDE_PRICES, COMPACT_PRICES, MOST_PRICES = 64, 40, 90
BETWEEN = 3  # " │ "
_BESIDE_WIDTH = 76  # charts and prices side by side


@dataclass(frozen=True, slots=True)
class SaturationLayout:
    """Charts at the left and the price list at the right, or one of them where there is no room for both."""

    width: int
    height: int
    wide: bool
    left_cells: int  # charts with their labels; 0 without
    right_cells: int  # prices, advice and limits; 0 without
    body_rows: int

    @property
    def columns(self) -> int:
        """Cells of a chart."""
        return self.left_cells - LABEL_CELLS


def saturation_layout(width: int, height: int, *, prices_first: bool) -> SaturationLayout | None:
    """None for a terminal that is too small; `prices_first` decides where there is room for one half."""
    if width < LEAST_WIDTH or height < LEAST_HEIGHT:
        return None
    wide = width >= WIDE_WIDTH and height >= WIDE_HEIGHT
    inner = width - 2  # a margin at both sides
    right = min(max(WIDE_PRICES, inner // 2), MOST_PRICES) if wide else min(COMPACT_PRICES, inner)
    left = inner - right - BETWEEN
    if width < _BESIDE_WIDTH:
        left, right = (0, inner) if prices_first else (inner, 0)
    return SaturationLayout(width, height, wide, left, right, height - (12 if wide else 6))
