"""A plot in terminal cells: curves in braille dots, glyphs and words laid over them, a band behind both."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ui.tui.cells import Cells, blank
from ui.tui.ink import BAND, Ink

__all__ = ["Axis", "Plot", "decimal_ticks", "token_ticks"]

Array = NDArray[np.float64]

_DOTS = np.array([[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]])  # by row and column of a cell
_BRAILLE = 0x2800
_DOWN, _ACROSS = _DOTS.shape


@dataclass(frozen=True, slots=True)
class Axis:
    """The values from one edge of the plot to the other."""

    low: float
    high: float
    log: bool

    def place(self, values: Array) -> Array:
        """0 at `low`, 1 at `high`; NaN for what a logarithmic axis has no place for."""
        if not self.log:
            return (values - self.low) / (self.high - self.low)
        with np.errstate(divide="ignore", invalid="ignore"):
            placed = np.log(values / self.low) / math.log(self.high / self.low)
        return np.where(values > 0, placed, np.nan)


class Plot:
    """Rows of cells, top first. What is put later lies above what was put before; dots lie below glyphs."""

    def __init__(self, columns: int, rows: int, x: Axis, y: Axis) -> None:
        self.columns = columns
        self._rows = rows
        self._x, self.y = x, y
        self._dots = np.zeros((rows, columns), dtype=np.int64)
        self._cells = [blank(columns) for _ in range(rows)]
        self._band = np.zeros(columns, dtype=np.bool_)
        self._line_ink = Ink.TEXT

    def curve(self, x: Array, y: Array, ink: Ink) -> None:
        """A line through the points, in dots; all curves of a plot share the last one's ink."""
        self._line_ink = ink
        across = self._x.place(x) * (self.columns * _ACROSS - 1)
        down = (1 - self.y.place(y)) * (self._rows * _DOWN - 1)
        known = np.isfinite(across) & np.isfinite(down)
        across, down = across[known], down[known]
        for i in range(len(across) - 1):
            steps = math.ceil(max(abs(across[i + 1] - across[i]), abs(down[i + 1] - down[i])))
            self._dot(
                np.linspace(across[i], across[i + 1], steps + 1), np.linspace(down[i], down[i + 1], steps + 1)
            )

    def points(self, x: Array, y: Array, glyph: str, ink: Ink) -> None:
        """A glyph at each point in sight."""
        for left, up in zip(x.tolist(), y.tolist(), strict=True):
            column, row = self.column(left), self.row(up)
            if column is not None and row is not None:
                self._cells[row].write(column, glyph, ink)

    def vertical(self, x: float, glyph: str, ink: Ink) -> None:
        """A line from top to bottom, where neither glyph nor dots stand."""
        column = self.column(x)
        if column is not None:
            for cells, dots in zip(self._cells, self._dots, strict=True):
                if cells.ink[column] == Ink.BLANK and not dots[column]:
                    cells.write(column, glyph, ink)

    def horizontal(self, y: float, glyph: str, ink: Ink) -> None:
        """A line from left to right, where neither glyph nor dots stand."""
        row = self.row(y)
        if row is not None:
            cells = self._cells[row]
            free = (cells.ink == Ink.BLANK) & (self._dots[row] == 0)
            cells.glyph[free], cells.ink[free] = glyph, ink

    def band(self, low: float, high: float) -> None:
        """Another ground from `low` to `high` across."""
        edges = self._x.place(np.array([low, high])) * self.columns
        first, last = np.clip(np.floor(edges), 0, self.columns - 1).astype(int)
        self._band[first : last + 1] = True

    def text(self, row: int, column: int, text: str, ink: Ink) -> None:
        """Words where they do not run over the edge; further to the left if they would."""
        column = max(min(column, self.columns - len(text)), 0)
        self._cells[row].write(column, text, ink)

    def column(self, x: float) -> int | None:
        """The cell's column; None if out of sight."""
        return _cell(float(self._x.place(np.array([x]))[0]), self.columns)

    def row(self, y: float) -> int | None:
        """The cell's row; None if out of sight."""
        place = float(self.y.place(np.array([y]))[0])
        return _cell(1 - place, self._rows)

    def rows(self) -> list[Cells]:
        """The cells, top first."""
        for dots, cells in zip(self._dots, self._cells, strict=True):
            drawn = (cells.ink == Ink.BLANK) & (dots > 0)
            cells.glyph[drawn] = [chr(_BRAILLE + dot) for dot in dots[drawn].tolist()]
            cells.ink[drawn] = self._line_ink
            cells.ink[self._band] |= BAND
        return self._cells

    def _dot(self, across: Array, down: Array) -> None:
        x, y = np.rint(across).astype(int), np.rint(down).astype(int)
        seen = (x >= 0) & (x < self.columns * _ACROSS) & (y >= 0) & (y < self._rows * _DOWN)
        x, y = x[seen], y[seen]
        np.bitwise_or.at(self._dots, (y // _DOWN, x // _ACROSS), _DOTS[y % _DOWN, x % _ACROSS])


def _cell(place: float, cells: int) -> int | None:
    """The cell of a place between 0 and 1, both included."""
    if not 0 <= place <= 1:
        return None
    return min(int(place * cells), cells - 1)


def token_ticks(axis: Axis, most: int) -> list[int]:
    """Powers of two, of four, of eight and so on within a logarithmic axis, at most `most` of them."""
    first, last = math.ceil(math.log2(axis.low) - 1e-9), math.floor(math.log2(axis.high) + 1e-9)
    for step in range(1, last - first + 2):
        ticks = [2**power for power in range(-(-first // step) * step, last + 1, step)]
        if len(ticks) <= max(most, 1):
            return ticks
    return []


def decimal_ticks(axis: Axis, most: int) -> list[float]:
    """Round values within an axis, ascending, at most `most`: 1, 2 and 5 times powers of ten where they fit.

    On a linear axis they are multiples of one of them.
    """
    if axis.log:
        decades = range(math.floor(math.log10(axis.low)), math.ceil(math.log10(axis.high)) + 1)
        for steps in ((1, 2, 5), (1, 3), (1,)):
            ticks = [step * 10.0**decade for decade in decades for step in steps]
            ticks = [tick for tick in ticks if axis.low <= tick <= axis.high]
            if len(ticks) <= most:
                return ticks
        return ticks[:: -(-len(ticks) // max(most, 1))]
    least = (axis.high - axis.low) / max(most, 1)
    power = 10.0 ** math.floor(math.log10(least))
    step = next(power * times for times in (1, 2, 5, 10) if power * times >= least * (1 - 1e-9))
    return [step * i for i in range(math.ceil(axis.low / step), math.floor(axis.high / step + 1e-9) + 1)]
