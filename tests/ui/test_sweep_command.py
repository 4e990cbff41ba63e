"""`chunkscope sweep`: what it measures, for how long, on what, and how it goes on."""

import json
import os
import signal
import time
from pathlib import Path

import pytest

from profiler.tables import frame
from tests.support.cli import TINY_CONFIG, call, refused, start, wait_for_rows, write_model
from traces.reader import open_trace
from ui.errors import Interrupted
from ui.interrupt import StopRequest

Capture = pytest.CaptureFixture[str]

SIMULATED = ("--executor", "simulated", "--gpu", "H200")


def test_a_budget_ends_the_sweep(tmp_path: Path, capfd: Capture) -> None:
    trace = tmp_path / "s.chunkscope"
    args = ["sweep", "--model", write_model(tmp_path), "--tokens", "1:256", "--budget", "0.5s", "-o", trace]
    code, out, err = call(capfd, *args)
    assert (code, out) == (0, "")
    assert "Not covered: more than 256 tokens in a forward; prefixes; decode batches" in err
    opened = open_trace(trace)
    assert len(opened.meta["workload"]["sweep"]["sizes"]) in range(16, 25)
    begun = frame(opened, "forwards")["plan_start_ns"].to_list()
    assert begun
    assert max(begun) <= 500_000_000
    assert call(capfd, "check", trace).code == 0


def test_a_budget_that_is_too_short_says_what_it_missed(tmp_path: Path, capfd: Capture) -> None:
    trace = tmp_path / "s.chunkscope"
    args = ["sweep", "--model", write_model(tmp_path), "--budget", "0.001", "-o", trace]
    code, _, err = call(capfd, *args)
    assert code == 0
    assert "Not measured, as the budget ended first: 8 tokens, 11 tokens" in err


def test_prefixes_and_decodes_on_a_device(tmp_path: Path, capfd: Capture) -> None:
    trace = tmp_path / "s.chunkscope"
    args = ["sweep", "--model", write_model(tmp_path), "--tokens", "1:40", "--prefix", "0,100"]
    args += ["--decode", "--batch", "1:6", "--kv-tokens", "32", "--repeats", "1", "-o", trace]
    code, _, err = call(capfd, *args)
    assert code == 0, err
    assert "one prompt a forward, no prefix" in err
    assert "prefix of 100 tokens" in err
    assert "decode rows alone" in err
    assert "MiB of activations" in err
    forwards = frame(open_trace(trace), "forwards")
    assert set(forwards.filter(forwards["mode"] == 1)["decode_tokens"]) == set(range(1, 7))
    assert call(capfd, "check", trace).code == 0


def test_a_simulated_sweep_needs_one_repeat(tmp_path: Path, capfd: Capture) -> None:
    trace = tmp_path / "s.chunkscope"
    args = ["sweep", "--model", write_model(tmp_path), *SIMULATED, "--tokens", "1:2048", "--prefix", "0,512"]
    code, _, err = call(capfd, *args, "--decode", "--batch", "1:64", "-o", trace)
    assert code == 0, err
    assert "Simulated H200" in err
    assert "All times are simulated, none was measured." in err
    opened = open_trace(trace)
    assert opened.meta["provenance"] == "simulated"
    forwards = frame(opened, "forwards")
    prompts = forwards.filter((forwards["mode"] == 0) & (forwards["num_extend_seqs"] == 1))
    assert prompts.group_by("extend_tokens", "prefix_tokens").len()["len"].to_list() == [1] * 2 * 24
    assert call(capfd, "check", trace).code == 0


