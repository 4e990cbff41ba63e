"""Which operator each kernel of replayed CUDA graphs is: by its name, and by its place among the GEMMs.

A graph is replayed by one launch, so no range of the host tells its kernels apart. But a dense decoder runs
its matrix products in one order: QKV, O, GATE_UP and DOWN of each layer, then the head. A decode forward is
one graph; pieces between attentions, one after another, are the same without attention and head. Where
kernels do not come so, the matrix products among them stay unknown.
"""

import re
from collections.abc import Sequence

from engine.operators import Operator

__all__ = ["operators_in_order"]

_CYCLE = (Operator.QKV, Operator.O, Operator.GATE_UP, Operator.DOWN)
_SPLIT_SUM = re.compile(r"split_?k.*reduce|reduce.*split_?k", re.IGNORECASE)
_KINDS = (  # the first that fits counts: attention kernels of libraries may have gemm in their names too
    ("extend", re.compile(r"extend", re.IGNORECASE)),
    ("decode", re.compile(r"attention|attn|flash|fmha|decode|merge_", re.IGNORECASE)),
    ("norm", re.compile(r"norm", re.IGNORECASE)),
    ("copy", re.compile(r"store|rotate|rotary|rope|index_copy|memcpy|memset", re.IGNORECASE)),
    ("gemm", re.compile(r"gemm|gemv|cutlass|cublas|nvjet|matmul|xmma", re.IGNORECASE)),
)
_ATTENTION = ("extend", "decode")
_BY_KIND = {
    "extend": Operator.ATTENTION_EXTEND,
    "decode": Operator.ATTENTION_DECODE,
    "norm": Operator.NORM,
    "copy": Operator.COPY,
}

Place = tuple[Operator, int | None]


def operators_in_order(names: Sequence[str], num_layers: int) -> list[Place]:
    """Operator and layer of each kernel, of the names of a forward's replayed kernels in the order they ran.

    A kernel whose name says nothing belongs to the operator before it, as activations, residual additions
    and sums of split products do.
    """
    kinds = [_kind(name) for name in names]
    if not _is_decoder(kinds, num_layers):
        return [(_BY_KIND.get(kind, Operator.OTHER), None) for kind in kinds]
    places: list[Place] = []
    gemms = 0
    for kind in kinds:
        if kind == "gemm":
            places.append(_product(gemms, num_layers))
            gemms += 1
        elif kind in _BY_KIND:
            places.append((_BY_KIND[kind], _layer_of(kind, gemms, num_layers)))
        else:
            within = 0 < gemms <= 4 * num_layers
            places.append(places[-1] if within else (Operator.OTHER, None))
    return places


def _is_decoder(kinds: Sequence[str], num_layers: int) -> bool:
    """Whether there are as many matrix products as layers need, and attention comes after each QKV."""
    gemms = 0
    for kind in kinds:
        gemms += kind == "gemm"
        if kind in _ATTENTION and gemms % len(_CYCLE) != 1:
            return False
    return gemms in (len(_CYCLE) * num_layers, len(_CYCLE) * num_layers + 1)


def _kind(name: str) -> str:
    if _SPLIT_SUM.search(name):
        return "other"
    return next((kind for kind, pattern in _KINDS if pattern.search(name)), "other")


def _product(number: int, num_layers: int) -> Place:
    layer, at = divmod(number, len(_CYCLE))
    return (Operator.HEAD, None) if layer == num_layers else (_CYCLE[at], layer)


def _layer_of(kind: str, gemms: int, num_layers: int) -> int | None:
    """The layer of a kernel after `gemms` matrix products; norms between two layers are the later one's."""
    layer, at = divmod(gemms, len(_CYCLE))
    between = at == 0 and kind != "norm"
    return None if between or layer == num_layers else layer
