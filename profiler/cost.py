"""`RooflineCost`: how long a forward takes on given peaks, operator by operator.

An operator takes the longer of computing and moving, max(FLOPs / (c · peak FLOP/s), bytes / (b · peak
bytes/s)), with the efficiencies c and b of `profiler.cost_table`; operators run one after another.
Williams, Waterman and Patterson, "Roofline: an insightful visual performance model", 2009, for each operator.
"""

from typing import Any, NamedTuple

from engine.arithmetic import ForwardSums, forward_sums
from engine.batch import ForwardBatch
from engine.errors import ConfigError
from engine.peaks import Peaks
from engine.shapes import ModelShape
from profiler.cost_profile import GemmProfile
from profiler.cost_table import EFFICIENCIES, OVERHEADS, cost_table
from profiler.roofs import Collectives, Roof, roof_of

__all__ = ["MAX_TIME_S", "OPERATORS", "RooflineCost", "elementwise_elements"]

OPERATORS = (
    *("QKV", "O", "GATE_UP", "DOWN", "HEAD"),
    *("ATTENTION_PREFIX", "ATTENTION_CAUSAL", "ATTENTION_DECODE"),
    *("ELEMENTWISE", "COLLECTIVE", "OVERHEAD"),
)
"""The parts of a forward: matrix multiplications, the rectangle and the triangle of extend rows, decode rows,
norms and the like, all-reduces between devices, and time that no roofline holds."""

_ROOFS_AFTER_GEMMS = ("GEMM", "ATTENTION_PREFIX", "ATTENTION_CAUSAL", "ATTENTION_DECODE", "ELEMENTWISE")
"""The kinds of kernel of HEAD and of the operators after it."""

MAX_TIME_S = 10**8
"""No forward takes longer, 3 years: a trace has 64 bits for nanoseconds, and sums of times must fit, too."""


class Matrix(NamedTuple):
    """A linear layer, over all layers of the model, in elements."""

    params: int
    moved: int  # of one token, in and out


class RooflineCost:
    """A `CostModel` of one rank's share of a dense model.

    `shape` is that share (`profiler.tensor_parallel.shard`) and `peaks` are one device's; weights, KV and
    activations have elements of `element_bytes`. A measured profile replaces the GEMMs' efficiencies.
    """

    def __init__(
        self, shape: ModelShape, peaks: Peaks, element_bytes: int, *, profile: GemmProfile | None = None
    ) -> None:
        layers, hidden, ffn = shape.num_layers, shape.hidden_size, shape.intermediate_size
        q, kv = shape.q_size, shape.kv_size
        self._peaks = peaks
        self._bytes = element_bytes
        self._profile = profile
        self._roofs = {kind: roof_of(kind, peaks) for kind in EFFICIENCIES}
        self._collectives = Collectives(peaks, layers, hidden, shape.vocab_size, element_bytes)
        self._other_roofs = tuple(self._roofs[kind] for kind in _ROOFS_AFTER_GEMMS)
        self._matrices = (
            _matrix(hidden, q + 2 * kv, layers),
            _matrix(q, hidden, layers),
            _matrix(hidden, 2 * ffn, layers),
            _matrix(ffn, hidden, layers),
        )
        self._head = _matrix(hidden, shape.vocab_size, 1)
        self._pair_flops = 4 * q * layers
        self._q_bytes = q * layers * element_bytes  # a token's queries, or its attention output
        self._kv_bytes = 2 * kv * layers * element_bytes
        self._elementwise_bytes = element_bytes * (layers * elementwise_elements(shape) + 2 * hidden)
        self._overhead_s = (layers * OVERHEADS.layer_ns + OVERHEADS.forward_ns) / 1e9

    def forward_ns(self, batch: ForwardBatch) -> int:
        """Nanoseconds that a forward takes. Raises ConfigError if that is more than MAX_TIME_S."""
        return round(self.seconds(forward_sums(batch)) * 1e9)

    def seconds(self, sums: ForwardSums) -> float:
        """Seconds of a forward with these sums. Raises ConfigError if that is more than MAX_TIME_S."""
        parts_s = self.operator_seconds(sums)
        whole_s = sum(parts_s)
        if not whole_s <= MAX_TIME_S:
            longest = OPERATORS[parts_s.index(max(parts_s))]
            raise ConfigError(
                f"a forward takes {whole_s:.3g} s of simulated time, most of it {longest}, and the most is "
                f"{MAX_TIME_S:.0e} s: give higher peaks, a --profile of shorter times, or less work"
            )
        return whole_s

    def operator_seconds(self, sums: ForwardSums) -> tuple[float, ...]:
        """Seconds of each of OPERATORS, in their order."""
        gemm = self._gemm_roof(sums.tokens)
        roofs = (gemm, gemm, gemm, gemm, *self._other_roofs)
        work = self.operator_work(sums)
        parts = tuple(roof.seconds(*part) for roof, part in zip(roofs, work, strict=True))
        collective = self._collectives.seconds(sums.tokens, sums.rows_with_logits)
        return (*parts, collective, self._overhead_s)

    def operator_work(self, sums: ForwardSums) -> tuple[tuple[int, int], ...]:
        """FLOPs and bytes of each of OPERATORS but the last two, in their order."""
        tokens, logits = sums.tokens, sums.rows_with_logits
        head = self._linear(self._head, logits) if logits else (0, 0)
        prefix = self._pair_flops * sums.pairs_prefix, self._kv_bytes * sums.prefix_tokens
        causal = (
            self._pair_flops * sums.pairs_causal,
            (2 * self._q_bytes + self._kv_bytes) * sums.extend_tokens,
        )
        decode = (
            self._pair_flops * sums.pairs_decode,
            self._kv_bytes * sums.pairs_decode + 2 * self._q_bytes * sums.decode_tokens,
        )
        matrices = (self._linear(matrix, tokens) for matrix in self._matrices)
        return (*matrices, head, prefix, causal, decode, (0, self._elementwise_bytes * tokens))

    def describe(self) -> dict[str, Any]:
        """The model's assumptions as plain values; the peaks are the caller's."""
        profile = self._profile.describe() if self._profile else None
        return {"kind": "roofline", **cost_table(), "gemm_profile": profile}

    def _linear(self, matrix: Matrix, tokens: int) -> tuple[int, int]:
        return 2 * matrix.params * tokens, self._bytes * (matrix.params + matrix.moved * tokens)

    def _gemm_roof(self, tokens: int) -> Roof:
        if self._profile is None:
            return self._roofs["GEMM"]
        share = self._profile.efficiency(tokens)
        return Roof(self._peaks.flops_per_s * share, self._peaks.bytes_per_s * share)


def _matrix(inputs: int, outputs: int, layers: int) -> Matrix:
    return Matrix(layers * inputs * outputs, layers * (inputs + outputs))


def elementwise_elements(shape: ModelShape) -> int:
    """Elements that one token moves in one layer between GEMMs and attention.

    A norm with its residual addition reads two rows of hidden size and writes two; the rotary kernel reads
    and writes q and k, and v on its way to the KV pool; the activation reads gate and up and writes their
    product; norms of q and k read and write both.
    """
    q, kv = shape.q_size, shape.kv_size
    qk_norm = 2 * (q + kv) if shape.qk_norm else 0
    norms = 4 * shape.hidden_size * shape.norms_per_layer
    return norms + 2 * q + 4 * kv + 3 * shape.intermediate_size + qk_norm
