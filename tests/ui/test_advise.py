"""`chunkscope advise` from end to end: what it recommends, that a rerun keeps the limits, what it refuses."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from profiler.summary import summarize
from tests.support.cli import call, refused, write_model, write_workload
from traces.meta import update_sealed_meta
from traces.reader import open_trace
from ui.cli import main

Capture = pytest.CaptureFixture[str]

SIZES = ("--chunked-prefill-size", "256,1024")
POOL = 60_000
MODEL = {
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "vocab_size": 32000,
    "max_position_embeddings": 8192,
}


class Run(NamedTuple):
    """What a trace was made of."""

    model: Path
    workload: Path
    trace: Path


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A stream of decodes, and two long prompts into it, on a simulated H200."""
    folder = tmp_path_factory.mktemp("advise")
    stream = [("d", i / 50, 100, 40) for i in range(10)]
    long = [("long", 0.1, 4000, 8), ("long", 0.4, 1500, 8)]
    lines = [
        {
            "rid": f"{name}{at}",
            "arrival_s": arrival_s,
            "prompt_tokens": prompt,
            "max_new_tokens": output,
            "ignore_eos": True,
        }
        for at, (name, arrival_s, prompt, output) in enumerate([*stream, *long])
    ]
    model, workload = write_model(folder, **MODEL), write_workload(folder / "w.jsonl", *lines)
    trace = folder / "t.chunkscope"
    simulate(Run(model, workload, trace), "--chunked-prefill-size", 2048)
    return Run(model, workload, trace)


@pytest.fixture
def trace(run: Run) -> Path:
    return run.trace


def simulate(run: Run, *options: object) -> None:
    """Record what `run` says with these options."""
    fixed = ("--gpu", "h200", "--max-total-tokens", POOL, "--model", run.model, "--workload", run.workload)
    with pytest.raises(SystemExit) as exit_:
        main(["run", "--executor", "simulated", *map(str, (*fixed, "-o", run.trace, *options))])
    assert exit_.value.code == 0


def advised(capfd: Capture, trace: Path, *options: object) -> dict[str, Any]:
    done = call(capfd, "advise", trace, *options, "--json")
    assert (done.code, done.err) == (0, ""), done.err
    return dict(done.json)


def row(told: dict[str, Any], chunk: int | None, mixed: bool = False, interval: int = 0) -> dict[str, Any]:
    wanted = {"chunk_tokens": chunk, "mixed": mixed, "interval": interval}
    (found,) = (each for each in told["rows"] if each["options"] == wanted)
    return dict(found)


def felt(trace: Path) -> tuple[float, float, float]:
    told = summarize(open_trace(trace))
    return told["itl_s"]["max"], told["itl_s"]["p99"], told["ttft_s"]["p99"]


def rerun(run: Run, path: Path, arguments: Sequence[object]) -> tuple[float, float, float]:
    """What the users of the same workload feel under other options."""
    simulate(run._replace(trace=path), *arguments)
    return felt(path)


def test_every_row_is_what_a_run_with_its_options_measures(
    run: Run, trace: Path, tmp_path: Path, capfd: Capture
) -> None:
    told = advised(capfd, trace, "--chunked-prefill-size", "512")
    assert told["cost"]["kind"] == "own"
    assert told["workload"]["kind"] == "all"
    policies = {(None, False, 0): (), (512, True, 0): ("--enable-mixed-chunk",)}
    policies[512, False, 1] = ("--prefill-decode-interval", 1)
    for options, arguments in policies.items():
        size = ("--chunked-prefill-size", options[0] or -1)
        name = f"{'-'.join(map(str, options))}.chunkscope"
        measured = rerun(run, tmp_path / name, [*size, *arguments])
        found = row(told, *options)
        priced = (found["longest_wait_s"], found["itl_p99_s"], found["ttft_p99_s"])
        assert priced == pytest.approx(measured, abs=1e-9)


def test_the_recommended_options_keep_the_limits_when_run_again(
    run: Run, trace: Path, tmp_path: Path, capfd: Capture
) -> None:
    free = advised(capfd, trace, *SIZES)
    plain, mixed, interval = row(free, 256), row(free, 256, mixed=True), row(free, 256, interval=1)
    assert mixed["longest_wait_s"] < interval["longest_wait_s"] < plain["longest_wait_s"] / 4
    limits = {
        "--itl-max": (mixed["longest_wait_s"] + interval["longest_wait_s"]) / 2,  # only mixed keeps it
        "--itl-p99": 1.1 * mixed["itl_p99_s"],
        "--ttft-p99": 1.1 * mixed["ttft_p99_s"],
    }
    told = advised(capfd, trace, *SIZES, *(f"{name}={value * 1e3:.4f}ms" for name, value in limits.items()))
    assert told["recommended"]["mixed"]
    assert told["binding"] == []
    assert all("itl_max_s" in r["breaks"] for r in told["rows"] if not r["options"]["mixed"])
    measured = rerun(run, tmp_path / "again.chunkscope", told["recommended"]["arguments"])
    for found, name in zip(measured, ("--itl-max", "--itl-p99", "--ttft-p99"), strict=True):
        assert found <= limits[name]


