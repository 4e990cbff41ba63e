"""`chunkscope run` from end to end, on a tiny model with random weights."""

import signal
from pathlib import Path

import pytest

from profiler.invariants.check import check_trace
from tests.support.cli import call, refused, start, wait_for_rows, write_model, write_workload
from traces.reader import open_trace
from ui.program import program

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return write_model(tmp_path)


@pytest.fixture
def workload(tmp_path: Path) -> Path:
    return write_workload(
        tmp_path / "w.jsonl",
        {"rid": "a", "prompt_tokens": 50, "max_new_tokens": 6, "ignore_eos": True},
        {"rid": "b", "prompt_tokens": 30, "max_new_tokens": 4, "ignore_eos": True},
        {"rid": "late", "arrival_s": 0.2, "prompt_token_ids": [1, 2, 3], "max_new_tokens": 2},
    )


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    return tmp_path / "t.chunkscope"


def endless(tmp_path: Path) -> Path:
    """A workload that takes minutes."""
    lines = [
        {"rid": f"r{i}", "prompt_tokens": 3, "max_new_tokens": 4000, "ignore_eos": True} for i in range(40)
    ]
    return write_workload(tmp_path / "endless.jsonl", *lines)


def test_a_run_leaves_a_sealed_trace_and_says_what_to_type_next(
    model: Path, workload: Path, trace: Path, capfd: Capture
) -> None:
    options = ["--chunked-prefill-size", 32, "--page-size", 4, "--enable-mixed-chunk", "--seed", 9]
    code, out, err = call(capfd, "run", "--model", model, "--workload", workload, *options, "-o", trace)
    assert (code, out) == (0, "")
    assert f"Next: {program()} stats {trace}" in err
    opened = open_trace(trace)
    assert opened.sealed
    assert opened.meta["model"]["load_format"] == "dummy"
    assert (opened.meta["engine"]["chunked_prefill_size"], opened.meta["engine"]["page_size"]) == (32, 4)
    assert (opened.meta["seed"], opened.meta["workload"]["kind"]) == (9, "open")
    requests = opened.table("requests").to_pylist()
    assert {r["name"]: (r["prompt_tokens"], r["output_tokens"]) for r in requests} == {
        "a": (50, 6),
        "b": (30, 4),
        "late": (3, 2),
    }
    assert {r["name"]: r["arrival_ns"] for r in requests} == {"a": 0, "b": 0, "late": 200_000_000}
    forwards = opened.table("forwards").to_pylist()
    assert min(f["plan_start_ns"] for f in forwards) >= 0
    # Both are queued before the first round: its forward cuts the first prompt while the second one waits.
    assert (forwards[0]["extend_tokens"], forwards[0]["waiting_reqs"]) == (32, 1)


def test_chunking_changes_no_output(model: Path, workload: Path, tmp_path: Path, capfd: Capture) -> None:
    counts = []
    for chunk in (-1, 16):
        trace = tmp_path / f"c{chunk}.chunkscope"
        args = ["run", "--model", model, "--workload", workload, "--chunked-prefill-size", chunk, "-o", trace]
        assert call(capfd, *args).code == 0
        counts.append(open_trace(trace).table("forwards")["extend_tokens"].to_pylist())
    assert max(counts[0]) == 80
    assert max(counts[1]) == 16
    assert sum(counts[0]) == sum(counts[1])


def test_threads_are_set_and_recorded(model: Path, workload: Path, trace: Path, capfd: Capture) -> None:
    import torch

    before = torch.get_num_threads()
    try:
        args = ["run", "--model", model, "--workload", workload, "--threads", 1, "-o", trace]
        assert call(capfd, *args).code == 0
    finally:
        torch.set_num_threads(before)
    assert open_trace(trace).meta["hardware"]["threads"] == 1


