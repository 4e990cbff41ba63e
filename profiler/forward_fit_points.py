"""The forwards of a trace beside what a model says of them, for pictures of a fit and its residuals."""

import polars as pl

from profiler.forward_features import LAYOUTS, forwards_of
from profiler.forward_model import ForwardModel
from profiler.tables import TraceLike

__all__ = ["fit_points"]


def fit_points(trace: TraceLike, model: ForwardModel) -> pl.DataFrame:
    """One row a forward that a fit can use, in order of forward_id.

    - forward_id; layout, of `profiler.forward_features.LAYOUTS`; tokens, of all rows; prefix_tokens, before a
      new token of extend rows on average; decode_tokens; pairs_decode;
    - time_s on the device; fit_s; ratio, time_s / fit_s.
    """
    forwards = forwards_of(trace, model.setting.shape)
    columns = {
        "forward_id": forwards.forward_id,
        "layout": [LAYOUTS[at] for at in forwards.layout.tolist()],
        "tokens": forwards.column("tokens").astype(int),
        "prefix_tokens": forwards.prefix_tokens.astype(int),
        "decode_tokens": forwards.decode_tokens.astype(int),
        "pairs_decode": forwards.column("pairs_decode").astype(int),
        "time_s": forwards.seconds,
        "fit_s": model.curve.seconds(forwards.features),
    }
    schema = {"layout": pl.String}
    points = pl.DataFrame(columns, schema_overrides=schema)
    return points.with_columns(ratio=pl.col("time_s") / pl.col("fit_s")).sort("forward_id")
