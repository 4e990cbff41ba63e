"""The tables behind the Saturation page's charts."""

from collections.abc import Iterable, Sequence

import polars as pl
from dash import html

from profiler.sampling import evenly
from profiler.saturation_report import SaturationReport
from ui.si_words import flop_rate, intensity, percent
from ui.web.figures.roofline import MODES
from ui.web.metric_heads import head, name_head
from ui.words import UNKNOWN, count, rate, seconds

__all__ = ["forwards_table", "modes_table", "sizes_table"]

_MOST_ROWS = 60


def sizes_table(report: SaturationReport) -> list[html.P | html.Table]:
    """One row a measured size."""
    sizes = evenly(report.sizes, ("tokens",), _MOST_ROWS)
    heads = [
        head("size_tokens", "tokens"),
        head("size_forwards", "forwards"),
        head("size_time", "time, median"),
        head("size_time", "shortest"),
        head("size_time", "longest"),
        head("size_rate", "tokens/s"),
        head("fit", "fit"),
        head("fit_share", "of the best"),
    ]
    rows = [
        (
            count(size["tokens"]),
            count(size["forwards"]),
            *(seconds(size[name] / 1e9) for name in ("time_ns", "low_ns", "high_ns")),
            rate(size["tokens_per_s"]),
            rate(size["fit_tokens_per_s"]),
            percent(size["share"]),
        )
        for size in sizes.iter_rows(named=True)
    ]
    return [*_cut("sizes", report.sizes.height), _table("Sizes of forwards", heads, rows)]


def modes_table(modes: pl.DataFrame) -> html.Table:
    """One row a mode."""
    heads = [
        name_head("mode"),
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
    return _table("Forwards by mode", heads, rows)


def forwards_table(sample: pl.DataFrame) -> list[html.P | html.Table]:
    """Some of the drawn forwards, one a row, by intensity."""
    drawn = evenly(sample, ("intensity", "flops_per_s", "forward_id"), _MOST_ROWS)
    heads = [
        name_head("forward"),
        name_head("mode"),
        head("forward_tokens", "tokens"),
        head("forward_time", "time"),
        head("intensity", "intensity"),
        head("flops_per_s", "FLOP/s"),
        head("roof_share", "of the roof"),
    ]
    rows = [
        (
            f"#{forward['forward_id']}",
            MODES[forward["mode"]].word,
            count(forward["tokens"]),
            seconds(forward["time_ns"] / 1e9),
            intensity(forward["intensity"]),
            flop_rate(forward["flops_per_s"]),
            percent(forward["roof_share"]),
        )
        for forward in drawn.iter_rows(named=True)
    ]
    return [*_cut("drawn forwards", sample.height), _table("Forwards", heads, rows)]


def _cut(of: str, height: int) -> list[html.P]:
    """Says that not all rows are here, where that is so."""
    if height <= _MOST_ROWS:
        return []
    return [html.P(f"{_MOST_ROWS} of {count(height)} {of}, at even steps", className="caption")]


def _number(value: float | None) -> str:
    return UNKNOWN if value is None else intensity(value).split()[0]


def _table(caption: str, heads: Sequence[html.Th], rows: Iterable[Sequence[str]]) -> html.Table:
    return html.Table(
        [
            html.Caption(caption, className="sr-only"),
            html.Thead(html.Tr(heads)),
            html.Tbody([html.Tr([html.Td(cell) for cell in row]) for row in rows]),
        ],
        className="numbers",
    )
