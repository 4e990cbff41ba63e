"""How much device time lies in which spans, exact, without pairing every span with every forward."""

from collections.abc import Sequence

import polars as pl

__all__ = ["device_intervals", "in_spans"]

# Order of marks at one instant: an interval that ends there is over, one that starts there is not yet begun.
_END, _QUERY, _START = 0, 1, 2


def device_intervals(forwards: pl.DataFrame) -> pl.DataFrame:
    """Forwards that held the device for some time: forward_id, rank, start_ns, end_ns."""
    return forwards.select("forward_id", "rank", "start_ns", "end_ns").filter(
        pl.col("end_ns") > pl.col("start_ns")
    )


def in_spans(spans: pl.DataFrame, intervals: pl.DataFrame, by: Sequence[str]) -> pl.DataFrame:
    """For each span, in order: `busy_ns` of intervals with the same keys in it, and `touching`, how many.

    Both frames have start_ns, end_ns and the key columns `by`. Intervals may overlap: each counts its own
    time. Of an interval without length, `ended` still tells whether it lies in (start_ns, end_ns].
    """
    if intervals.is_empty():
        zeros = pl.zeros(spans.height, pl.Int64, eager=True)
        return pl.DataFrame({"busy_ns": zeros, "touching": zeros, "ended": zeros})
    at_start = _until(spans.select(*by, t_ns="start_ns"), intervals, by)
    at_end = _until(spans.select(*by, t_ns="end_ns"), intervals, by)
    lasts = (spans["end_ns"] > spans["start_ns"]).cast(pl.Int64)  # nothing overlaps an instant
    return pl.DataFrame(
        {
            "busy_ns": at_end["busy_ns"] - at_start["busy_ns"],
            "touching": (at_end["started"] - at_start["ended"]) * lasts,
            "ended": at_end["ended"] - at_start["ended"],
        }
    )


def _until(queries: pl.DataFrame, intervals: pl.DataFrame, by: Sequence[str]) -> pl.DataFrame:
    """For each query time, in order: intervals started before it, ended by it, and their time up to it.

    Time up to t is the sum of t - start over those started less that of t - end over those ended.
    """
    number = queries.with_row_index("query").with_columns(pl.col("query").cast(pl.Int64))
    marks = pl.concat(
        [
            _marks(intervals, by, "start_ns", _START),
            _marks(intervals, by, "end_ns", _END),
            number.select(*by, "t_ns", pl.lit(_QUERY, dtype=pl.Int8).alias("kind"), "query"),
        ]
    ).sort(*by, "t_ns", "kind")
    started, ended = pl.col("kind") == _START, pl.col("kind") == _END
    t = pl.col("t_ns")
    return (
        marks.with_columns(
            started=started.cast(pl.Int64).cum_sum().over(by),
            ended=ended.cast(pl.Int64).cum_sum().over(by),
            sum_ns=(pl.when(started).then(t).when(ended).then(-t).otherwise(0)).cum_sum().over(by),
        )
        .filter(pl.col("kind") == _QUERY)
        .sort("query")
        .select("started", "ended", busy_ns=(pl.col("started") - pl.col("ended")) * t - pl.col("sum_ns"))
    )


def _marks(intervals: pl.DataFrame, by: Sequence[str], column: str, kind: int) -> pl.DataFrame:
    return intervals.select(
        *by,
        pl.col(column).alias("t_ns"),
        pl.lit(kind, dtype=pl.Int8).alias("kind"),
        pl.lit(None, pl.Int64).alias("query"),
    )
