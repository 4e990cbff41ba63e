"""A plan: the chunk to start with, its words, and what names what would do where it does not fit."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from engine.errors import ConfigError
from profiler.hardware import Overrides, find_card
from profiler.paper.device import PaperDevice, known_cards, paper_device
from profiler.paper.document import document
from profiler.paper.model import PaperModel
from profiler.paper.plan import PaperPlan, paper_plan
from profiler.paper.read import model_from
from profiler.paper.words import answer, reasons
from profiler.price_rows import Options
from tests.profiler.paper.test_memory import LLAMA_8B
from tests.support.paper_models import tiny

LLAMA = replace(model_from(LLAMA_8B, "x"), name="Llama")


@pytest.fixture(scope="module")
def plan() -> PaperPlan:
    return paper_plan(LLAMA, paper_device(LLAMA, "H200"))


def test_it_starts_with_the_smallest_chunk_that_reaches_the_point(plan: PaperPlan) -> None:
    assert plan.point.tokens is not None
    chunks = sorted({row.options.chunk_tokens for row in plan.rows if row.options.chunk_tokens})
    start = plan.start.options.chunk_tokens
    assert start == min(chunk for chunk in chunks if chunk >= plan.point.tokens)
    assert chunks[0] <= start // 2
    assert plan.sglang_chunk == 8192


def test_its_rows_are_chunk_sizes_by_policy_and_whole_prompts(plan: PaperPlan) -> None:
    told = [row.options for row in plan.rows]
    sizes = sorted({options.chunk_tokens for options in told if options.chunk_tokens})
    assert told == [Options(None), *(Options(size, mixed) for size in sizes for mixed in (False, True))]
    for row in plan.rows:
        assert row.kv_tokens == plan.memory.kv_tokens(row.options.chunk_tokens)
        assert row.longest_wait_s is not None
        assert row.first_forward_s is not None


def lost(plan: PaperPlan, chunk: int) -> str:
    """The throughput that a row lacks, in words."""
    row = plan.row(chunk)
    assert row is not None
    assert row.plateau_share is not None
    percent = f"{(1 - row.plateau_share) * 100:.0f}"
    return "nothing" if percent in ("0", "-0") else f"{percent} %"


def test_words_come_before_numbers_and_say_where_these_are_from(plan: PaperPlan) -> None:
    assert answer(plan) == "Start with --chunked-prefill-size 512 --enable-mixed-chunk."
    point, sglang, bound, memory, source = reasons(plan)
    assert "latents" not in point
    assert point.startswith(f"On paper {plan.point.tokens} tokens fill a forward: 95 % of the best")
    ends = "at the end of a prompt of 32,768 tokens"
    loses = f"A chunk of 512 loses {lost(plan, 512)} of a long prompt's best throughput and takes "
    assert f"{loses}12.3 ms, {ends} 27.2 ms." in point
    theirs = f"SGLang takes 8,192 for 141 GiB by itself: it loses {lost(plan, 8192)} and takes "
    assert sglang.startswith(f"{theirs}218 ms, {ends} 396 ms.")
    assert "512 mixed 26.9 ms, 512 prefill first 1.26 s, 8,192 mixed 395 ms." in sglang
    assert bound == (
        "Below 181 tokens the layers' weights take longer to read than to multiply: forwards are "
        "memory-bound, and more tokens almost free. Above they are compute-bound."
    )
    assert memory.startswith(
        "Weights take 15.0 of 141.0 GiB. Beside such chunks 232 requests of 4,096 tokens"
    )
    assert source.startswith("All of this is derived from the configuration and the data sheet of H200 SXM;")


def test_a_document_holds_it_all(plan: PaperPlan) -> None:
    told = document(plan)
    assert told["provenance"] == "derived from the data sheet"
    assert told["recommended"] == {
        "chunk_tokens": 512,
        "mixed": True,
        "interval": 0,
        "arguments": ["--chunked-prefill-size", "512", "--enable-mixed-chunk"],
    }
    assert told["point"]["tokens"] == plan.point.tokens
    assert told["model"]["layers"][0]["attention"]["kind"] == "GroupedAttention"
    assert told["device"]["peaks"]["flops_per_s"] == 989e12
    assert "h200_sxm.yaml" in told["device"]["source"]
    assert told["cost_model"]["efficiencies"]["GEMM"]["compute"] == 0.7
    assert [row["requests"] for row in told["rows"]][-1] == plan.memory.requests(8192)


def test_a_mixture_says_when_its_experts_are_read_and_that_it_saturates_late() -> None:
    wide = {"hidden_size": 2048, "moe_intermediate_size": 768, "num_experts": 128, "num_experts_per_tok": 8}
    model = tiny("Qwen3MoeForCausalLM", **wide, num_hidden_layers=48, max_position_embeddings=8192)
    told = paper_plan(model, paper_device(model, "H200"))
    bound = reasons(told)[2]
    assert "A token takes 8 of 128 experts: from 47 tokens on 95 % of a layer's are read" in bound
    assert told.start.options.chunk_tokens is not None
    assert told.start.options.chunk_tokens >= 2048


def test_latent_attention_says_why_chunks_lose_more_than_the_point() -> None:
    sizes = {"hidden_size": 7168, "num_attention_heads": 16, "num_hidden_layers": 4}
    latents = {"kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128}
    model = tiny("DeepseekV3ForCausalLM", **sizes, **latents, max_position_embeddings=32768)
    told = paper_plan(model, paper_device(model, "H200"))
    assert lost(told, told.start.options.chunk_tokens or 0) != "nothing"
    why = "Behind a prefix every chunk expands the latents of its prefix again: smaller chunks lose more."
    assert reasons(told)[0].endswith(why)


def test_throughput_that_still_rises_is_said() -> None:
    wide = {"hidden_size": 4096, "intermediate_size": 8192, "num_local_experts": 512, "vocab_size": 32_000}
    model = tiny("MixtralForCausalLM", **wide, num_experts_per_tok=1, max_position_embeddings=1024)
    told = paper_plan(model, paper_device(model, "B200", tp=4))
    assert told.point.status == "not_saturated"
    assert reasons(told)[0].startswith("Throughput still rises at the end of forwards of 1 to 1,024 tokens")
    assert "no saturation point" in reasons(told)[0]
    assert "memory-bound, and more tokens cost little" in reasons(told)[2]


def test_pages_round_what_is_tried(plan: PaperPlan) -> None:
    told = paper_plan(replace(LLAMA, max_position_embeddings=2048), plan.device, page_size=48)
    sizes = {row.options.chunk_tokens for row in told.rows if row.options.chunk_tokens}
    assert all(size % 48 == 0 for size in sizes)
    assert told.start.options.chunk_tokens == 528


# -- devices -------------------------------------------------------------------------------------------------


def device(model: PaperModel, gpu: str, **options: Any) -> PaperDevice:
    return paper_device(model, gpu, **options)


def test_fp8_is_multiplied_at_the_cards_own_peak_and_attention_is_not() -> None:
    told = device(LLAMA, "H200", dtype="fp8")
    assert (told.gemm_flops_per_s, told.peaks.flops_per_s) == (1978e12, 989e12)
    assert told.size.matrices == 1
    given = device(LLAMA, "H200", dtype="fp8", given=Overrides(tflops=1500))
    assert (given.gemm_flops_per_s, given.peaks.flops_per_s) == (1500e12, 989e12)
    assert device(LLAMA, "H200", given=Overrides(tflops=800)).peaks.flops_per_s == 800e12


def test_the_checkpoint_says_the_type_unless_one_is_given() -> None:
    fp8 = replace(LLAMA, quant_method="fp8")
    assert device(fp8, "H200").size.dtype == "fp8"
    assert device(fp8, "H200", dtype="bf16").size.dtype == "bf16"
    assert device(replace(LLAMA, quant_method="mxfp4"), "H200").size.experts == 17 / 32
    assert device(LLAMA, "H200", kv_dtype="fp8").size.kv == 1


def test_a_profile_is_found_by_the_layers_size(tmp_path: Path) -> None:
    path = tmp_path / "gemm.csv"
    lines = [f"h100,{name},1,512,{2 * 512 * params},1.0\n" for name, params in (("a", 5e7), ("b", 2.1e8))]
    path.write_text("gpu,model,tp,num_tokens,gemm_flop,gemm_ms\n" + "".join(lines))
    told = device(LLAMA, "H100", profile=path)
    assert told.profile is not None
    assert told.profile.group.model == "b"
    with pytest.raises(ConfigError, match="holds nothing of H200 SXM: give --profile-gpu h100"):
        device(LLAMA, "H200", profile=path)
    assert device(LLAMA, "H200", profile=path, profile_gpu="H100").profile is not None


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"gpu": "H2000"}, "--gpu 'H2000' is not known: give H200 SXM or "),
        ({"gpu": "T4"}, "its bfloat16 peak is not known: give --peak-tflops, or a GPU that has it: "),
        (
            {"gpu": "A100", "dtype": "fp8"},
            "its fp8 peak is not known: give --peak-tflops, --dtype bf16, or a GPU",
        ),
        ({"gpu": "L4", "tp": 2}, "link to other devices is not known: give --link-bandwidth, or a GPU that"),
        ({"gpu": "H200", "tp": 3}, "--tp 3: 32 heads of Llama cannot be divided by it: give another number"),
        ({"gpu": "T4", "dtype": "fp8", "given": Overrides(130)}, "its bfloat16 peak, for attention, is not"),
    ],
)
def test_what_is_not_known_names_what_is(options: dict[str, Any], text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        device(LLAMA, **options)
    assert text in str(caught.value)
    assert "\n" not in str(caught.value)


def test_what_does_not_fit_names_what_would() -> None:
    big = model_from({**LLAMA_8B, "num_hidden_layers": 400, "tie_word_embeddings": True}, "big")
    with pytest.raises(ConfigError) as caught:
        paper_plan(big, paper_device(big, "H100 SXM5"))
    line = str(caught.value)
    assert line.startswith(
        "--gpu H100 SXM5: of 80.0 GiB each, 163.5 GiB of weights and 13.1 GiB kept free leave"
    )
    assert line.endswith(
        "no KV of 4,096 tokens: give --tp 4 or B300 SXM or GB200 (per GPU) or GB300 (per GPU)"
    )
    with pytest.raises(ConfigError, match="give --tp 16 with --link-bandwidth or "):
        paper_plan(big, paper_device(big, "L4"))
    with pytest.raises(ConfigError, match="give a smaller model"):
        paper_plan(replace(big, layers=((big.layers[0][0], 40_000),)), paper_device(big, "L4"))


@pytest.mark.parametrize(
    ("gpu", "named"),
    [
        ("H20", ["H200 SXM", "B200 SXM", "B300 SXM"]),  # not the GB10 and MI250X, nearer in memory
        ("MI210", ["MI250X (both GCDs)", "MI300X", "MI325X"]),
        ("L40S", ["GB10 (DGX Spark)", "GB200 (per GPU)", "GB300 (per GPU)"]),
    ],
)
def test_cards_like_the_one_asked_for_are_named_first(gpu: str, named: list[str]) -> None:
    assert known_cards(lambda card: card.memory_bytes > 100 * 2**30, find_card(gpu)[0]) == named


def test_a_context_with_no_room_for_requests_is_refused() -> None:
    model = tiny("GptOssForCausalLM", max_position_embeddings=100)
    with pytest.raises(
        ConfigError, match="a context of 100 tokens is too short: give a model with 128 or more"
    ):
        paper_plan(model, paper_device(model, "H200"))
    least = tiny("GptOssForCausalLM", max_position_embeddings=128)
    assert paper_plan(least, paper_device(least, "H200")).prompt_tokens <= 128