def test_an_impossible_limit_is_named(trace: Path, capfd: Capture) -> None:
    size = ("--chunked-prefill-size", 1024)
    code, out, err = call(capfd, "advise", trace, *size, "--itl-max", "10us", "--ttft-p99", "60")
    assert (code, err) == (0, "")
    first = out.splitlines()[0]
    assert first.startswith("No option meets ITL max 0.01 ms: a decode forward alone takes ")
    assert "TTFT" not in first
    assert out.splitlines()[1].startswith("Without limits it is --chunked-prefill-size ")
    told = advised(capfd, trace, *size, "--ttft-p99", "1ms")
    assert told["recommended"] is None
    assert told["binding"][0]["limit"] == "ttft_p99_s"
    assert told["answer"].startswith("No option meets TTFT p99 1 ms: the least TTFT p99 is ")


def test_smaller_chunks_are_tried_while_they_may_keep_a_limit(trace: Path, capfd: Capture) -> None:
    free = row(advised(capfd, trace, "--chunked-prefill-size", 128), 128, mixed=True)
    limit_s = 0.3 * free["longest_wait_s"] + 0.7 * free["decode_forward_s"]
    told = advised(capfd, trace, "--itl-max", f"{limit_s:.6f}")
    assert min(r["options"]["chunk_tokens"] or 9999 for r in told["rows"]) < 128
    assert told["recommended"]["chunk_tokens"] < 128


def test_people_get_words_first_and_the_table_second(trace: Path, capfd: Capture) -> None:
    code, out, err = call(capfd, "advise", trace, *SIZES, "--itl-max", "60ms", "--page-size", 16)
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[0].startswith("Take --chunked-prefill-size ")
    table = next(at for at, line in enumerate(lines) if line.startswith("options"))
    assert any(line.startswith("Longest decode wait ") for line in lines[:table])
    assert sum(line.startswith("→ ") for line in lines[table:]) == 1
    assert any(line.startswith("  whole prompts") for line in lines[table:])
    assert "the run's own simulated cost model" in out
    assert "…" not in out


def test_a_column_of_which_nothing_is_known_is_left_out(run: Run, tmp_path: Path, capfd: Capture) -> None:
    bare = tmp_path / "bare.chunkscope"
    simulate(run._replace(trace=bare))
    assert "tokens" in call(capfd, "advise", bare, *SIZES).out
    hardware = open_trace(bare).meta["hardware"]
    peaks = {key: value for key, value in hardware["peaks"].items() if key != "memory_bytes"}
    update_sealed_meta(bare, {"hardware": hardware | {"peaks": peaks}})
    lines = call(capfd, "advise", bare, *SIZES).out.splitlines()
    head = next(line for line in lines if line.startswith("options"))
    assert "tions" in head
    assert "tokens" not in head
    assert any(line.startswith("KV tokens ") and "memory" in line for line in lines)


def test_a_sweep_is_priced_by_a_standard_workload(run: Run, tmp_path: Path, capfd: Capture) -> None:
    closed = tmp_path / "closed.chunkscope"
    simulate(run._replace(trace=closed))
    update_sealed_meta(closed, {"workload": {"kind": "closed"}})
    size = ("--chunked-prefill-size", 2048)
    told = advised(capfd, closed, *size)
    assert told["workload"] == {
        "kind": "standard",
        "requests": 7,
        "of_requests": 7,
        "longest_prompt_tokens": 8_182,
        "left_out": 0,
        "open_ended": 0,
        "shared_prefixes": True,
    }
    out = call(capfd, "advise", closed, *size).out
    assert (
        "a standard one, as the trace's requests do not arrive by themselves: while 6 requests decode" in out
    )
    told = advised(capfd, closed, run.trace, *size)
    assert told["workload"]["kind"] == "all"


def test_a_standard_workload_shows_what_the_long_prompt_costs_at_any_chunk(
    run: Run, tmp_path: Path, capfd: Capture
) -> None:
    closed = tmp_path / "closed.chunkscope"
    simulate(run._replace(trace=closed))
    update_sealed_meta(closed, {"workload": {"kind": "closed"}})
    told = advised(capfd, closed, "--chunked-prefill-size", "64,4096")
    for chunk in (64, 4096):
        found = row(told, chunk, mixed=True)
        assert found["longest_wait_s"] == pytest.approx(found["last_forward_s"], rel=0.1)
    whole, half = row(told, None)["activation_bytes"], row(told, 4096)["activation_bytes"]
    assert whole == pytest.approx(half * (8_182 + 6 * 64) / 4096)  # all prompts fit one forward


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (["--itl-max", "soon"], "'soon' is no duration: give one like 200ms, 2s or 0.2"),
        (["--itl-max", "0"], "'0' is no duration"),
        (["--ttft-p99", "-2s"], "'-2s' is no duration"),
        (["--itl-p99", "nan"], "'nan' is no duration"),
        (["--itl-p99", "."], "'.' is no duration"),
        (["--chunked-prefill-size", "big"], "'big' is no list of tokens: give sizes like 512,1024"),
        (["--chunked-prefill-size", "0,512"], "give sizes from 1 to "),
        (
            ["--chunked-prefill-size", "500", "--page-size", 16],
            "500 is no multiple of --page-size 16: give 496",
        ),
        (["--page-size", 0], "--page-size"),
        (["--page-size", 1 << 20], "holds no page of 1048576 tokens"),
        (["--costs", "nowhere"], "nowhere"),
    ],
)
def test_nonsense_gets_one_line(trace: Path, options: list[object], text: str, capfd: Capture) -> None:
    assert text in refused(capfd, "advise", trace, *options)


def test_a_folder_that_is_no_trace_gets_one_line(tmp_path: Path, capfd: Capture) -> None:
    assert "not a chunkscope trace" in refused(capfd, "advise", tmp_path)
    assert "TRACE" in refused(capfd, "advise")
