"""The roofline of each operator, by hand, against the closed forms, and with a measured GEMM profile."""

from dataclasses import replace
from math import inf, log
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.arithmetic import ForwardSums, forward_cost, forward_sums
from engine.batch import Role
from engine.errors import ConfigError
from engine.peaks import Peaks
from profiler.cost import OPERATORS, RooflineCost
from profiler.cost_profile import load_gemm_profile
from profiler.cost_table import EFFICIENCIES, OVERHEADS
from profiler.hardware import find_card, peaks_of
from profiler.tensor_parallel import shard
from tests.support.forward_rows import forward_of
from tests.support.shapes import LLAMA_8B

H200 = Peaks("H200 SXM", "bfloat16", 989e12, 4.8e12, 141 * 2**30, link_bytes_per_s=450e9)
GEMMS = ("QKV", "O", "GATE_UP", "DOWN")
EXTEND_ROLES = (Role.WHOLE, Role.FIRST, Role.MIDDLE, Role.LAST)


def seconds(cost: RooflineCost, rows: list[tuple[Role, int, int]]) -> dict[str, float]:
    sums = forward_sums(forward_of(rows))
    return dict(zip(OPERATORS, cost.operator_seconds(sums), strict=True))


lengths = st.integers(1, 2**31 - 2)  # a sequence is a token longer, and a 32-bit integer
extend_rows = st.lists(st.tuples(st.sampled_from(EXTEND_ROLES), st.integers(0, 2**20), st.integers(1, 2**12)))
decode_rows = st.lists(st.tuples(st.just(Role.DECODE), lengths, st.just(1)))


def test_a_long_prefill_by_hand() -> None:
    told = seconds(RooflineCost(LLAMA_8B, H200, 2), [(Role.WHOLE, 0, 8192)])
    compute = 0.7 * 989e12
    assert told["QKV"] == pytest.approx(2 * 8192 * 32 * 4096 * (4096 + 2048) / compute)
    assert told["O"] == pytest.approx(2 * 8192 * 32 * 4096 * 4096 / compute)
    assert told["GATE_UP"] == pytest.approx(2 * 8192 * 32 * 4096 * 28672 / compute)
    assert told["DOWN"] == pytest.approx(2 * 8192 * 32 * 14336 * 4096 / compute)
    assert told["HEAD"] == pytest.approx(128256 * 4096 * 2 / (0.8 * 4.8e12), rel=1e-3)  # reads the matrix
    assert told["ATTENTION_CAUSAL"] == pytest.approx(4 * 4096 * 32 * 8192 * 8193 / 2 / (0.55 * 989e12))
    assert told["ATTENTION_PREFIX"] == told["ATTENTION_DECODE"] == told["COLLECTIVE"] == 0
    per_token = 2 * (32 * (8 * 4096 + 2 * 4096 + 4 * 1024 + 3 * 14336) + 2 * 4096)
    assert told["ELEMENTWISE"] == pytest.approx(8192 * per_token / (0.5 * 4.8e12))
    assert told["OVERHEAD"] == pytest.approx(32 * 20e-6 + 50e-6)


def test_further_norms_move_more() -> None:
    def elements(**change: object) -> float:
        """Moved in one layer by one token, between GEMMs and attention."""
        shape = replace(LLAMA_8B, **change)  # type: ignore[arg-type]
        told = seconds(RooflineCost(shape, H200, 2), [(Role.WHOLE, 0, 1)])
        return (told["ELEMENTWISE"] * 0.5 * 4.8e12 / 2 - 2 * 4096) / 32

    assert elements(norms_per_layer=4) - elements() == pytest.approx(2 * 4 * 4096)
    assert elements(qk_norm=True) - elements() == pytest.approx(2 * (4096 + 1024))


def test_a_later_chunk_pays_for_its_prefix() -> None:
    told = seconds(RooflineCost(LLAMA_8B, H200, 2), [(Role.MIDDLE, 24576, 8192)])
    assert told["ATTENTION_PREFIX"] == pytest.approx(4 * 4096 * 32 * 24576 * 8192 / (0.6 * 989e12))
    assert told["HEAD"] == 0  # a middle chunk needs no logits


