"""The cost on paper: RooflineCost's for dense models, by hand for experts, latents, states and windows."""

from dataclasses import replace
from math import inf
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.arithmetic import ForwardSums
from engine.batch import Role
from engine.errors import ConfigError
from engine.peaks import Peaks
from engine.shapes import ModelShape
from profiler.cost import RooflineCost
from profiler.cost_profile import load_gemm_profile
from profiler.hardware import find_card
from profiler.paper.attention import GroupedAttention
from profiler.paper.cost import PaperCost
from profiler.paper.elements import ElementBytes, element_bytes
from profiler.paper.feed_forward import DenseFeedForward, Experts
from profiler.paper.latent import LatentAttention
from profiler.paper.model import Layer, PaperModel
from profiler.paper.read import model_from
from profiler.paper.recurrent import LinearAttention
from profiler.price_sums import chunk_sums, decode_sums
from profiler.tensor_parallel import shard
from tests.support.forward_rows import forward_of
from tests.support.paper_models import tiny

H200 = Peaks("H200 SXM", "bfloat16", 989e12, 4.8e12, 141 * 2**30, link_bytes_per_s=450e9)
COMPUTE, MEMORY = 0.7 * 989e12, 0.8 * 4.8e12  # that GEMMs reach
WIDE = ElementBytes()
H = 4096

families = st.sampled_from(["LlamaForCausalLM", "Qwen2ForCausalLM", "Qwen3ForCausalLM", "GraniteForCausalLM"])
sizes = st.integers(1, 64)


@st.composite
def dense_configs(draw: st.DrawFn) -> dict[str, Any]:
    kv_heads = draw(st.sampled_from([1, 2, 4, 8]))
    return {
        "architectures": [draw(families)],
        "hidden_size": 64 * draw(sizes),
        "intermediate_size": 64 * draw(sizes),
        "num_hidden_layers": draw(st.integers(1, 90)),
        "num_attention_heads": 8 * draw(st.sampled_from([1, 2, 4])),
        "num_key_value_heads": kv_heads,
        "head_dim": draw(st.sampled_from([64, 80, 128])),
        "vocab_size": 1000 * draw(sizes),
        "attention_bias": draw(st.booleans()),
        "tie_word_embeddings": draw(st.booleans()),
        "max_position_embeddings": 100_000,
    }


rows = st.lists(
    st.one_of(
        st.tuples(st.sampled_from([Role.WHOLE, Role.MIDDLE]), st.integers(0, 90_000), st.integers(1, 9000)),
        st.tuples(st.just(Role.DECODE), st.integers(1, 90_000), st.just(1)),
    ),
    min_size=1,
    max_size=6,
)


@given(dense_configs(), rows, st.sampled_from([1, 2, 8]))
def test_a_dense_model_takes_exactly_what_the_roofline_says(
    config: dict[str, Any], told: list[tuple[Role, int, int]], tp: int
) -> None:
    peaks = replace(H200, num_devices=tp)
    shape = shard(ModelShape.from_hf_config(config, "x"), tp)
    paper = PaperCost(model_from(config, "x").split(tp), peaks, WIDE)
    forward = forward_of(told)
    assert paper.forward_ns(forward) == RooflineCost(shape, peaks, 2).forward_ns(forward)
    sums = chunk_sums(500, 300)
    assert paper.seconds(sums) == RooflineCost(shape, peaks, 2).seconds(sums)


@given(rows)
def test_a_window_that_nothing_outgrows_changes_nothing(told: list[tuple[Role, int, int]]) -> None:
    forward = forward_of(told)
    seen = PaperCost(model_of(grouped(window=100_000)), H200, WIDE)
    assert seen.forward_ns(forward) == PaperCost(model_of(grouped()), H200, WIDE).forward_ns(forward)


def grouped(window: int | None = None) -> GroupedAttention:
    return GroupedAttention(32, 8, 128, window=window)


def model_of(attention: Any, feed_forward: Any = None, layers: int = 10) -> PaperModel:
    layer = Layer(attention, feed_forward or DenseFeedForward(14336))
    return PaperModel("m", "m", H, 32_000, 2**20, ((layer, layers),))


def parts(model: PaperModel, sums: ForwardSums, size: ElementBytes = WIDE, **options: Any) -> Any:
    return PaperCost(model, H200, size, **options).operator_seconds(sums)


# -- mixtures of experts -------------------------------------------------------------------------------------


def test_experts_are_read_as_far_as_the_tokens_take_them() -> None:
    experts = Experts(128, 8, 1536)
    one = 3 * H * 1536 * 2  # bytes of an expert
    told = parts(model_of(grouped(), experts), decode_sums(1, 100))
    up_and_down = told["EXPERTS_UP"] + told["EXPERTS_DOWN"]
    assert up_and_down == pytest.approx(10 * 8 * one / MEMORY, rel=1e-3)  # a token reads its eight
    told = parts(model_of(grouped(), experts), decode_sums(16, 100))
    covered = 128 * (1 - (1 - 8 / 128) ** 16)
    up_and_down = told["EXPERTS_UP"] + told["EXPERTS_DOWN"]
    assert up_and_down == pytest.approx(10 * covered * one / MEMORY, rel=2e-3)


