"""`PaperCost`: how long a forward takes on a device's data sheet, for any decoder that can be read.

The roofline of `profiler.cost`, operator by operator and with the same shares of the peaks, over kinds of
layers: for a dense model without a window its seconds are those of `RooflineCost`.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from engine.arithmetic import ForwardSums, forward_sums
from engine.batch import ForwardBatch
from engine.errors import ConfigError
from engine.peaks import Peaks
from profiler.cost import MAX_TIME_S, OPERATORS
from profiler.cost_profile import GemmProfile
from profiler.cost_table import EFFICIENCIES, OVERHEADS, cost_table
from profiler.paper.elements import ACTIVATION_BYTES, ElementBytes
from profiler.paper.feed_forward import Experts
from profiler.paper.layers import Matrix
from profiler.paper.model import Attention, PaperModel
from profiler.paper.seen import Seen, in_batch, in_sums
from profiler.roofs import Collectives, Roof, roof_of

__all__ = ["PAPER_OPERATORS", "PaperCost"]

PAPER_OPERATORS = (*OPERATORS, "ROUTER", "EXPERTS_UP", "EXPERTS_DOWN")
"""The parts of a forward. QKV and O are all of a layer's projections; shared experts are GATE_UP and DOWN."""

ATTENTION = OPERATORS[5:8]


class PaperCost:
    """A `ForwardCostModel` of one device's part of a model; `peaks` are one device's, for 16 bits.

    `gemm_flops_per_s` is the rate of the layers' matrices where these are narrower. A measured profile
    replaces the efficiencies of the layers' matrices and, at the tokens that an expert gets, of experts.
    """

    def __init__(
        self,
        model: PaperModel,
        peaks: Peaks,
        size: ElementBytes,
        *,
        gemm_flops_per_s: float | None = None,
        profile: GemmProfile | None = None,
    ) -> None:
        hidden = model.hidden_size
        self._peaks = peaks
        self._size = size
        self._profile = profile
        self._gemm_flops_per_s = gemm_flops_per_s or peaks.flops_per_s
        self._roofs = {kind: roof_of(kind, peaks) for kind in EFFICIENCIES}
        self._gemm = roof_of("GEMM", peaks, self._gemm_flops_per_s)
        self._matrices = _merged(model, size)
        self._mixtures = _merged_experts(model, size)
        self._attentions = _merged_attentions(model)
        self._head = _Gemm("HEAD", model.head_params, hidden + model.vocab_size, ACTIVATION_BYTES)
        self._windows = tuple({attention.window for attention, _ in self._attentions})
        self._elementwise = 2 * hidden + sum(n * layer.elementwise(hidden) for layer, n in model.layers)
        self._collectives = Collectives(peaks, model.num_layers, hidden, model.vocab_size, ACTIVATION_BYTES)
        self._overhead_s = (model.num_layers * OVERHEADS.layer_ns + OVERHEADS.forward_ns) / 1e9

    def seconds(self, sums: ForwardSums) -> float:
        """Seconds of a forward with these sums. Raises ConfigError if that is more than MAX_TIME_S.

        Of several rows a sliding window sees what `profiler.paper.seen` says.
        """
        return self._whole(sums, {window: in_sums(sums, window) for window in self._windows})

    def forward_ns(self, batch: ForwardBatch) -> int:
        """Nanoseconds of a planned forward, each row seen by itself. Raises ConfigError as `seconds` does."""
        sums = forward_sums(batch)
        seen = {window: in_batch(batch, sums, window) for window in self._windows}
        return round(self._whole(sums, seen) * 1e9)

    def operator_seconds(self, sums: ForwardSums) -> Mapping[str, float]:
        """Seconds of each of PAPER_OPERATORS, in their order."""
        return self._parts(sums, {window: in_sums(sums, window) for window in self._windows})

    def bound_seconds(self, tokens: int) -> tuple[float, float]:
        """Seconds to multiply so many tokens by the layers' matrices, and to read these once, each by itself.

        Experts count as far as the tokens take them.
        """
        narrow = [gemm for gemm in self._matrices if not gemm.kept]
        flops = sum(gemm.flops(tokens) for gemm in narrow)
        read = sum(gemm.size * gemm.params for gemm in narrow)
        for gemm, routed, covered in self._experts(tokens):
            flops += gemm.flops(routed)
            read += gemm.size * gemm.params * covered
        return flops / self._gemm.flops_per_s, read / self._gemm.bytes_per_s

    def describe(self) -> dict[str, Any]:
        """The model's assumptions as plain values; the peaks are the caller's."""
        profile = self._profile.describe() if self._profile else None
        return {"kind": "paper", **cost_table(), "gemm_profile": profile}

    def _whole(self, sums: ForwardSums, seen: Mapping[int | None, Seen]) -> float:
        parts_s = self._parts(sums, seen)
        whole_s = sum(parts_s.values())
        if whole_s <= MAX_TIME_S:
            return whole_s
        longest = max(parts_s, key=lambda name: parts_s[name])
        raise ConfigError(
            f"a forward takes {whole_s:.3g} s on paper, most of it {longest}, and the most is "
            f"{MAX_TIME_S:.0e} s: give higher peaks, a --profile of shorter times, or a smaller model"
        )

    def _parts(self, sums: ForwardSums, seen: Mapping[int | None, Seen]) -> dict[str, float]:
        parts = dict.fromkeys(PAPER_OPERATORS, 0.0)
        tokens, logits = sums.tokens, sums.rows_with_logits
        gemm = self._measured(tokens)
        for matrix in self._matrices:
            roof = self._roofs["GEMM"] if matrix.kept else gemm
            parts[matrix.operator] += roof.seconds(matrix.flops(tokens), matrix.bytes(tokens))
        for matrix, routed, covered in self._experts(tokens):
            moved = matrix.size * matrix.params * covered + ACTIVATION_BYTES * matrix.moved * routed
            roof = self._measured(routed / covered) if covered else gemm
            parts[matrix.operator] += roof.seconds(matrix.flops(routed), moved)
        if logits:
            parts["HEAD"] = self._roofs["GEMM"].seconds(self._head.flops(logits), self._head.bytes(logits))
        roofs = self._roofs | {"GEMM": gemm}
        for attention, layers in self._attentions:
            part = attention.seconds(seen[attention.window], layers, self._size, roofs)
            for name, seconds in zip(ATTENTION, part, strict=True):
                parts[name] += seconds
        moved = ACTIVATION_BYTES * self._elementwise * tokens
        parts["ELEMENTWISE"] = self._roofs["ELEMENTWISE"].seconds(0, moved)
        parts["COLLECTIVE"] = self._collectives.seconds(tokens, logits)
        parts["OVERHEAD"] = self._overhead_s
        return parts

    def _experts(self, tokens: int) -> "Iterator[tuple[_Gemm, int, float]]":
        """Each kind of matrix of routed experts, the tokens that pass any, and how many experts are read."""
        for experts, matrices in self._mixtures:
            routed, covered = tokens * experts.per_token, experts.coverage(tokens)
            for gemm in matrices:
                yield gemm, routed, covered

    def _measured(self, tokens: float) -> Roof:
        """What the layers' matrices reach at so many tokens."""
        if self._profile is None:
            return self._gemm
        share = self._profile.efficiency(max(1, round(tokens)))
        return Roof(self._gemm_flops_per_s * share, self._peaks.bytes_per_s * share)


