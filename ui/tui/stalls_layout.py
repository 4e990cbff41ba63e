"""How many rows and columns each part of the Stalls screen gets in a terminal of some size."""

from dataclasses import dataclass

from ui.tui.layout import LEAST_HEIGHT, LEAST_WIDTH, WIDE_HEIGHT, WIDE_WIDTH

__all__ = ["BETWEEN", "StallsLayout", "stalls_layout"]

BETWEEN = 3  # " │ "
_BESIDE_WIDTH = 76  # ledger and chunks side by side
_WIDE_FIXED, _COMPACT_FIXED = 15, 9  # all rows but those of the list and of the panels
_LEAST_PANELS = 20  # rows, on a wide screen
_MOST_LISTED = 10


@dataclass(frozen=True, slots=True)
class StallsLayout:
    """The list above; below it the ledger at the left and chunks at the right, or one of them."""

    width: int
    height: int
    wide: bool
    list_rows: int
    panel_rows: int
    left_cells: int  # the ledger; 0 without
    right_cells: int  # chunks; 0 without

    @property
    def cells(self) -> int:
        """Between the margins."""
        return self.width - 2


def stalls_layout(width: int, height: int, stalls: int, *, chunks_first: bool) -> StallsLayout | None:
    """For a list of so many stalls; None for a terminal that is too small.

    `chunks_first` decides where there is room for one panel.
    """
    if width < LEAST_WIDTH or height < LEAST_HEIGHT:
        return None
    wide = width >= WIDE_WIDTH and height >= WIDE_HEIGHT
    room = height - (_WIDE_FIXED if wide else _COMPACT_FIXED)
    if wide:
        most = min(max(room - _LEAST_PANELS, 4), _MOST_LISTED)
        listed = min(max(stalls, 3), most)
    else:
        listed = min(max(stalls, 1), max(room * 3 // 10, 2))
    inner = width - 2
    right = inner * 45 // 100 if wide else 34
    left = inner - right - BETWEEN
    if width < _BESIDE_WIDTH:
        left, right = (0, inner) if chunks_first else (inner, 0)
    return StallsLayout(width, height, wide, listed, room - listed, left, right)