def test_a_decode_reads_weights_and_kv() -> None:
    told = seconds(RooflineCost(LLAMA_8B, H200, 2), [(Role.DECODE, 9_999, 1)] * 4)
    weights = 32 * (4096 * (4096 + 2048) + 4096 * 4096 + 3 * 4096 * 14336)
    assert sum(told[name] for name in GEMMS) == pytest.approx(2 * weights / (0.8 * 4.8e12), rel=2e-3)
    kv = 2 * 32 * 1024 * 2 * 40_000
    assert told["ATTENTION_DECODE"] == pytest.approx(kv / (0.7 * 4.8e12), rel=1e-3)
    assert told["ATTENTION_CAUSAL"] == told["ATTENTION_PREFIX"] == 0


def test_a_forward_takes_the_sum_of_its_operators() -> None:
    rows = [(Role.LAST, 100, 50), (Role.FIRST, 0, 70), (Role.DECODE, 900, 1)]
    cost = RooflineCost(LLAMA_8B, H200, 2)
    assert cost.forward_ns(forward_of(rows)) == round(sum(seconds(cost, rows).values()) * 1e9)
    assert round(cost.seconds(forward_sums(forward_of(rows))) * 1e9) == cost.forward_ns(forward_of(rows))


@given(extend_rows.filter(bool), decode_rows)
def test_flops_are_those_of_the_closed_forms(
    extends: list[tuple[Role, int, int]], decodes: list[tuple[Role, int, int]]
) -> None:
    """With endless bandwidth, seconds are FLOPs over what is reached of the peak."""
    rows = [*extends[:4], *decodes[:4]]
    told = seconds(RooflineCost(LLAMA_8B, replace(H200, bytes_per_s=inf), 2), rows)
    flops = forward_cost(LLAMA_8B, forward_sums(forward_of(rows)), 2, 2)

    def work(kind: str, *operators: str) -> float:
        compute = EFFICIENCIES[kind].compute
        assert compute is not None
        return sum(told[operator] for operator in operators) * compute * H200.flops_per_s

    assert work("GEMM", *GEMMS) == pytest.approx(flops.flops_linear)
    assert work("GEMM", "HEAD") == pytest.approx(flops.flops_head)
    extend = work("ATTENTION_PREFIX", "ATTENTION_PREFIX") + work("ATTENTION_CAUSAL", "ATTENTION_CAUSAL")
    assert extend == pytest.approx(flops.flops_attention_extend)
    assert work("ATTENTION_DECODE", "ATTENTION_DECODE") == pytest.approx(flops.flops_attention_decode)


def test_bytes_are_at_least_those_that_a_forward_must_move() -> None:
    rows = [(Role.LAST, 1000, 500), (Role.DECODE, 4000, 1)]
    told = seconds(RooflineCost(LLAMA_8B, replace(H200, flops_per_s=inf), 2), rows)
    kinds = dict.fromkeys((*GEMMS, "HEAD"), "GEMM") | {name: name for name in OPERATORS[5:9]}
    moved = sum(told[name] * EFFICIENCIES[kind].memory * H200.bytes_per_s for name, kind in kinds.items())
    least = forward_cost(LLAMA_8B, forward_sums(forward_of(rows)), 2, 2)
    must = least.bytes_weights + least.bytes_kv_read + least.bytes_kv_write + least.bytes_activation
    assert must < moved < 1.3 * must


@given(st.integers(1, 20_000), st.integers(0, 100_000), st.integers(1, 64))
def test_more_work_never_takes_less_time(extend: int, prefix: int, rows: int) -> None:
    cost = RooflineCost(LLAMA_8B, H200, 2)
    small = forward_of([(Role.LAST, prefix, extend)] + [(Role.DECODE, 100, 1)] * rows)
    for change in (
        [(Role.LAST, prefix, extend + 1)] + [(Role.DECODE, 100, 1)] * rows,
        [(Role.LAST, prefix + 1, extend)] + [(Role.DECODE, 100, 1)] * rows,
        [(Role.LAST, prefix, extend)] + [(Role.DECODE, 100, 1)] * (rows + 1),
    ):
        assert cost.forward_ns(forward_of(change)) >= cost.forward_ns(small)