def test_an_interrupted_sweep_goes_on(
    tmp_path: Path, capfd: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace, model = tmp_path / "s.chunkscope", write_model(tmp_path)
    left = [20]

    def check(self: StopRequest) -> None:
        left[0] -= 1
        if not left[0]:
            raise Interrupted("interrupted")

    monkeypatch.setattr(StopRequest, "check", check)
    args = ["sweep", "--model", model, "--tokens", "1:40", "--prefix", "0,64", "-o", trace]
    code, _, err = call(capfd, *args)
    assert code == 130
    assert f"what was recorded is in {trace}; --resume goes on with it" in err
    assert "--dtype float32, this is bfloat16" in refused(capfd, *args, "--resume", "--dtype", "bfloat16")
    assert "--prefix: the sweep to go on with has 0,64" in refused(capfd, *args, "--resume", "--prefix", "9")
    code, _, err = call(capfd, "sweep", "--model", model, "--resume", "-o", trace)
    assert code == 0, err
    found = call(capfd, "stats", trace, "--json").json["saturation"]
    assert (found["num_sizes"], found["num_points"]) == (10, 30)
    assert call(capfd, "check", trace).code == 0
    assert "nothing is left to measure" in refused(capfd, *args, "--resume")


@pytest.mark.long
def test_a_killed_sweep_goes_on_and_a_living_one_is_left_alone(tmp_path: Path, capfd: Capture) -> None:
    trace, model = tmp_path / "s.chunkscope", write_model(tmp_path)
    args = ["sweep", "--model", model, "--tokens", "1:64", "--prefix", "0,64", "-o", trace]
    process = start(*args, "--repeats", 1000)
    wait_for_rows(trace, process)
    assert "still being written: try again when that has ended" in refused(capfd, *args, "--resume")
    time.sleep(0.3)  # until it is in the midst of a forward
    os.kill(process.pid, signal.SIGKILL)
    process.communicate(timeout=30)
    repeats = 60
    code, _, err = call(capfd, *args, "--resume", "--repeats", repeats)
    assert code == 0, err
    forwards = frame(open_trace(trace), "forwards")
    prompts = forwards.filter((forwards["mode"] == 0) & (forwards["num_extend_seqs"] == 1))
    counts = prompts.group_by("extend_tokens", "prefix_tokens").len()["len"].to_list()
    assert counts == [repeats] * 2 * 10
    assert call(capfd, "check", trace).code == 0


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (["--budget", "soon"], "'soon' is no number of seconds: give 90, or 90s."),
        (["--budget", "90m"], "no number of seconds"),
        (["--budget", "0"], "no number of seconds"),
        (["--budget", "-5"], "no number of seconds"),
        (["--budget", "5", "--repeats", "2"], "--repeats and --budget both say when to stop"),
        (["--budget", "5", *SIMULATED], "--budget is of measured sweeps"),
        (["--prefix", "0,x"], "'0,x' is no list of tokens: give 0,4096,32768."),
        (["--prefix", "-4"], "is no list of tokens"),
        (
            ["--prefix", "0,4000"],
            "--tokens: 1024 behind a prefix of 4000 is beyond the model's context of 4096",
        ),
        (["--decode"], "--decode needs to know how many rows: give --batch"),
        (["--batch", "1:8"], "--batch is of decode forwards: add --decode"),
        (["--kv-tokens", "8"], "--kv-tokens is of decode rows"),
        (["--decode", "--batch", "8"], "--batch '8' is no range of rows: give LOW:HIGH"),
        (["--decode", "--batch", "1:8", "--prefix", "9"], "--prefix is of prompts: add --tokens"),
        (["--decode", "--batch", "1:8", "--kv-tokens", "5000"], "--kv-tokens 5000 is beyond the model's"),
        (
            ["--decode", "--batch", "1:900000000", "--kv-tokens", "9"],
            "--batch: 900000000 rows of 9 KV tokens: ",
        ),
        (["--gpu", "H200"], "--gpu is for simulated runs: add --executor simulated"),
        ([*SIMULATED, "--threads", "1"], "--threads 1 is not for simulated sweeps"),
        ([*SIMULATED, "--tokens", "1:99999999"], "is beyond the model's context"),
        ([*SIMULATED, "--decode", "--batch", "1:90000000"], "leave no KV page: give a larger GPU"),
        ([*SIMULATED, "--decode", "--batch", "1:90000000"], "a larger --tp, or less --batch"),
        (["--resume"], "there is no such trace to go on with: leave out --resume"),
    ],
)
def test_what_cannot_be_measured(options: list[str], text: str, tmp_path: Path, capfd: Capture) -> None:
    trace = tmp_path / "s.chunkscope"
    args = ["sweep", "--model", write_model(tmp_path), "-o", trace, *options]
    assert text in refused(capfd, *args)


def test_simulated_time_has_an_end(tmp_path: Path, capfd: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ui.sweeping.MAX_TIME_S", 1e-3)
    trace = tmp_path / "s.chunkscope"
    code, _, err = call(capfd, "sweep", "--model", write_model(tmp_path), *SIMULATED, "-o", trace)
    assert code == 2
    assert "chunkscope: the sweep takes more than 1e-03 s of simulated time" in err.splitlines()[-1]
    assert call(capfd, "stats", trace).code == 0


def test_a_sweep_behind_a_link_goes_on(tmp_path: Path, capfd: Capture) -> None:
    trace, link = tmp_path / "s.chunkscope", tmp_path / "link.chunkscope"
    args = ["sweep", "--model", write_model(tmp_path), *SIMULATED]
    assert call(capfd, *args, "--tokens", "1:8", "-o", trace).code == 0
    link.symlink_to(trace)
    assert call(capfd, *args, "--resume", "--repeats", "2", "-o", link).code == 0
    assert link.is_symlink()
    assert len(frame(open_trace(trace), "forwards")) == 2 * 8
    assert not list(tmp_path.glob("*before-resume*"))


@pytest.mark.parametrize("executor", [SIMULATED, ()])
def test_a_sweep_within_a_sliding_window(executor: tuple[str, ...], tmp_path: Path, capfd: Capture) -> None:
    config = TINY_CONFIG | {"architectures": ["MistralForCausalLM"], "sliding_window": 100}
    model = tmp_path / "config.json"
    model.write_text(json.dumps(config))
    args = ["sweep", "--model", model, *executor, "--repeats", 1, "-o", tmp_path / "s.chunkscope"]
    text = "--tokens: 100 is beyond the model's sliding window of 100: give less"
    assert text in refused(capfd, *args, "--tokens", "1:100")
    code, _, err = call(capfd, *args, "--tokens", "90:99")
    assert code == 0, err
