"""`chunkscope plan` from end to end: words first, one document, no torch, and refusals in one line."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.cli import ROOT, call, refused, write_model
from tests.support.paper_models import SIZES, TINY

Capture = pytest.CaptureFixture[str]

LARGE = {
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "vocab_size": 128256,
}


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return write_model(tmp_path, **LARGE)


def sparse(folder: Path, architecture: str, **changes: Any) -> Path:
    """A configuration of a mixture, or of layers of several kinds."""
    fields = {**SIZES, **TINY[architecture][1], "max_position_embeddings": 1024, **changes}
    path = folder / "sparse.json"
    path.write_text(json.dumps({"architectures": [architecture], **fields}))
    return path


def test_words_come_first_then_the_table_then_what_it_rests_on(model: Path, capfd: Capture) -> None:
    code, out, err = call(capfd, "plan", "--model", model, "--gpu", "h200")
    lines = out.splitlines()
    assert (code, err) == (0, "")
    assert lines[0] == "Start with --chunked-prefill-size 512 --enable-mixed-chunk."
    assert lines[1].startswith("On paper ")
    assert "tokens fill a forward: 95 % of the best prefill throughput of forwards of 1 to 4,096" in lines[1]
    assert lines[2].startswith("SGLang takes 8,192 for 141 GiB by itself: it loses ")
    assert "memory-bound, and more tokens almost free. Above they are compute-bound." in lines[3]
    assert "derived from the configuration and the data sheet of H200 SXM; nothing was measured" in lines[5]
    marked = [line for line in lines if line.startswith("→")]
    assert len(marked) == 1
    assert marked[0].startswith("→ 512 mixed")
    facts = out[out.index("\nmodel ") :]
    assert "llama, 7.5 B parameters" in facts
    assert "32 layers: 32 heads, 8 of KV, of 128; 14,336 columns" in facts
    assert "H200 SXM: bf16 989 TFLOP/s, memory 141 GiB at 4.80 TB/s (data sheet)" in facts
    assert "131,072 bytes a token in bf16; a request of 4,096 tokens 512 MiB" in facts
    assert "shares of the peak FLOP/s and bytes/s: GEMM 0.7 and 0.8; " in facts
    assert "20 us a layer and 50 us a forward" in facts


def test_one_document_says_that_all_is_derived(model: Path, capfd: Capture) -> None:
    code, out, err = call(capfd, "plan", "--model", model, "--gpu", "h200", "--page-size", 16, "--json")
    told = json.loads(out)
    assert (code, err) == (0, "")
    assert told["provenance"] == "derived from the data sheet"
    assert told["recommended"]["arguments"] == ["--chunked-prefill-size", "512", "--enable-mixed-chunk"]
    assert told["memory"]["kv_token_bytes"] == 131_072
    assert told["rows"][0]["options"]["chunk_tokens"] is None
    assert told["rows"][0]["requests"] <= told["rows"][1]["requests"]
    assert told["cost_model"]["gemm_profile"] is None


def test_each_kind_of_layer_is_told(tmp_path: Path, capfd: Capture) -> None:
    def facts(architecture: str, *options: object) -> str:
        path = sparse(tmp_path, architecture, head_dim=None)
        code, out, err = call(capfd, "plan", "--model", path, "--gpu", "h200", *options)
        assert (code, err) == (0, "")
        return out

    told = facts("DeepseekV3ForCausalLM", "--tp", 2, "--dtype", "fp8", "--kv-cache-dtype", "fp8")
    assert "1 layer: 4 heads on a latent of 20; 96 columns" in told
    assert "2 layers: 4 heads on a latent of 20; 2 of 8 experts of 16 columns beside 32 shared" in told
    assert "2 × H200 SXM: bf16 989 TFLOP/s, fp8 1.98 PFLOP/s" in told
    assert "the layers' matrices in fp8; embedding, head, norms and routers in bf16" in told
    assert "60 bytes a token in fp8" in told
    assert "every expert as likely as any other" in told
    told = facts("GptOssForCausalLM")
    assert "2 layers: 4 heads, 2 of KV, of 16, a window of 128 tokens; 2 of 4 experts of 96 columns" in told
    assert "384 bytes a token in bf16, 128 beyond all windows" in told
    told = facts("Qwen3_5ForCausalLM")
    assert "3 layers: linear attention, 4 heads with a state of 8 × 8; 96 columns" in told
    assert "of state a request" in told


def test_a_measured_profile_replaces_the_matrices_efficiency(
    model: Path, tmp_path: Path, capfd: Capture
) -> None:
    profile = tmp_path / "gemm.csv"
    lines = [f"h200,m,1,{tokens},{tokens}e9,{0.5 + tokens / 300}" for tokens in (1, 64, 4096)]
    profile.write_text("gpu,model,tp,num_tokens,gemm_flop,gemm_ms\n" + "\n".join(lines))
    code, out, _ = call(capfd, "plan", "--model", model, "--gpu", "h200", "--profile", profile)
    assert code == 0
    assert f"GEMMs of the layers by {profile} instead: h200, m, tp 1, 3 sizes with " in out
    assert "GEMM times measured by others; no forward was measured" in out


def test_given_peaks_go_before_the_data_sheets(model: Path, capfd: Capture) -> None:
    options = ("--peak-tflops", 65, "--bandwidth", 0.3)
    code, out, _ = call(capfd, "plan", "--model", model, "--gpu", "v100", *options)
    assert code == 0
    assert "bf16 65.0 TFLOP/s, memory 32.0 GiB at 300 GB/s (data sheet, where not given)" in out


def test_no_torch_is_loaded(tmp_path: Path) -> None:
    args = ["plan", "--model", str(sparse(tmp_path, "DeepseekV3ForCausalLM")), "--gpu", "h200"]
    code = f"""