def test_a_clipped_request_is_named(model: Path, tmp_path: Path, trace: Path, capfd: Capture) -> None:
    workload = write_workload(tmp_path / "w.jsonl", {"rid": "a", "prompt_tokens": 20, "max_new_tokens": 500})
    args = ["run", "--model", model, "--workload", workload, "--max-total-tokens", 40, "-o", trace]
    code, _, err = call(capfd, *args)
    assert code == 0
    assert f"{workload}:1: max_new_tokens lowered to 18" in err


def test_a_stop_by_hand_keeps_the_trace(model: Path, tmp_path: Path, trace: Path) -> None:
    process = start("run", "--model", model, "--workload", endless(tmp_path), "-o", trace)
    wait_for_rows(trace, process)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert (process.returncode, out) == (130, "")
    assert err.splitlines()[-1] == f"chunkscope: interrupted; what was recorded is in {trace}"
    opened = open_trace(trace)
    assert opened.sealed
    assert opened.torn_bytes == 0
    assert opened.table("requests").num_rows == 40
    assert opened.meta["sealed"]["clean_end"]
    assert check_trace(opened).ok


def test_a_stop_by_hand_while_waiting_for_the_next_request(model: Path, tmp_path: Path, trace: Path) -> None:
    lines = [{"rid": "now", "prompt_tokens": 3, "max_new_tokens": 300}, {"rid": "b", "prompt_tokens": 3}]
    lines[1]["arrival_s"] = 3600
    process = start(
        "run", "--model", model, "--workload", write_workload(tmp_path / "w", *lines), "-o", trace
    )
    wait_for_rows(trace, process)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=30)
    assert process.returncode == 130
    assert open_trace(trace).sealed


# -- refusals ------------------------------------------------------------------------------------------------


def test_a_missing_model(tmp_path: Path, workload: Path, trace: Path, capfd: Capture) -> None:
    line = refused(capfd, "run", "--model", tmp_path / "none.gguf", "--workload", workload, "-o", trace)
    assert "none.gguf: no such file" in line


def test_an_unknown_architecture(tmp_path: Path, workload: Path, trace: Path, capfd: Capture) -> None:
    model = write_model(tmp_path, architectures=["MambaForCausalLM"])
    line = refused(capfd, "run", "--model", model, "--workload", workload, "-o", trace)
    assert "MambaForCausalLM" in line


def test_a_corrupt_gguf(tmp_path: Path, workload: Path, trace: Path, capfd: Capture) -> None:
    model = tmp_path / "m.gguf"
    model.write_bytes(b"GGUF" + b"\xff" * 100)
    assert str(model) in refused(capfd, "run", "--model", model, "--workload", workload, "-o", trace)


def test_a_corrupt_safetensors(tmp_path: Path, workload: Path, trace: Path, capfd: Capture) -> None:
    write_model(tmp_path)
    (tmp_path / "model.safetensors").write_bytes(b"\xff" * 100)
    line = refused(capfd, "run", "--model", tmp_path, "--workload", workload, "-o", trace)
    assert "model.safetensors" in line


def test_a_bad_workload_line(model: Path, tmp_path: Path, trace: Path, capfd: Capture) -> None:
    workload = write_workload(tmp_path / "w.jsonl", {"rid": "a", "prompt_tokens": 5}, {"rid": "b"})
    line = refused(capfd, "run", "--model", model, "--workload", workload, "-o", trace)
    assert f"{workload}:2: no prompt given" in line


def test_a_text_prompt_without_tokenizer(model: Path, tmp_path: Path, trace: Path, capfd: Capture) -> None:
    workload = write_workload(tmp_path / "w.jsonl", {"rid": "a", "prompt": "Once"})
    line = refused(capfd, "run", "--model", model, "--workload", workload, "-o", trace)
    assert f"{workload}:1: the model has no tokenizer" in line


