"""What a saturation point rests on, and what sizes beside it cost: points, sizes, the fitted curve."""

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from engine.batch import ForwardMode
from profiler import points
from profiler.points import LayoutPoints, Rows
from profiler.saturation import RESAMPLES, Saturation, saturation_of
from profiler.tables import TraceLike, frame

__all__ = ["Fitted", "SaturationReport", "decode_report", "saturation_report"]

Array = NDArray[np.float64]

_CURVE_POINTS = 120


@dataclass(frozen=True, slots=True)
class Fitted:
    """The fit at one size."""

    tokens: int
    tokens_per_s: float
    time_s: float
    share: float  # of the best fitted throughput in the measured range


@dataclass(frozen=True, slots=True)
class SaturationReport:
    """A saturation point with its evidence; frames are empty and numbers None where there is no fit.

    - points: forwards of the point's layout: forward_id, tokens, time_ns, tokens_per_s;
    - others: of a point of prompts, the other forwards with prompt tokens, of several rows or with a prefix,
      tokens being those of all rows; of a point of decode rows, those with other contexts: the same columns;
    - sizes: one row a measured size: tokens, forwards, time_ns (median), low_ns, high_ns, tokens_per_s (the
      median throughput), fit_tokens_per_s, share (fit against the best fit), residual (tokens_per_s /
      fit_tokens_per_s - 1), in_dip;
    - curve: the fit over the measured range: tokens, tokens_per_s, time_ns.
    """

    found: Saturation
    points: pl.DataFrame
    others: pl.DataFrame
    sizes: pl.DataFrame
    curve: pl.DataFrame
    best_tokens_per_s: float | None = None
    residual: float | None = None  # root mean square of log(fit / median) over the sizes

    def fitted(self, tokens: int) -> Fitted | None:
        """The fit at a size; None without a fit or outside of the measured range."""
        curve, best = self.found.curve, self.best_tokens_per_s
        if curve is None or best is None or not self.sizes["tokens"][0] <= tokens <= self.sizes["tokens"][-1]:
            return None
        rate = float(curve.throughput(np.array([tokens], dtype=np.float64))[0])
        return Fitted(tokens, rate, tokens / rate, rate / best)


def saturation_report(
    trace: TraceLike, q: float = 0.95, resamples: int = RESAMPLES, prefix: int = 0
) -> SaturationReport:
    """The saturation point of prompts after about so long a prefix, with all that its picture shows."""
    of = points.prefill_points(trace, prefix)
    return _report(of, _other_prefills(trace, of.points), q, resamples)


def decode_report(trace: TraceLike, q: float = 0.95, resamples: int = RESAMPLES) -> SaturationReport:
    """The same of decode rows alone: tokens are rows."""
    of, *others = [each for each in points.trace_points(trace) if each.layout.rows is Rows.DECODE] or [
        points.decode_points(trace)
    ]
    rest = pl.concat([of.points.clear(), *(other.points for other in others)])
    return _report(of, rest.sort("forward_id"), q, resamples)


def _report(of: LayoutPoints, others: pl.DataFrame, q: float, resamples: int) -> SaturationReport:
    found, sizes = saturation_of(of, q, resamples=resamples), _sizes(_with_rates(of.points))
    told = found, _with_rates(of.points), _with_rates(others)
    if found.curve is None:
        unknown = pl.lit(None, pl.Float64)
        sizes = sizes.with_columns(
            fit_tokens_per_s=unknown, share=unknown, residual=unknown, in_dip=pl.lit(None, pl.Boolean)
        )
        return SaturationReport(*told, sizes, _frame_of(np.empty(0), np.empty(0)))
    grid = np.geomspace(sizes["tokens"][0], sizes["tokens"][-1], _CURVE_POINTS)
    rates = found.curve.throughput(grid)
    fits = found.curve.throughput(sizes["tokens"].to_numpy().astype(np.float64))
    best = float(max(rates.max(), fits.max()))
    dipped = [pl.col("tokens").is_between(dip.first, dip.last) for dip in found.dips]
    sizes = sizes.with_columns(fit_tokens_per_s=pl.Series(fits), share=pl.Series(fits / best)).with_columns(
        residual=pl.col("tokens_per_s") / pl.col("fit_tokens_per_s") - 1,
        in_dip=pl.any_horizontal(pl.lit(False), *dipped),
    )
    misses = np.log1p(sizes["residual"].to_numpy())
    residual = float(np.sqrt(np.mean(misses**2)))
    return SaturationReport(*told, sizes, _frame_of(grid, rates), best, residual)


def _with_rates(points: pl.DataFrame) -> pl.DataFrame:
    return points.with_columns(tokens_per_s=pl.col("tokens") / pl.col("time_ns") * 1e9)


def _other_prefills(trace: TraceLike, taken: pl.DataFrame) -> pl.DataFrame:
    """Forwards with prompt tokens that are none of `taken`."""
    forwards = frame(trace, "forwards").filter(
        (pl.col("mode") != ForwardMode.DECODE.value)
        & (pl.col("extend_tokens") > 0)
        & (pl.col("end_ns") > pl.col("start_ns"))
    )
    return (
        forwards.join(taken, on="forward_id", how="anti")
        .select(
            "forward_id",
            tokens=pl.col("extend_tokens") + pl.col("decode_tokens").fill_null(0),
            time_ns=pl.col("end_ns") - pl.col("start_ns"),
        )
        .sort("forward_id")
    )


def _sizes(points: pl.DataFrame) -> pl.DataFrame:
    return (
        points.group_by("tokens")
        .agg(
            forwards=pl.len(),
            time_ns=pl.col("time_ns").median(),
            low_ns=pl.col("time_ns").min(),
            high_ns=pl.col("time_ns").max(),
            tokens_per_s=pl.col("tokens_per_s").median(),
        )
        .sort("tokens")
    )


def _frame_of(tokens: Array, rates: Array) -> pl.DataFrame:
    return pl.DataFrame({"tokens": tokens, "tokens_per_s": rates, "time_ns": tokens / rates * 1e9})