@pytest.mark.parametrize(
    ("peaks", "longest"),
    [
        (replace(H200, num_devices=2, flops_per_s=1e-290), "GATE_UP"),
        (replace(H200, num_devices=2, bytes_per_s=1e-290), "GATE_UP"),
        (replace(H200, num_devices=2, link_bytes_per_s=1e-300), "COLLECTIVE"),
    ],
)
def test_a_forward_of_more_time_than_a_trace_can_hold_is_refused(peaks: Peaks, longest: str) -> None:
    cost = RooflineCost(shard(LLAMA_8B, 2), peaks, 2)
    with pytest.raises(ConfigError, match=f"most of it {longest}, and the most is 1e.08 s"):
        cost.forward_ns(forward_of([(Role.WHOLE, 0, 100)]))


def test_ranks_share_work_and_pay_for_it() -> None:
    rows = [(Role.WHOLE, 0, 8192)]
    one = seconds(RooflineCost(LLAMA_8B, H200, 2), rows)
    two = seconds(RooflineCost(shard(LLAMA_8B, 2), replace(H200, num_devices=2), 2), rows)
    for name in (*GEMMS, "ATTENTION_CAUSAL"):
        assert two[name] == pytest.approx(one[name] / 2)
    ring = 2 * (2 - 1) / 2 * 8192 * 4096 * 2 / (0.8 * 450e9)
    logits = 10e-6 + 64128 * 2 / (0.8 * 450e9)
    assert two["COLLECTIVE"] == pytest.approx(2 * 32 * (10e-6 + ring) + logits)
    assert sum(two.values()) < sum(one.values())


def test_every_share_is_a_share_and_has_a_reason() -> None:
    for efficiency in EFFICIENCIES.values():
        assert 0 < efficiency.memory <= 1
        assert efficiency.compute is None or 0 < efficiency.compute <= 1
        assert efficiency.why
    assert OVERHEADS.why
    told = RooflineCost(LLAMA_8B, H200, 2).describe()
    assert told["efficiencies"]["GEMM"]["compute"] == EFFICIENCIES["GEMM"].compute
    assert told["gemm_profile"] is None


# -- a measured profile --------------------------------------------------------------------------------------

H100 = find_card("H100 SXM5")[0]
PARAMS = LLAMA_8B.layer_gemm_params
HEAD = "gpu,model,tp,num_tokens,gemm_flop,gemm_ms,other\n"


def line(tokens: int, ms: float, gpu: str = "h100", model: str = "m", params: int = PARAMS) -> str:
    return f"{gpu},{model},1,{tokens},{2 * params * tokens},{ms},x\n"


def write(folder: Path, *lines: str, head: str = HEAD) -> Path:
    path = folder / "gemm.csv"
    path.write_text(head + "".join(lines))
    return path


def test_a_profile_gives_back_its_own_times(tmp_path: Path) -> None:
    path = write(tmp_path, line(1, 0.2), line(4096, 3.0))
    peaks = peaks_of(H100, "bfloat16")
    cost = RooflineCost(LLAMA_8B, peaks, 2, profile=load_gemm_profile(path, H100, PARAMS))
    for tokens, ms in ((1, 0.2), (4096, 3.0)):
        told = seconds(cost, [(Role.WHOLE, 0, tokens)])
        assert sum(told[name] for name in GEMMS) == pytest.approx(32 * ms / 1e3, rel=1e-3)


