"""What is expected of a forward's terms before any was measured: the model's shape under known peaks."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engine.arithmetic import kv_bytes_per_token
from engine.shapes import ModelShape
from profiler.cost import elementwise_elements
from profiler.cost_table import EFFICIENCIES, OVERHEADS
from profiler.forward_fit_curve import TERMS, ForwardCurve

__all__ = ["Prior", "Rates", "Work", "expected", "prior_of", "work_of"]

Array = NDArray[np.float64]

_SHARPNESS = 4.0
# Standard deviations of logarithms: how far a term may lie from what is expected of it.
_SPREAD = {
    "fixed": 1.6,
    "weights": 0.7,
    "compute": 0.7,
    "sharpness": 1.0,
    "elementwise": 0.7,
    "behind_prefix": 1.6,
    "pairs_prefix": 0.7,
    "pairs_causal": 0.7,
    "pairs_decode": 0.7,
    "head": 0.7,
    "rows_with_logits": 0.5,
}
_TOGETHER = 0.35  # of the ratio of rectangle to triangle: one kernel computes both


@dataclass(frozen=True, slots=True)
class Rates:
    """Peaks that a machine has, and where they are from."""

    flops_per_s: float
    bytes_per_s: float
    source: str


@dataclass(frozen=True, slots=True)
class Work:
    """What one unit of each term computes or moves, of one rank's part of a model."""

    flops: Mapping[str, float]
    moved: Mapping[str, float]  # bytes


@dataclass(frozen=True, slots=True)
class Prior:
    """A normal distribution of `ForwardCurve.vector`: (rows, terms) @ vector = target, with error 1."""

    rows: Array
    target: Array

    def misses(self, vector: Array) -> Array:
        """(rows,) errors of a vector, in standard deviations."""
        errors: Array = self.rows @ vector - self.target
        return errors

    def precision(self) -> Array:
        """(terms, terms) the inverse of its covariance."""
        inverse: Array = self.rows.T @ self.rows
        return inverse


def work_of(shape: ModelShape, element_bytes: int) -> Work:
    """FLOPs and bytes behind one unit of each term."""
    pair = 4.0 * shape.q_size * shape.num_layers
    layers = float(shape.num_layers)
    return Work(
        flops={
            "compute": 2 * layers * shape.layer_gemm_params,
            "pairs_prefix": pair,
            "pairs_causal": pair,
            "rows_with_logits": 2.0 * shape.head_params,
        },
        moved={
            "weights": element_bytes * layers * shape.layer_params,
            "elementwise": element_bytes * layers * elementwise_elements(shape),
            "head": float(element_bytes * shape.head_params),
            "behind_prefix": 3 * layers * shape.q_size * element_bytes,  # queries once more, two outputs
            "pairs_decode": float(kv_bytes_per_token(shape, element_bytes)),
        },
    )


def expected(work: Work, rates: Rates, layers: int) -> ForwardCurve:
    """The terms under these rates, with the efficiencies of `profiler.cost_table`."""
    kinds = {"pairs_prefix": "ATTENTION_PREFIX", "pairs_causal": "ATTENTION_CAUSAL"}
    kinds |= {"pairs_decode": "ATTENTION_DECODE", "behind_prefix": "ELEMENTWISE"}
    kinds["elementwise"] = "ELEMENTWISE"
    seconds = {}
    for term, flops in work.flops.items():
        seconds[term] = flops / rates.flops_per_s / (EFFICIENCIES[kinds.get(term, "GEMM")].compute or 1.0)
    for term, moved in work.moved.items():
        seconds[term] = moved / rates.bytes_per_s / EFFICIENCIES[kinds.get(term, "GEMM")].memory
    fixed = (layers * OVERHEADS.layer_ns + OVERHEADS.forward_ns) / 1e9
    return ForwardCurve(fixed=fixed, sharpness=_SHARPNESS, **seconds)


def prior_of(curve: ForwardCurve) -> Prior:
    """Each term near that of `curve`, and rectangle and triangle near each other."""
    rows = np.diag([1 / _SPREAD[name] for name in TERMS])
    ratio = np.zeros(len(TERMS))
    ratio[TERMS.index("pairs_prefix")], ratio[TERMS.index("pairs_causal")] = 1 / _TOGETHER, -1 / _TOGETHER
    rows = np.vstack([rows, ratio])
    return Prior(rows, rows @ curve.vector())