@given(st.integers(1, 300), st.integers(1, 300), st.integers(0, 10**6))
def test_coverage_is_between_a_tokens_own_experts_and_all(experts: int, other: int, tokens: int) -> None:
    per_token = min(experts, other)
    covered = Experts(experts, per_token, 1).coverage(tokens)
    least = per_token if tokens else 0
    assert least - 1e-6 <= covered <= min(experts, per_token * tokens) + 1e-6


def test_many_tokens_multiply_their_experts_and_the_shared_part() -> None:
    experts = Experts(64, 8, 1024, shared_width=2048)
    told = parts(model_of(grouped(), experts), chunk_sums(16_384))
    assert told["EXPERTS_UP"] == pytest.approx(10 * 2 * 16_384 * 8 * H * 2 * 1024 / COMPUTE)
    assert told["EXPERTS_DOWN"] == pytest.approx(10 * 2 * 16_384 * 8 * H * 1024 / COMPUTE)
    assert told["GATE_UP"] == pytest.approx(10 * 2 * 16_384 * H * 2 * 2048 / COMPUTE)
    assert told["ROUTER"] > 0


def test_narrow_weights_are_read_faster_and_multiplied_at_their_own_peak() -> None:
    model = model_of(grouped(), Experts(64, 8, 1024))
    fp8 = element_bytes("fp8", "bf16", None, "m")
    narrow, wide = (
        parts(model, decode_sums(1, 1), fp8, gemm_flops_per_s=1978e12),
        parts(model, decode_sums(1, 1)),
    )
    for name in ("QKV", "O", "EXPERTS_UP", "EXPERTS_DOWN"):
        assert narrow[name] == pytest.approx(wide[name] / 2, rel=2e-3)
    many = chunk_sums(16_384)
    narrow, wide = parts(model, many, fp8, gemm_flops_per_s=1978e12), parts(model, many)
    assert narrow["QKV"] == pytest.approx(wide["QKV"] / 2)
    for name in ("ROUTER", "HEAD", "ATTENTION_CAUSAL"):  # stay in 16 bits
        assert narrow[name] == wide[name]


def test_mxfp4_narrows_experts_alone_and_not_their_multiplication() -> None:
    model = model_of(grouped(), Experts(64, 8, 1024))
    mxfp4 = element_bytes("auto", "bf16", "mxfp4", "m")
    few, wide = parts(model, decode_sums(1, 1), mxfp4), parts(model, decode_sums(1, 1))
    assert few["EXPERTS_UP"] == pytest.approx(wide["EXPERTS_UP"] * 4.25 / 16, rel=1e-2)
    assert few["QKV"] == wide["QKV"]
    many = chunk_sums(16_384)
    assert parts(model, many, mxfp4)["EXPERTS_UP"] == pytest.approx(parts(model, many)["EXPERTS_UP"])


# -- latent attention ----------------------------------------------------------------------------------------

LATENT = LatentAttention(128, 1536, 512, 128, 64, 128)


def test_new_tokens_are_expanded_and_decode_rows_absorbed() -> None:
    endless = replace(H200, bytes_per_s=inf)
    told = PaperCost(model_of(LATENT, layers=1), endless, WIDE).operator_seconds(chunk_sums(8192))
    triangle = 8192 * 8193 // 2
    assert told["ATTENTION_CAUSAL"] == pytest.approx(2 * 128 * (192 + 128) * triangle / (0.55 * 989e12))
    assert told["ATTENTION_PREFIX"] == 0
    told = PaperCost(model_of(LATENT, layers=1), endless, WIDE).operator_seconds(decode_sums(4, 1000))
    assert told["ATTENTION_DECODE"] == pytest.approx(2 * 128 * (576 + 512) * 4000 / (0.6 * 989e12))


def test_a_decode_row_reads_latents_that_all_heads_share() -> None:
    told = parts(model_of(LATENT), decode_sums(1, 100_000))
    absorbed = 10 * 2 * 128 * (576 + 512) * 100_000 / (0.6 * 989e12)
    read = (10 * 576 * 2 * 100_000) / (0.8 * 4.8e12)
    assert told["ATTENTION_DECODE"] == pytest.approx(max(absorbed, read), rel=1e-2)


def test_a_prefix_is_absorbed_by_a_few_tokens_and_expanded_by_many() -> None:
    endless = replace(H200, bytes_per_s=inf)

    def prefix(tokens: int) -> float:
        cost = PaperCost(model_of(LATENT, layers=1), endless, WIDE)
        return cost.operator_seconds(chunk_sums(tokens, 30_000))["ATTENTION_PREFIX"]

    project = 2 * 512 * 128 * 256 / COMPUTE  # a token through the matrix that expands latents
    tiles = 0.6 * 989e12
    few, many = 16, 4096
    assert prefix(few) == pytest.approx(few * project + 2 * 128 * 1088 * few * 30_000 / tiles)
    assert prefix(many) == pytest.approx(30_000 * project + 2 * 128 * 320 * many * 30_000 / tiles)


