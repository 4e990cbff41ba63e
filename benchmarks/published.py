"""Simulated forwards beside published measurements, with the ratio, whatever it shows.

    python benchmarks/published.py

Every row names its source. Ratios are predicted over measured rate, or measured over predicted time: above 1
the simulation is too fast. The cost model's efficiencies are partly taken from the same kinds of sources
(profiler/cost_table.py), so GEMM and attention rows say how well one number stands for a whole curve.
"""

import sys
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import geometric_mean

# A script's own directory comes first on the path, and holds an engine.py of its own.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from engine.arithmetic import ForwardSums
from engine.clock import VirtualClock
from engine.config import EngineConfig
from engine.engine import Engine
from engine.executors.simulated import SimulatedExecutor
from engine.request import Request, SamplingParams
from engine.shapes import ModelShape
from profiler.cost import OPERATORS, RooflineCost
from profiler.hardware import find_card, peaks_of
from profiler.tensor_parallel import shard

BYTES = 2  # all measurements are in 16 bits
GEMMS = ("QKV", "O", "GATE_UP", "DOWN")
TOKENS = (1, 128, 256, 512, 1024, 2048, 4096)


def shape(name: str, layers: int, hidden: int, heads: tuple[int, int], ffn: int, vocab: int) -> ModelShape:
    """A Llama; `heads` are those of queries and of KV."""
    return ModelShape(
        architecture="llama",
        name=name,
        num_layers=layers,
        hidden_size=hidden,
        num_heads=heads[0],
        num_kv_heads=heads[1],
        head_dim=hidden // heads[0],
        intermediate_size=ffn,
        vocab_size=vocab,
        max_position_embeddings=131072,
        rope_theta=5e5,
        rms_norm_eps=1e-5,
    )


LLAMA_2_7B = shape("Llama-2-7b", 32, 4096, (32, 32), 11008, 32000)
LLAMA_2_70B = shape("Llama-2-70b", 80, 8192, (64, 8), 28672, 32000)
CODELLAMA_34B = shape("CodeLlama-34b", 48, 8192, (64, 8), 22016, 32000)
LLAMA_3_8B = shape("Llama-3-8B", 32, 4096, (32, 8), 14336, 128256)
LLAMA_3_70B = shape("Llama-3-70B", 80, 8192, (64, 8), 28672, 128256)


@dataclass(frozen=True, slots=True)
class GemmRow:
    """TFLOP/s of one layer's GEMMs at TOKENS."""

    model: ModelShape
    gpu: str
    tp: int
    tflops: tuple[float, ...]


VIDUR = "microsoft/vidur data/profiling/compute, MIT"
GEMM_ROWS = (
    GemmRow(LLAMA_2_7B, "A100 SXM4 80GB", 1, (1.52, 147, 206, 218, 212, 217, 224)),
    GemmRow(LLAMA_3_8B, "A100 SXM4 80GB", 1, (1.58, 148, 202, 225, 205, 214, 228)),
    GemmRow(LLAMA_3_8B, "A100 SXM4 80GB", 8, (1.11, 81, 129, 168, 200, 224, 216)),
    GemmRow(LLAMA_3_70B, "A100 SXM4 80GB", 4, (1.50, 142, 187, 209, 204, 228, 234)),
    GemmRow(CODELLAMA_34B, "A100 SXM4 80GB", 1, (1.58, 173, 209, 221, 214, 233, 239)),
    GemmRow(LLAMA_2_7B, "H100 SXM5", 1, (2.59, 288, 399, 631, 734, 768, 746)),
    GemmRow(LLAMA_2_7B, "H100 SXM5", 8, (1.74, 147, 242, 365, 480, 557, 654)),
    GemmRow(LLAMA_2_70B, "H100 SXM5", 1, (2.89, 359, 609, 750, 635, 702, 685)),
    GemmRow(LLAMA_2_70B, "H100 SXM5", 8, (2.44, 261, 453, 599, 660, 706, 751)),
    GemmRow(CODELLAMA_34B, "H100 SXM5", 1, (2.89, 341, 594, 684, 638, 717, 698)),
    GemmRow(LLAMA_2_7B, "A40", 1, (0.56, 57, 79, 101, 105, 111, 110)),
)
NOT_GEMM = "phi-2 is left out: its feed-forward has no gate, which the simulation does not know"

LENGTHS = (512, 1024, 2048, 4096, 8192, 16384)


@dataclass(frozen=True, slots=True)
class AttentionRow:
    """TFLOP/s of attention at LENGTHS on H100 SXM5, head size 128, 16,384 tokens in all."""

    what: str
    operator: str  # of the cost model
    tflops: tuple[float, ...]
    source: str


ATTENTION_ROWS = (
    AttentionRow(
        "FlashAttention-3, no mask",
        "ATTENTION_PREFIX",
        (430.3, 517.1, 565.5, 590.2, 614.2, 620.7),
        "pytorch/benchmark ff65cb67",
    ),
    AttentionRow(
        "FlashAttention-3, no mask, from a chart",
        "ATTENTION_PREFIX",
        (467, 565, 625, 638, 646, 648),
        "subtext.edge.nugit.net/image/e27582d2",
    ),
    AttentionRow(
        "FlashAttention-3, causal, from a chart",
        "ATTENTION_CAUSAL",
        (292, 423, 521, 579, 602, 616),
        "subtext.edge.nugit.net/image/4ec66909; that it is causal follows from its values",
    ),
)