import sys
from ui.cli import chunkscope
chunkscope.main({args!r}, standalone_mode=False)
assert not {{"torch", "transformers", "scipy", "dash", "textual"}} & set(sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (["--gpu", "h2000"], "--gpu 'h2000' is not known: give H200 SXM or "),
        (
            ["--gpu", "t4"],
            "--gpu T4: its bfloat16 peak is not known: give --peak-tflops, or a GPU that has it:",
        ),
        (
            ["--gpu", "a100", "--dtype", "fp8"],
            "its fp8 peak is not known: give --peak-tflops, --dtype bf16, or",
        ),
        (["--gpu", "rtx 3090", "--tp", 2], "its link to other devices is not known: give --link-bandwidth"),
        (["--gpu", "h200", "--tp", 3], "--tp 3: 32 heads of"),
        (["--gpu", "h200", "--dtype", "int4"], "'int4' is not one of 'auto', 'bf16', 'fp8'"),
        (["--gpu", "h200", "--profile-gpu", "h100"], "--profile-gpu chooses among the GPUs of a profile"),
        (["--gpu", "h200", "--profile", "/none.csv"], "--profile /none.csv: no such file"),
        (["--gpu", "h200", "--page-size", 0], "--page-size"),
        ([], "Missing option '--gpu'"),
    ],
)
def test_a_wrong_option(model: Path, options: list[object], text: str, capfd: Capture) -> None:
    assert text in refused(capfd, "plan", "--model", model, *options)


def test_models_that_are_not_known_or_do_not_fit(tmp_path: Path, capfd: Capture) -> None:
    args = ("plan", "--gpu", "h100 sxm5", "--model")
    assert "no such file: give a config.json" in refused(capfd, *args, tmp_path / "none")
    unknown = write_model(tmp_path, architectures=["LlamaForCasualLM"])
    assert "'LlamaForCasualLM' is not known: give a model of LlamaForCausalLM or " in refused(
        capfd, *args, unknown
    )
    quantised = write_model(tmp_path, quantization_config={"quant_method": "awq"})
    assert "quant_method 'awq' is not known: give --dtype bf16 or fp8" in refused(capfd, *args, quantised)
    huge = write_model(tmp_path, **LARGE | {"num_hidden_layers": 400})
    line = refused(capfd, *args, huge)
    assert "leave no KV of 4,096 tokens: give --tp 4 or " in line