def test_a_request_that_never_fits(model: Path, tmp_path: Path, trace: Path, capfd: Capture) -> None:
    lines = [{"rid": "a", "prompt_tokens": 5}, {"rid": "b", "prompt_tokens": 100, "arrival_s": 5}]
    workload = write_workload(tmp_path / "w.jsonl", *lines)
    args = ["run", "--model", model, "--workload", workload, "-o", trace]
    assert f"{workload}:2: request 'b'" in refused(capfd, *args, "--max-total-tokens", 64)
    write_workload(workload, {"rid": "long", "prompt_tokens": 4096})
    assert f"{workload}:1: request 'long'" in refused(capfd, *args)
    assert not trace.exists()


def test_a_missing_workload(model: Path, tmp_path: Path, trace: Path, capfd: Capture) -> None:
    line = refused(capfd, "run", "--model", model, "--workload", tmp_path / "none.jsonl", "-o", trace)
    assert "none.jsonl: no such file" in line


def test_an_output_that_exists_stays_as_it_is(
    model: Path, workload: Path, trace: Path, capfd: Capture
) -> None:
    trace.mkdir()
    (trace / "mine").write_text("mine")
    line = refused(capfd, "run", "--model", model, "--workload", workload, "-o", trace)
    assert "already exists" in line
    assert [file.name for file in trace.iterdir()] == ["mine"]


@pytest.mark.parametrize(
    ("output", "text"),
    [
        ("missing/t.chunkscope", "there is no folder"),
        ("w.jsonl/t.chunkscope", "w.jsonl"),
        ("/proc/t.chunkscope", "cannot be written"),
        ("t.trace", "ends in .chunkscope"),
        ("x" * 300 + ".chunkscope", "cannot be written"),
    ],
)
def test_an_output_that_cannot_be(
    model: Path, workload: Path, tmp_path: Path, output: str, text: str, capfd: Capture
) -> None:
    line = refused(capfd, "run", "--model", model, "--workload", workload, "-o", tmp_path / output)
    assert text in line


def test_the_output_is_checked_before_the_model_is_read(
    tmp_path: Path, workload: Path, capfd: Capture
) -> None:
    args = ["run", "--model", tmp_path / "none", "--workload", workload, "-o", tmp_path / "no/t.chunkscope"]
    assert "there is no folder" in refused(capfd, *args)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (["--page-size", 0], "--page-size 0 is below 1"),
        (["--chunked-prefill-size", 100, "--page-size", 16], "give 96"),
        (["--chunked-prefill-size", 0], "--chunked-prefill-size 0"),
        (
            ["--chunked-prefill-size", -1, "--enable-mixed-chunk"],
            "--enable-mixed-chunk needs chunked prefill",
        ),
        (["--schedule-policy", "newest"], "is not known: give fcfs"),
        (["--schedule-conservativeness", "nan"], "above 0"),
        (["--context-length", 4097], "is beyond the model's 4096"),
        (["--max-running-requests", -3], "--max-running-requests -3"),
        (["--page-size", "four"], "'four' is not a valid integer"),
        (["--load-format", "pickle"], "'pickle' is not one of"),
        (["--chunk", 3], "No such option '--chunk'"),
        (["--threads", 0], "--threads"),
    ],
)
def test_a_wrong_option(
    model: Path, workload: Path, trace: Path, options: list[object], text: str, capfd: Capture
) -> None:
    line = refused(capfd, "run", "--model", model, "--workload", workload, "-o", trace, *options)
    assert text in line
    assert not trace.exists()


def test_a_pool_beyond_memory(model: Path, workload: Path, trace: Path, capfd: Capture) -> None:
    args = ["run", "--model", model, "--workload", workload, "-o", trace, "--max-total-tokens", 10**13]
    assert "--max-total-tokens" in refused(capfd, *args)


def test_a_gpu_that_is_not_there(model: Path, workload: Path, trace: Path, capfd: Capture) -> None:
    import torch

    if torch.cuda.is_available():
        pytest.skip("this machine has a CUDA GPU")
    args = ["run", "--model", model, "--workload", workload, "-o", trace, "--device", "cuda"]
    assert "--device cuda" in refused(capfd, *args)


def test_options_that_are_missing(capfd: Capture) -> None:
    assert "Missing option '--model'" in refused(capfd, "run")