@dataclass(frozen=True, slots=True)
class BatchRow:
    """Milliseconds of a batch that arrives at once."""

    model: ModelShape
    gpu: str
    tp: int
    batch: int
    prompt_tokens: int
    new_tokens: int
    ms: float


BUILDKITE = "vLLM, buildkite.com/vllm/performance-benchmark/builds/9515"
BATCH_ROWS = (
    BatchRow(LLAMA_3_8B, "H200 SXM", 1, 8, 32, 128, 833.4),
    BatchRow(LLAMA_3_70B, "H200 SXM", 4, 8, 32, 128, 2077.5),
)

NO_MATCH = (
    "Decodes blocked by prefill: no published row names a dense model, its GPU and its sizes together. "
    "GLM-5.3, DeepSeek and Qwen3.5 are no dense models, and others leave out the GPU or are of one without "
    "known peaks (RTX 8000, M4)."
)


def main() -> None:
    print(f"GEMMs of a layer, TFLOP/s ({VIDUR})\n{NOT_GEMM}")
    print_curves("tokens", TOKENS, map(gemm_curve, GEMM_ROWS))
    print("\nAttention, TFLOP/s on H100 SXM5, head size 128")
    for row in ATTENTION_ROWS:
        print(f"{row.what}: {row.source}")
    print_curves("length", LENGTHS, map(attention_curve, ATTENTION_ROWS))
    print(f"\nA batch from arrival to its last token ({BUILDKITE})")
    for row in BATCH_ROWS:
        ms = batch_ms(row)
        name = f"{row.model.name}, {row.tp} x {row.gpu}, {row.batch} x {row.prompt_tokens}+{row.new_tokens}"
        print(f"  {name}: predicted {ms:,.1f} ms, measured {row.ms:,.1f} ms, ratio {row.ms / ms:.2f}")
    print(f"\n{NO_MATCH}")


Curve = tuple[str, Sequence[float], Sequence[float]]


def print_curves(head: str, at: Sequence[int], curves: Iterable[Curve]) -> None:
    """Name, predicted and measured rates, and their ratios; last the ratios' mean and range."""
    print(f"{head:>58}" + "".join(f"{n:>8,}" for n in at))
    every: list[float] = []
    for name, predicted, measured in curves:
        ratios = [ours / theirs for ours, theirs in zip(predicted, measured, strict=True)]
        every += ratios
        for label, values, digits in (("predicted", predicted, 3), ("measured", measured, 3)):
            print(f"{name if label == 'predicted' else '':46}{label:>12}" + cells(values, digits))
        print(f"{'':46}{'ratio':>12}" + "".join(f"{ratio:>8.2f}" for ratio in ratios))
    print(f"  ratios: geometric mean {geometric_mean(every):.2f}, from {min(every):.2f} to {max(every):.2f}")


def cells(values: Iterable[float], digits: int) -> str:
    return "".join(f"{value:>8.{digits}g}" for value in values)


def model_of(model: ModelShape, gpu: str, tp: int) -> RooflineCost:
    card, _ = find_card(gpu)
    return RooflineCost(shard(model, tp), peaks_of(card, "bfloat16", tp), BYTES)


def gemm_curve(row: GemmRow) -> Curve:
    """One rank's rate, without collectives, as it was measured."""
    part = shard(row.model, row.tp)
    cost = RooflineCost(part, peaks_of(find_card(row.gpu)[0], "bfloat16"), BYTES)
    flops = 2 * part.num_layers * part.layer_gemm_params
    rates = []
    for tokens in TOKENS:
        took = seconds(cost, ForwardSums(tokens, 0, 0, 0, 0, 0, 0, tokens))
        rates.append(flops * tokens / sum(took[name] for name in GEMMS) / 1e12)
    return f"{row.model.name}, {row.gpu}, tp {row.tp}", rates, row.tflops


def attention_curve(row: AttentionRow) -> Curve:
    """16 heads in one layer; as many sequences as make 16,384 tokens."""
    heads = shape("attention", 1, 2048, (16, 16), 1, 1)
    cost = model_of(heads, "H100 SXM5", 1)
    rates = []
    for length in LENGTHS:
        sequences = 16_384 // length
        square, triangle = sequences * length**2, sequences * length * (length + 1) // 2
        causal = row.operator == "ATTENTION_CAUSAL"
        pairs = triangle if causal else square
        keys = 0 if causal else 16_384
        sums = ForwardSums(16_384, 0, 0, 0 if causal else square, triangle if causal else 0, 0, keys, 16_384)
        rates.append(4 * 2048 * pairs / seconds(cost, sums)[row.operator] / 1e12)
    return row.what, rates, row.tflops


def batch_ms(row: BatchRow) -> float:
    """The engine's own schedule of the batch, overlap on."""
    config = EngineConfig().resolve(max_total_tokens=100_000, context_length=10_000)
    clock = VirtualClock()
    executor = SimulatedExecutor(model_of(row.model, row.gpu, row.tp), clock, row.model.vocab_size)
    sampling = SamplingParams(row.new_tokens, ignore_eos=True)
    prompts = [array("i", [i] * row.prompt_tokens) for i in range(row.batch)]
    Engine(config, executor, clock=clock).run(
        [Request(i, f"r{i}", prompt, sampling) for i, prompt in enumerate(prompts)]
    )
    return clock.now_ns() / 1e6


def seconds(cost: RooflineCost, sums: ForwardSums) -> dict[str, float]:
    return dict(zip(OPERATORS, cost.operator_seconds(sums), strict=True))


if __name__ == "__main__":
    main()