# -- linear attention ----------------------------------------------------------------------------------------

LINEAR = LinearAttention(16, 48, 128, 128, 4)


def test_a_state_is_read_and_written_once_a_row_and_never_grows() -> None:
    told = parts(model_of(LINEAR), decode_sums(8, 100))
    states = 10 * 8 * 2 * 48 * 128 * 128 * 4
    assert told["ATTENTION_DECODE"] == pytest.approx(states / (0.7 * 4.8e12), rel=1e-2)
    assert parts(model_of(LINEAR), decode_sums(8, 100_000)) == told


def test_new_tokens_cost_the_same_behind_any_prefix() -> None:
    told = parts(model_of(LINEAR), chunk_sums(8192))
    flops = 10 * 8192 * 48 * (6 * 128 * 128 + 64 * (6 * 128 + 4 * 128))
    assert told["ATTENTION_CAUSAL"] == pytest.approx(flops / (0.55 * 989e12))
    behind = parts(model_of(LINEAR), chunk_sums(8192, 50_000))
    assert behind["ATTENTION_PREFIX"] == 0
    assert behind["ATTENTION_CAUSAL"] == told["ATTENTION_CAUSAL"]


# -- windows -------------------------------------------------------------------------------------------------


def test_a_window_bounds_what_a_long_row_computes_and_reads() -> None:
    told = parts(model_of(grouped(window=1000)), decode_sums(4, 50_000))
    kv = 10 * 2 * 8 * 128 * 2 * 4 * 1000
    assert told["ATTENTION_DECODE"] == pytest.approx(kv / (0.7 * 4.8e12), rel=1e-2)
    told = parts(model_of(grouped(window=1000)), chunk_sums(4096, 50_000))
    pairs = 4096 * 1000
    inside = 1000 * 1001 // 2 + 3096 * 1000
    flops = 10 * 4 * 32 * 128
    assert told["ATTENTION_CAUSAL"] == pytest.approx(flops * inside / (0.55 * 989e12))
    assert told["ATTENTION_PREFIX"] == pytest.approx(flops * (pairs - inside) / (0.6 * 989e12))


def test_more_work_never_takes_less_time() -> None:
    for model in (tiny("GptOssForCausalLM", sliding_window=64), tiny("DeepseekV3ForCausalLM")):
        cost = PaperCost(model, H200, WIDE)
        for low, high in (
            (chunk_sums(100, 50), chunk_sums(101, 50)),
            (chunk_sums(100, 50), chunk_sums(100, 51)),
            (decode_sums(5, 60), decode_sums(6, 60)),
            (decode_sums(5, 60), decode_sums(5, 70)),
        ):
            assert cost.seconds(high) >= cost.seconds(low)


# -- devices and profiles ------------------------------------------------------------------------------------


def test_devices_share_experts_and_heads_and_pay_for_it() -> None:
    model = model_of(LATENT, Experts(64, 8, 1024, shared_width=1024))
    many = chunk_sums(16_384)
    one = parts(model, many)
    shared = PaperCost(model.split(4), replace(H200, num_devices=4), WIDE).operator_seconds(many)
    for name in ("EXPERTS_UP", "EXPERTS_DOWN", "GATE_UP", "O", "ATTENTION_CAUSAL"):
        assert shared[name] == pytest.approx(one[name] / 4, rel=0.05), name
    assert shared["QKV"] > one["QKV"] / 4  # every device computes the latents
    assert shared["ROUTER"] == one["ROUTER"]
    assert shared["COLLECTIVE"] > 0


def test_a_measured_profile_holds_for_matrices_and_at_an_experts_own_tokens(tmp_path: Path) -> None:
    path = tmp_path / "gemm.csv"
    card = find_card("H200")[0]
    lines = [f"h200,m,1,{tokens},{2e9 * tokens},{ms}\n" for tokens, ms in ((1, 1.0), (4096, 20.0))]
    path.write_text("gpu,model,tp,num_tokens,gemm_flop,gemm_ms\n" + "".join(lines))
    profile = load_gemm_profile(path, card, 10**9)
    model = model_of(grouped(), Experts(64, 1, 1024))
    told = parts(model, chunk_sums(4096), profile=profile)
    assert told["QKV"] == pytest.approx(
        2 * 4096 * 10 * H * 48 * 128 / (profile.efficiency(4096) * H200.flops_per_s)
    )
    each = profile.efficiency(4096 // 64)
    up = 10 * max(
        2 * 4096 * H * 2048 / H200.flops_per_s,
        2 * (64 * H * 2048 + 4096 * (H + 2048)) / H200.bytes_per_s,
    )
    assert told["EXPERTS_UP"] == pytest.approx(up / each)
    assert PaperCost(model, H200, WIDE, profile=profile).describe()["gemm_profile"]["points"] == 2


def test_a_forward_of_endless_time_is_refused() -> None:
    cost = PaperCost(model_of(grouped()), replace(H200, flops_per_s=1e-290), WIDE)
    with pytest.raises(ConfigError, match="most of it GATE_UP, and the most is"):
        cost.seconds(chunk_sums(100))