def test_shares_are_linear_between_logarithms_and_those_of_the_edge_beyond(tmp_path: Path) -> None:
    peaks = peaks_of(H100, "bfloat16")
    full_s = 2 * PARAMS * 1024 / peaks.flops_per_s
    path = write(
        tmp_path,
        line(4096, 4 * full_s / 0.8 * 1e3),
        line(1024, full_s / 0.4 * 1e3),
        line(1024, full_s / 0.6 * 1e3),
    )
    profile = load_gemm_profile(path, H100, PARAMS)
    assert profile.log_tokens == (log(1024), log(4096))
    assert profile.efficiency(1024) == pytest.approx(0.5)  # the median of both
    assert profile.efficiency(2048) == pytest.approx(0.65)
    assert (profile.efficiency(1), profile.efficiency(10**6)) == pytest.approx((0.5, 0.8))


def test_of_a_cards_profiles_the_layer_nearest_in_size_is_taken(tmp_path: Path) -> None:
    lines = [line(8, 1.0, model=name, params=PARAMS * size) for name, size in (("a", 4), ("b", 2), ("c", 9))]
    path = write(
        tmp_path, *lines, line(8, 1.0, gpu="a100", model="d"), line(8, 1.0, gpu="unheard", model="e")
    )
    profile = load_gemm_profile(path, H100, PARAMS)
    assert profile.describe() == {
        "path": str(path),
        "gpu": "h100",
        "model": "b",
        "tp": "1",
        "layer_params": 2 * PARAMS,
        "points": 1,
    }


@pytest.mark.parametrize(
    ("lines", "head", "text"),
    [
        ([line(8, 1.0, gpu="a100")], HEAD, "holds nothing of H100 SXM5: give --profile-gpu a100"),
        ([], HEAD, "holds no measurement"),
        (["a,b\n"], "gpu,model\n", "has no column tp"),
        (
            [line(8, 1.0), "h100,m,1,x,1,1,\n"],
            HEAD,
            "gemm.csv:3: num_tokens, gemm_flop or gemm_ms is no number",
        ),
        (["h100,m,1\n"], HEAD, "gemm.csv:2: num_tokens, gemm_flop or gemm_ms is no number"),
        ([line(8, -1.0)], HEAD, "gemm.csv:2: gemm_ms is out of range"),
        (["h100,m,1,8,nan,1,\n"], HEAD, "out of range"),
        (["h100,m,1,1.5,1,1,\n"], HEAD, "gemm.csv:2: num_tokens is out of range: give a whole number from 1"),
        (["h100,m,1,5,1e30,1,\n"], HEAD, "gemm.csv:2: gemm_flop is out of range: give 1 to 1e+20"),
        (["h100,m,1,5,1e9,1e29,\n"], HEAD, "gemm.csv:2: gemm_ms is out of range: give 1e-30 to 1e+06"),
        (["h100,m,1,5,1e9,1e-320,\n"], HEAD, "gemm.csv:2: gemm_ms is out of range"),
        (
            [line(8, 1.0), line(4096, 3e-3)],
            HEAD,
            "gemm.csv:3: in gemm_ms 0.003 GEMMs reach 602 times the",
        ),
        ([line(8, 1e6)], HEAD, "gemm.csv:2: in gemm_ms 1e+06 GEMMs reach 1.3e-07 times the peak of H100"),
    ],
)
def test_a_file_that_is_no_profile_is_refused(tmp_path: Path, lines: list[str], head: str, text: str) -> None:
    path = write(tmp_path, *lines, head=head)
    with pytest.raises(ConfigError) as caught:
        load_gemm_profile(path, H100, PARAMS)
    assert str(caught.value).startswith(f"--profile {path}")
    assert text in str(caught.value)


def test_a_missing_profile_and_one_that_is_no_text(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no such file"):
        load_gemm_profile(tmp_path / "none.csv", H100, PARAMS)
    (tmp_path / "b.csv").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match="is no CSV file"):
        load_gemm_profile(tmp_path / "b.csv", H100, PARAMS)


def test_sums_of_nothing_cost_the_overhead_and_the_weights() -> None:
    nothing = ForwardSums(0, 0, 0, 0, 0, 0, 0, 0)
    told = dict(zip(OPERATORS, RooflineCost(LLAMA_8B, H200, 2).operator_seconds(nothing), strict=True))
    assert told["HEAD"] == told["ELEMENTWISE"] == 0
    assert told["OVERHEAD"] > 0
