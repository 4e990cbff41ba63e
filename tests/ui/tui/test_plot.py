"""Curves, glyphs and ticks in terminal cells."""

import numpy as np
import pytest

from ui.tui.glyphs import to_ascii
from ui.tui.ink import BAND, Ink
from ui.tui.plot import Axis, Plot, decimal_ticks, token_ticks


def texts(plot: Plot) -> list[str]:
    return ["".join(cells.glyph.tolist()) for cells in plot.rows()]


def unit(columns: int, rows: int) -> Plot:
    return Plot(columns, rows, Axis(0, 1, log=False), Axis(0, 1, log=False))


def test_a_curve_runs_from_corner_to_corner_in_dots() -> None:
    plot = unit(2, 1)
    plot.curve(np.array([0.0, 1.0]), np.array([0.0, 1.0]), Ink.PREFILL)
    assert texts(plot) == ["⡠⠊"]
    assert (plot.rows()[0].ink == Ink.PREFILL).all()


def test_a_flat_curve_and_values_out_of_sight() -> None:
    plot = Plot(3, 2, Axis(1, 100, log=True), Axis(0, 1, log=False))
    x = np.array([0.0, 1.0, 100.0, 1000.0])
    plot.curve(x, np.zeros(4), Ink.TEXT)
    plot.points(np.array([0.0, 1.0, 1e6]), np.array([1.0, 2.0, 0.5]), "x", Ink.BAD)
    assert texts(plot) == ["   ", "⣀⣀⣀"]


def test_glyphs_lie_above_dots_and_lines_give_way_to_both() -> None:
    plot = unit(6, 1)
    plot.curve(np.array([0.4, 1.0]), np.array([0.5, 0.5]), Ink.TEXT)
    plot.points(np.array([0.5]), np.array([0.5]), "o", Ink.GOOD)
    plot.text(0, 4, "abc", Ink.MUTED)  # moved to the left, as it would run over the edge
    plot.vertical(0.0, "|", Ink.BAD)
    plot.vertical(0.4, "|", Ink.BAD)
    plot.horizontal(0.5, "-", Ink.RULE)
    assert texts(plot) == ["|-⠤abc"]


def test_a_band_changes_the_ground_of_its_columns_alone() -> None:
    plot = unit(4, 2)
    plot.band(0.3, 0.6)
    for cells in plot.rows():
        assert [bool(ink & BAND) for ink in cells.ink.tolist()] == [False, True, True, False]


@pytest.mark.parametrize(
    ("low", "high", "most", "ticks"),
    [
        (1, 4096, 20, [2**i for i in range(13)]),
        (1, 4096, 5, [1, 8, 64, 512, 4096]),
        (10, 1000, 3, [16, 64, 256]),
        (3, 3.5, 3, []),
        (5, 4000, 1, [64]),
    ],
)
def test_ticks_of_tokens_are_powers_of_two(low: float, high: float, most: int, ticks: list[int]) -> None:
    assert token_ticks(Axis(low, high, log=True), most) == ticks


@pytest.mark.parametrize(
    ("axis", "most", "ticks"),
    [
        (Axis(0, 52_000, log=False), 6, [0, 10_000, 20_000, 30_000, 40_000, 50_000]),
        (Axis(0, 7, log=False), 3, [0, 5]),
        (Axis(0.9, 110, log=True), 9, [1, 2, 5, 10, 20, 50, 100]),
        (Axis(0.9, 110, log=True), 3, [1, 10, 100]),
        (Axis(0.9, 1e9, log=True), 2, [1, 1e5]),
    ],
)
def test_ticks_of_values_are_round(axis: Axis, most: int, ticks: list[float]) -> None:
    assert decimal_ticks(axis, most) == pytest.approx(ticks)


def test_dots_have_a_likeness_in_ascii() -> None:
    assert to_ascii("⠉⣀⣿⠀◦┊✕") == "'.:  |x".replace("  ", " o")