class _Gemm(NamedTuple):
    """A matrix over all layers that have it, in elements."""

    operator: str
    params: int
    moved: int  # of one token, in and out
    size: float  # bytes of a weight
    kept: bool = False

    @classmethod
    def of(cls, matrix: Matrix, count: int, size: float) -> "_Gemm":
        moved = count * (matrix.inputs + matrix.outputs)
        return cls(matrix.operator, count * matrix.params, moved, size, matrix.kept)

    def flops(self, tokens: int) -> int:
        return 2 * self.params * tokens

    def bytes(self, tokens: int) -> float:
        return self.size * self.params + ACTIVATION_BYTES * self.moved * tokens


def _merged(model: PaperModel, size: ElementBytes) -> Sequence[_Gemm]:
    """Equal matrices of all layers as one: in a roofline they take the longer of both limits together."""
    counts: Counter[Matrix] = Counter()
    for layer, count in model.layers:
        for matrix in layer.matrices(model.hidden_size):
            counts[matrix] += count
    return [
        _Gemm.of(matrix, count, ACTIVATION_BYTES if matrix.kept else size.matrices)
        for matrix, count in counts.items()
    ]


def _merged_experts(model: PaperModel, size: ElementBytes) -> Sequence[tuple[Experts, Sequence[_Gemm]]]:
    """Mixtures of one kind with their experts' matrices."""
    counts: Counter[Experts] = Counter()
    for _, experts, count in model.mixtures():
        counts[experts] += count
    return [
        (
            experts,
            [_Gemm.of(matrix, count, size.experts) for matrix in experts.expert_matrices(model.hidden_size)],
        )
        for experts, count in counts.items()
    ]


def _merged_attentions(model: PaperModel) -> Sequence[tuple[Attention, int]]:
    """Kinds of attention, and how many layers have each."""
    counts: Counter[Attention] = Counter()
    for layer, count in model.layers:
        counts[layer.attention] += count
    return [*counts.items()]
