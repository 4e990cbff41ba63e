"""The tables behind the roofline of the Saturation page."""

from collections.abc import Mapping
from typing import Any

import polars as pl
from dash import html

from profiler.sampling import evenly
from ui.si_words import flop_rate, intensity, percent
from ui.web.figures.roofline_marks import MODES, OPERATORS
from ui.web.metric_heads import head, name_head
from ui.web.numbers_table import cut_note, numbers_table
from ui.words import UNKNOWN, count, seconds

__all__ = ["above_table", "forwards_table", "modes_table", "operator_points_table", "operators_table"]

_MOST_ROWS = 24  # of points, which are drawn above


def modes_table(modes: pl.DataFrame) -> html.Table:
    """One row a mode."""
    heads = [
        head("mode", "mode"),
        head("mode_forwards", "forwards"),
        head("intensity", "FLOP/byte, median"),
        head("flops_per_s", "FLOP/s, median"),
        head("flops_per_s", "best"),
        head("roof_share", "of the roof, median"),
        head("above_roof", "above it"),
    ]
    rows = [
        (
            MODES[mode["mode"]].word,
            count(mode["forwards"]),
            _number(mode["intensity"]),
            flop_rate(mode["flops_per_s"]),
            flop_rate(mode["best_flops_per_s"]),
            percent(mode["roof_share"]),
            count(mode["above_roof"]),
        )
        for mode in modes.iter_rows(named=True)
    ]
    return numbers_table("Forwards by mode", heads, rows)


def forwards_table(sample: pl.DataFrame) -> list[html.P | html.Table]:
    """Some of the drawn forwards, one a row, by intensity."""
    drawn = evenly(sample, ("intensity", "flops_per_s", "forward_id"), _MOST_ROWS)
    rows = [_point(row) for row in drawn.iter_rows(named=True)]
    return [
        *cut_note("drawn forwards", sample.height, _MOST_ROWS),
        numbers_table("Forwards", _point_heads(), rows),
    ]


def operators_table(operators: pl.DataFrame) -> html.Table | str:
    """One row an operator, most time first; nothing without points."""
    if operators.is_empty():
        return ""
    heads = [
        name_head("operator"),
        head("operator_time", "of the time"),
        head("intensity", "FLOP/byte, median"),
        head("flops_per_s", "FLOP/s, median"),
        head("roof_share", "of the roof, median"),
        head("above_roof", "above it"),
    ]
    rows = [
        (
            _operator(row["operator"]),
            percent(row["time_share"]),
            _number(row["intensity"]),
            flop_rate(row["flops_per_s"]),
            percent(row["roof_share"]),
            count(row["above_roof"]),
        )
        for row in operators.iter_rows(named=True)
    ]
    return numbers_table("Operators", heads, rows)


def operator_points_table(sample: pl.DataFrame) -> list[html.P | html.Table]:
    """Some of the drawn points of operators, one a row, by operator and intensity."""
    drawn = evenly(sample, ("operator", "intensity", "forward_id"), _MOST_ROWS)
    heads = [name_head("operator"), *_point_heads()]
    rows = [(_operator(row["operator"]), *_point(row)) for row in drawn.iter_rows(named=True)]
    return [
        *cut_note("drawn points", sample.height, _MOST_ROWS),
        numbers_table("Operators by forward", heads, rows),
    ]


def above_table(above: pl.DataFrame) -> list[html.P | html.Table]:
    """The points above the roof, furthest first; of operators with their names."""
    operators = "operator" in above.columns
    heads = [*([name_head("operator")] if operators else []), *_point_heads(), name_head("reason")]
    rows = [
        (*([_operator(row["operator"])] if operators else []), *_point(row), row["reason"] or UNKNOWN)
        for row in above.head(_MOST_ROWS).iter_rows(named=True)
    ]
    note = f"the {_MOST_ROWS} furthest above, of {count(above.height)}"
    cut = [html.P(note, className="caption")] if above.height > _MOST_ROWS else []
    return [*cut, numbers_table("Points above the roof", heads, rows)]


def _operator(name: str) -> str:
    mark = OPERATORS.get(name)
    return name.lower() if mark is None else mark.word


def _point_heads() -> list[html.Th]:
    return [
        name_head("forward"),
        head("mode", "mode"),
        head("forward_tokens", "tokens"),
        head("forward_time", "time"),
        head("intensity", "intensity"),
        head("flops_per_s", "FLOP/s"),
        head("roof_share", "of the roof"),
    ]


def _point(row: Mapping[str, Any]) -> tuple[str, ...]:
    return (
        f"#{row['forward_id']}",
        MODES[row["mode"]].word,
        count(row["tokens"]),
        seconds(row["time_ns"] / 1e9),
        intensity(row["intensity"]),
        flop_rate(row["flops_per_s"]),
        percent(row["roof_share"]),
    )


def _number(value: float | None) -> str:
    return UNKNOWN if value is None else intensity(value).split()[0]
