"""The FLOPs of forwards by three conventions, so that numbers seen elsewhere can be reconciled with these.

- exact: `engine.arithmetic`, every matrix product, every pair of attention, the head where logits are needed;
- SGLang's estimator (behind its `estimated_flops_per_gpu_total`): the same without the head. Its estimate of
  bytes read takes the layers' weights once a token, which no batch does;
- naive: 2 · parameters · tokens, as papers and throughput tables count: no attention, and the embedding as if
  it were multiplied.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from profiler.roofline import mode_name
from profiler.tables import TraceLike, frame

__all__ = ["CONVENTIONS", "FlopsConventions", "flops_conventions"]

CONVENTIONS = ("exact", "sglang", "naive")

_ATTENTION = ("flops_attention_extend", "flops_attention_decode")
_ELEMENT_BYTES = {"float32": 4, "bfloat16": 2, "float16": 2}


@dataclass(frozen=True, slots=True)
class FlopsConventions:
    """FLOPs of one device by each convention; None is unknown.

    `forwards` has one row a forward, in order of forward_id: forward_id, mode, tokens, `exact`, `sglang`,
    `naive`; `sglang_ratio` and `naive_ratio`, to exact; `weight_bytes`, that must be read, and
    `sglang_weight_bytes`.
    `total` has the same sums over all forwards, None where one of the parts is unknown.
    """

    forwards: pl.DataFrame
    total: Mapping[str, int | None]
    params: int | None  # of one device, as `naive` counts them

    def ratio(self, convention: str) -> float | None:
        """A convention's total as a multiple of the exact one."""
        exact, other = self.total["exact"], self.total[convention]
        return other / exact if exact and other is not None else None


def flops_conventions(trace: TraceLike) -> FlopsConventions:
    """The three conventions over all forwards of a trace."""
    params = _params(trace.meta)
    size = _ELEMENT_BYTES.get(str(_mapping(trace.meta, "model").get("dtype")))
    linear, head = pl.col("flops_linear").cast(pl.Int64), pl.col("flops_head").cast(pl.Int64)
    attention = pl.sum_horizontal([pl.col(name).cast(pl.Int64) for name in _ATTENTION], ignore_nulls=False)
    tokens = pl.col("extend_tokens").cast(pl.Int64) + pl.col("decode_tokens")
    forwards = (
        frame(trace, "forwards")
        .select(
            "forward_id",
            mode=mode_name(),
            tokens=tokens,
            exact=linear + attention + head,
            sglang=linear + attention,
            naive=2 * pl.lit(params, pl.Int64) * tokens,
            weight_bytes=pl.col("bytes_weights").cast(pl.Int64),
            sglang_weight_bytes=linear // 2 * pl.lit(size, pl.Int64),
        )
        .sort("forward_id")
    )
    exact = pl.when(pl.col("exact") > 0).then(pl.col("exact"))
    ratios = {f"{name}_ratio": pl.col(name) / exact for name in CONVENTIONS[1:]}
    names = (*CONVENTIONS, "weight_bytes", "sglang_weight_bytes")
    return FlopsConventions(
        forwards.with_columns(**ratios), {name: _total(forwards[name]) for name in names}, params
    )


def _total(values: pl.Series) -> int | None:
    """Their sum as a whole number of any size; None if one is unknown or there is none."""
    return sum(values.to_list()) if len(values) and not values.null_count() else None


def _params(meta: Mapping[str, Any]) -> int | None:
    """Parameters of one device: all, or, where several share the model, what its weights' bytes tell."""
    model = _mapping(meta, "model")
    size = _ELEMENT_BYTES.get(str(model.get("dtype")))
    on_device = model.get("weight_bytes_per_device")
    params = on_device // size if size and isinstance(on_device, int) else model.get("num_params")
    return params if type(params) is int and params > 0 else None


def _mapping(meta: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = meta.get(key)
    return value if isinstance(value, Mapping) else {}
