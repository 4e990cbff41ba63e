"""The roofline's parts of the Saturation page: of the forwards, or of their operators."""

import shlex

import polars as pl
from dash import html
from dash.development.base_component import Component

from profiler.roofline_above import WHY_ABOVE, AboveReason
from profiler.roofline_choice import Roofs
from profiler.saturation_board import SaturationBoard
from ui.palette import Theme
from ui.program import program
from ui.si_words import bandwidth, dtype_word, flop_rate
from ui.web.figures.roofline import HEIGHT, roofline_figure
from ui.web.figures.roofline_marks import MODES, OPERATORS
from ui.web.figures.style import empty
from ui.web.pages.saturation_roof_tables import (
    above_table,
    forwards_table,
    modes_table,
    operator_points_table,
    operators_table,
)
from ui.words import clipped, count, plural

__all__ = ["ROOF_PARTS", "roof_parts", "unreadable_roof"]

ROOF_PARTS = {
    "ceilings": "children",
    "roofline": "figure",
    "roofline-caption": "children",
    "modes": "children",
    "above": "children",
    "forwards": "children",
}
"""Every part of the roofline, and the property that holds it."""

_OF_OPERATORS = "operators"
_MOST_CHARS = 300  # of a sentence with a device's name in it


def roof_parts(board: SaturationBoard, by: str, trace_path: str, theme: Theme) -> dict[str, object]:
    """All parts for a run, of its `forwards` or `operators`."""
    of_operators = by == _OF_OPERATORS
    points = board.operator_points if of_operators else board.forwards
    nothing = board.lacking.get(by, "no forward with known FLOPs, bytes and device time")
    return {
        "ceilings": _ceilings(board.roofs, trace_path),
        "roofline": roofline_figure(points, board.roofs, theme, nothing),
        "roofline-caption": _operator_caption(board) if of_operators else _mode_caption(board),
        "modes": operators_table(board.operators) if of_operators else modes_table(board.modes),
        "above": _above(board.operators_above if of_operators else board.forwards_above),
        "forwards": operator_points_table(points) if of_operators else forwards_table(points),
    }


def unreadable_roof(theme: Theme) -> dict[str, object]:
    """All parts for a trace that cannot be read."""
    return {**dict.fromkeys(ROOF_PARTS, ""), "roofline": empty(theme, HEIGHT, "not readable")}


def _mode_caption(board: SaturationBoard) -> list[Component | str]:
    parts: list[Component | str] = []
    for mode, forwards in board.modes.select("mode", "forwards").iter_rows():
        mark = MODES[mode]
        drawn = board.forwards.filter(board.forwards["mode"].eq_missing(mode)).height
        cut = drawn != forwards
        part = f" ({count(drawn)} of {count(forwards)} drawn, evenly by intensity)" if cut else ""
        parts += [_glyph(mark.glyph, mark.fill, mark.edge), f" {mark.word}{part}  "]
    return [*parts, *_ring(board.forwards)]


def _operator_caption(board: SaturationBoard) -> list[Component | str]:
    """The shapes that are drawn, the colours of the modes, and where the times come from."""
    if board.operator_source is None:
        return []
    points = board.operator_points
    there = set(points["operator"])
    shapes = "  ".join(f"{mark.glyph} {mark.word}" for name, mark in OPERATORS.items() if name in there)
    parts: list[Component | str] = [f"{shapes}  in "]
    for mode in dict.fromkeys(points["mode"]):
        mark = MODES[mode]
        parts += [_glyph("●", mark.fill, mark.edge), f" {mark.word}  "]
    source = {"kernels": "measured: recorded kernels", "cost model": "simulated: the cost model's parts"}
    return [*parts, f"· {source[board.operator_source]}. ", *_ring(points)]


def _glyph(glyph: str, fill: str, edge: str) -> html.Span:
    return html.Span(glyph, style={"color": fill, "WebkitTextStroke": f"1px {edge}"})


def _ring(points: pl.DataFrame) -> list[Component | str]:
    return ["◯ above the roof: flagged below"] if points["above_roof"].any() else []


def _above(above: pl.DataFrame) -> list[Component | str]:
    """Every point above the roof is an error of counting or of a clock: how many, why, and which."""
    if above.is_empty():
        return []
    reasons = above.group_by("reason", maintain_order=True).len().iter_rows()
    lines = [
        html.Li(f"{count(number)}: {WHY_ABOVE[AboveReason(reason)] if reason else 'no reason is known'}")
        for reason, number in reasons
    ]
    head = html.P([html.Span("▲ ", className="watch"), f"{plural(above.height, 'point')} above the roof"])
    details = html.Details(
        [html.Summary("Table of flagged points"), html.Div(above_table(above), className="scroll")]
    )
    return [head, html.Ul(lines, className="reasons"), details]


def _ceilings(roofs: Roofs, trace_path: str) -> str | list[Component | str]:
    """The roof in words, or why there is none and what would give one."""
    if roofs.chosen is None:
        told = clipped(roofs.lacking or "No roof is known.", _MOST_CHARS)
        if roofs.machine is None or roofs.ceilings is not None:
            return told
        threads = "" if roofs.machine.threads is None else f"--threads {roofs.machine.threads} "
        command = f"{program()} ceilings {threads}{shlex.quote(trace_path)}"
        return [f"{told} To measure them there: ", html.Code(command)]
    roof = roofs.chosen.roof
    told = (
        f"{dtype_word(roof.dtype)} {flop_rate(roof.flops_per_s)}, {roof.traffic} "
        f"{bandwidth(roof.bytes_per_s)}: {clipped(roofs.chosen.words, _MOST_CHARS)}"
    )
    if roofs.chosen.source == "simulation":
        told += ". Forwards lie below them by the shares that the cost model assumes"
    return f"{told}."
