"""`chunkscope run --executor simulated` from end to end: what it records, says and refuses."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from engine.request import FinishReason
from profiler.summary import summarize
from tests.support.cli import ROOT, call, refused, write_model, write_workload
from traces.reader import open_trace

Capture = pytest.CaptureFixture[str]

SIMULATED = ("run", "--executor", "simulated")


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A model whose forwards take some tenths of a millisecond."""
    sizes = {"hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 16, "vocab_size": 32000}
    return write_model(tmp_path, **sizes, num_attention_heads=16, num_key_value_heads=4, eos_token_id=[0])


@pytest.fixture
def workload(tmp_path: Path) -> Path:
    decoding = [{"rid": f"d{i}", "prompt_tokens": 64, "max_new_tokens": 100} for i in range(3)]
    late = {"rid": "long", "arrival_s": 0.02, "prompt_tokens": 3000, "max_new_tokens": 4}
    return write_workload(tmp_path / "w.jsonl", *decoding, late)


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    return tmp_path / "t.chunkscope"


def simulate(
    capfd: Capture, model: Path, workload: Path, trace: Path, *options: object, pool: int | None = 20_000
) -> str:
    """Run on an H200 unless the options say otherwise; returns what was said."""
    gpu = () if "--gpu" in options else ("--gpu", "h200")
    tokens = () if pool is None else ("--max-total-tokens", pool)
    args = (*SIMULATED, *gpu, *tokens, "--model", model, "--workload", workload, "-o", trace)
    code, out, err = call(capfd, *args, *options)
    assert (code, out) == (0, ""), err
    return err


def meta(trace: Path) -> dict[str, Any]:
    return dict(open_trace(trace).meta)


def facts_of(capfd: Capture, trace: Path) -> dict[str, str]:
    """What `stats` says of a trace, by name."""
    lines = call(capfd, "stats", trace).out.partition("\n\n")[0].splitlines()
    return {name: told.strip() for name, told in (line.split("  ", 1) for line in lines)}


def test_a_simulated_run_is_recorded_as_such(
    model: Path, workload: Path, trace: Path, capfd: Capture
) -> None:
    said = simulate(capfd, model, workload, trace, "--page-size", 16, pool=None)
    told = meta(trace)
    assert told["provenance"] == "simulated"
    assert told["columns"]["forwards"]["start_ns"] == "derived"
    assert (told["hardware"]["device"], told["hardware"]["name"]) == ("simulated", "H200 SXM")
    assert told["hardware"]["peaks"]["flops_per_s"] == 989e12
    assert "h200_sxm.yaml" in told["hardware"]["source"]
    assert told["cost_model"]["efficiencies"]["GEMM"]["compute"] == 0.7
    assert (told["model"]["load_format"], told["model"]["weights"]) == ("none", None)
    assert told["model"]["weight_bytes"] == 2 * told["model"]["num_params"]
    assert told["engine"]["chunked_prefill_size"] == 8192
    forwards = open_trace(trace).table("forwards").to_pylist()
    assert all(f["memory_peak_bytes"] is None for f in forwards)
    assert forwards[0]["start_ns"] == 0
    assert facts_of(capfd, trace)["memory peak"] == "unknown (simulated)"
    assert "Simulated H200 SXM: bf16 989 TFLOP/s, memory 141 GiB at 4.80 TB/s" in said
    assert "Chunk size: 8,192 tokens, SGLang's for this memory (--chunked-prefill-size)" in said
    assert f"KV pool: {told['engine']['max_total_tokens']:,} tokens, what" in said
    assert "GEMM 0.7 and 0.8; " in said
    assert "20 us a layer" in said


def test_requests_give_all_their_tokens_and_every_rule_holds(
    model: Path, workload: Path, trace: Path, capfd: Capture
) -> None:
    simulate(capfd, model, workload, trace, "--chunked-prefill-size", 512, "--enable-mixed-chunk")
    requests = {r["name"]: r for r in open_trace(trace).table("requests").to_pylist()}
    assert {name: r["output_tokens"] for name, r in requests.items()} == {
        "d0": 100,
        "d1": 100,
        "d2": 100,
        "long": 4,
    }
    assert requests["long"]["arrival_ns"] == 20_000_000
    assert call(capfd, "check", trace).code == 0


def test_no_token_ends_an_output(tmp_path: Path, workload: Path, trace: Path, capfd: Capture) -> None:
    simulate(capfd, write_model(tmp_path, vocab_size=4, eos_token_id=[0, 1, 2, 3]), workload, trace)
    requests = open_trace(trace).table("requests").to_pylist()
    assert sorted(r["output_tokens"] for r in requests) == [4, 100, 100, 100]


def test_stop_tokens_of_the_workload_end_no_output(
    model: Path, tmp_path: Path, trace: Path, capfd: Capture
) -> None:
    stops = {"prompt_tokens": 9, "max_new_tokens": 30, "stop_token_ids": list(range(32_000))}
    workload = write_workload(tmp_path / "s.jsonl", {"rid": "a", **stops}, {"rid": "b", "prompt_tokens": 9})
    said = simulate(capfd, model, workload, trace)
    assert "stop_token_ids of 1 request ignored: no token ends a simulated output" in said
    assert "18 prompt tokens, 158 output tokens" in said
    requests = open_trace(trace).table("requests").to_pylist()
    assert [(r["output_tokens"], r["finish_reason"]) for r in requests] == [
        (30, FinishReason.LENGTH),
        (128, FinishReason.LENGTH),
    ]


def test_the_same_run_twice_is_the_same(model: Path, workload: Path, tmp_path: Path, capfd: Capture) -> None:
    tables = []
    for name in ("a", "b"):
        trace = tmp_path / f"{name}.chunkscope"
        simulate(capfd, model, workload, trace)
        opened = open_trace(trace)
        tables.append([opened.table(table) for table in ("forwards", "rows", "requests", "events")])
    assert tables[0] == tables[1]


def test_mixing_cuts_the_gap_that_chunking_leaves(
    model: Path, workload: Path, tmp_path: Path, capfd: Capture
) -> None:
    chunked = ("--chunked-prefill-size", 256)
    policies = {"whole": ("--chunked-prefill-size", -1), "chunked": chunked}
    policies["mixed"] = (*chunked, "--enable-mixed-chunk")
    gaps = {}
    for name, options in policies.items():
        trace = tmp_path / f"{name}.chunkscope"
        simulate(capfd, model, workload, trace, *options)
        gaps[name] = summarize(open_trace(trace))["worst_stall"]["gap_s"]
    assert gaps["chunked"] >= gaps["whole"]
    assert gaps["mixed"] < gaps["whole"] / 3


def test_more_gpus_take_less_time_and_are_named(
    model: Path, workload: Path, tmp_path: Path, capfd: Capture
) -> None:
    spans, totals = [], []
    for tp in (1, 2):
        trace = tmp_path / f"{tp}.chunkscope"
        said = simulate(capfd, model, workload, trace, "--tp", tp, "--disable-overlap-schedule")
        told = meta(trace)
        forwards = open_trace(trace).table("forwards").to_pylist()
        spans.append(max(f["end_ns"] - f["start_ns"] for f in forwards))
        totals.append(sum(f["flops_linear"] for f in forwards))
    assert spans[1] < spans[0]
    assert totals[1] == totals[0] // 2  # of one of the GPUs, as are the peaks
    assert "Simulated 2 × H200 SXM" in said
    assert "link 450 GB/s" in said
    assert "COLLECTIVE – and 0.8" in said
    assert told["hardware"]["name"] == "2 × H200 SXM"
    assert told["model"]["weight_bytes_per_device"] < told["model"]["weight_bytes"]


def test_given_peaks_go_before_the_tables(model: Path, workload: Path, trace: Path, capfd: Capture) -> None:
    simulate(capfd, model, workload, trace, "--gpu", "t4", "--peak-tflops", 65, "--bandwidth", 0.3)
    hardware = meta(trace)["hardware"]
    assert (hardware["peaks"]["flops_per_s"], hardware["peaks"]["bytes_per_s"]) == (65e12, 0.3e12)
    assert hardware["given"] == {"tflops": 65, "bandwidth_tb_s": 0.3}


def test_host_overhead_shows_between_forwards_of_the_plain_loop(
    model: Path, workload: Path, trace: Path, capfd: Capture
) -> None:
    options = ("--host-overhead-us", 250, "--disable-overlap-schedule")
    said = simulate(capfd, model, workload, trace, *options)
    forwards = open_trace(trace).table("forwards").to_pylist()
    assert forwards[1]["start_ns"] - forwards[0]["end_ns"] == 250_000
    assert "250 us a forward on the host" in said
    assert meta(trace)["cost_model"]["host_overhead_ns"] == 250_000


def test_a_measured_profile_replaces_the_gemms_efficiency(
    model: Path, workload: Path, tmp_path: Path, trace: Path, capfd: Capture
) -> None:
    profile = tmp_path / "gemm.csv"
    lines = [f"h100,m,1,{tokens},{tokens}e9,{0.5 + tokens / 1000}" for tokens in (1, 64, 4096)]
    profile.write_text("gpu,model,tp,num_tokens,gemm_flop,gemm_ms\n" + "\n".join(lines))
    args = (*SIMULATED, "--gpu", "h200", "--model", model, "--workload", workload, "-o", trace)
    assert "give --profile-gpu h100" in refused(capfd, *args, "--profile", profile)
    said = simulate(capfd, model, workload, trace, "--profile", profile, "--profile-gpu", "h100")
    assert (
        f"GEMMs of the layers by {profile} instead: h100, m, tp 1, 3 sizes with 0.53 to 0.9 of its peak"
        in said
    )
    assert meta(trace)["cost_model"]["gemm_profile"]["points"] == 3


def test_a_sliding_window_is_refused_until_the_context_fits_in_it(
    tmp_path: Path, workload: Path, trace: Path, capfd: Capture
) -> None:
    model = write_model(tmp_path, architectures=["MistralForCausalLM"], sliding_window=3500)
    args = (*SIMULATED, "--gpu", "h200", "--model", model, "--workload", workload, "-o", trace)
    assert "give --context-length 3500" in refused(capfd, *args)
    simulate(capfd, model, workload, trace, "--context-length", 3500)
    assert meta(trace)["engine"]["context_length"] == 3500


def test_the_pool_of_a_tiny_model_takes_no_more_host_memory_than_it_needs(
    tmp_path: Path, workload: Path, trace: Path, capfd: Capture
) -> None:
    said = simulate(capfd, write_model(tmp_path), workload, trace, pool=None)
    assert "KV pool: 4,194,304 tokens, the most that is simulated" in said


def test_an_ambiguous_name_is_resolved_and_said(
    model: Path, workload: Path, trace: Path, capfd: Capture
) -> None:
    said = simulate(capfd, model, workload, trace, "--gpu", "a100")
    assert "--gpu a100: taken as A100 SXM4 80GB; other cards of that name: A100 PCIe 80GB" in said


def test_a_model_folder_serves_with_its_config_alone(
    model: Path, workload: Path, trace: Path, capfd: Capture
) -> None:
    simulate(capfd, model.parent, workload, trace)
    assert meta(trace)["model"]["weights"] is None


def test_no_torch_is_loaded(model: Path, workload: Path, trace: Path) -> None:
    args = [*SIMULATED, "--gpu", "h200", "--model", str(model), "--workload", str(workload), "-o", str(trace)]
    code = f"""
import sys
from ui.cli import chunkscope
chunkscope.main({args!r}, standalone_mode=False)
assert not {{"torch", "polars", "transformers", "dash", "textual"}} & set(sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


# -- refusals ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (["--executor", "simulated"], "--executor simulated needs a GPU: give --gpu"),
        (["--gpu", "h200"], "--gpu is for simulated runs: add --executor simulated"),
        (["--tp", 2], "--tp is for simulated runs"),
        (["--host-overhead-us", 0], "--host-overhead-us is for simulated runs"),
    ],
)
def test_options_of_the_other_executor(
    model: Path, workload: Path, trace: Path, options: list[object], text: str, capfd: Capture
) -> None:
    assert text in refused(capfd, "run", "--model", model, "--workload", workload, "-o", trace, *options)
    assert not trace.exists()


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (["--gpu", "banana"], "--gpu 'banana' is not known: give one of T4"),
        (["--gpu", "t4"], "--gpu T4: its bfloat16 peak is not known: give --peak-tflops"),
        (
            ["--gpu", "l4", "--tp", 2],
            "--gpu L4: its link to other devices is not known: give --link-bandwidth",
        ),
        (["--gpu", "h200", "--tp", 3], "--tp 3: 16 heads"),
        (["--gpu", "h200", "--device", "cuda"], "--device cuda is not for simulated runs"),
        (["--gpu", "h200", "--threads", 1], "--threads 1 is not for simulated runs"),
        (["--gpu", "h200", "--profile-gpu", "h100"], "--profile-gpu chooses among the GPUs of a profile"),
        (["--gpu", "h200", "--max-total-tokens", 2**31 - 1], "fit beside the weights on H200 SXM"),
        (["--gpu", "h200", "--context-length", 5000], "is beyond the model's 4096: give no more"),
        (["--gpu", "h200", "--context-length", 100], "3000 prompt tokens reach the context length"),
        (["--gpu", "h200", "--peak-tflops", 0], "--peak-tflops"),
        (["--gpu", "h200", "--bandwidth", "nan"], "--bandwidth"),
        (["--gpu", "h200", "--bandwidth", "1e-12"], "1e-12 is not in the range 1e-06<=x<=1000000"),
        (["--gpu", "h200", "--peak-tflops", "1e-300"], "'--peak-tflops': 1e-300 is not in the range"),
        (["--gpu", "h200", "--peak-tflops", "inf"], "'--peak-tflops': inf is not in the range"),
        (["--gpu", "h200", "--tp", 8, "--link-bandwidth", "1e-300"], "'--link-bandwidth': 1e-300 is not in"),
        (["--gpu", "h200", "--host-overhead-us", 2e6], "'--host-overhead-us': 2000000.0 is not in the range"),
    ],
)
def test_a_wrong_option(
    model: Path, workload: Path, trace: Path, options: list[object], text: str, capfd: Capture
) -> None:
    args = (*SIMULATED, "--model", model, "--workload", workload, "-o", trace, *options)
    assert text in refused(capfd, *args)
    assert not trace.exists()


def test_models_that_are_too_large_or_not_dense(
    tmp_path: Path, workload: Path, trace: Path, capfd: Capture
) -> None:
    args = (*SIMULATED, "--gpu", "h200", "--workload", workload, "-o", trace)
    huge = write_model(tmp_path, hidden_size=16384, intermediate_size=53248, num_hidden_layers=126)
    assert "give a larger GPU or a larger --tp" in refused(capfd, *args, "--model", huge)
    experts = write_model(tmp_path, architectures=["MixtralForCausalLM"], num_local_experts=8)
    assert "has a mixture of experts" in refused(capfd, *args, "--model", experts)


def test_a_family_that_is_only_simulated_is_refused_elsewhere(
    tmp_path: Path, workload: Path, trace: Path, capfd: Capture
) -> None:
    model = write_model(tmp_path, architectures=["Gemma2ForCausalLM"], head_dim=16)
    args = ("run", "--model", model, "--workload", workload, "-o", trace)
    line = refused(capfd, *args)
    assert "a model of gemma2 can be simulated but not computed" in line
    simulate(capfd, model, workload, trace)
    assert meta(trace)["model"]["norms_per_layer"] == 4


def test_text_prompts_need_a_tokenizer(model: Path, tmp_path: Path, trace: Path, capfd: Capture) -> None:
    workload = write_workload(tmp_path / "text.jsonl", {"rid": "a", "prompt": "Once"})
    args = (*SIMULATED, "--gpu", "h200", "--model", model, "--workload", workload, "-o", trace)
    assert "the model has no tokenizer" in refused(capfd, *args)


def test_files_that_never_end_are_not_read(
    model: Path, workload: Path, tmp_path: Path, trace: Path, capfd: Capture
) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    args = (*SIMULATED, "--gpu", "h200", "--model", model, "-o", trace)
    for endless in (pipe, Path("/dev/zero")):
        line = refused(capfd, *args, "--workload", endless)
        assert line.startswith(f"chunkscope: {endless}: is no regular file: give a file of JSON lines")
        line = refused(capfd, *args, "--workload", workload, "--profile", endless)
        assert line.startswith(f"chunkscope: --profile {endless}: is no regular file: give a GEMM profile")
    assert not trace.exists()


@pytest.mark.parametrize(
    ("chunk", "text"),
    [
        (-1, "a forward takes 3.04e+08 s of simulated time"),
        (512, "the run takes more than 1e+08 s of simulated"),
    ],
)
def test_times_that_no_trace_can_hold_end_the_run_and_seal_it(
    tmp_path: Path, workload: Path, trace: Path, chunk: int, text: str, capfd: Capture
) -> None:
    sizes = {"hidden_size": 8192, "intermediate_size": 28672, "num_hidden_layers": 80, "head_dim": 128}
    model = write_model(tmp_path, **sizes, num_attention_heads=64, num_key_value_heads=8)
    args = (*SIMULATED, "--gpu", "h200", "--tp", 2, "--model", model, "--workload", workload, "-o", trace)
    slow = ("--peak-tflops", 1e-6, "--bandwidth", 1e-6, "--chunked-prefill-size", chunk)
    code, out, err = call(capfd, *args, *slow)
    last = err.splitlines()[-1]
    assert (code, out) == (2, "")
    assert last.startswith(f"chunkscope: {text}")
    assert last.endswith(f"what was recorded is in {trace}")
    assert open_trace(trace).sealed
    assert call(capfd, "stats", trace).code == 0
