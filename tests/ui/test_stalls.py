"""`chunkscope stalls`: answer, tables and JSON, over three policies."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from profiler.ledger.parts import PartKind
from profiler.ledger.request_ledgers import RequestLedgers
from profiler.tables import request_names
from tests.support.cli import ROOT, call, refused, write_model, write_workload
from tests.support.ledgers import FEW
from tests.support.three_runs import record_three_runs
from traces.reader import open_trace
from traces.writer import TraceWriter

Capture = pytest.CaptureFixture[str]
POLICIES = ("whole", "chunked", "mixed")
HEAVY = ("scipy", "torch", "dash", "textual")


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return record_three_runs(tmp_path_factory.mktemp("runs"), FEW)


@pytest.fixture(scope="module", params=POLICIES)
def trace(request: pytest.FixtureRequest, runs: dict[str, Path]) -> Path:
    return runs[request.param]


def told(capfd: Capture, *args: object) -> Any:
    done = call(capfd, "stalls", *args, "--json")
    assert (done.code, done.err) == (0, "")
    return done.json


def test_every_sum_in_json_is_the_sum_of_all_gaps(trace: Path, capfd: Capture) -> None:
    stalls = told(capfd, trace, "--top", 1000)
    opened = open_trace(trace)
    ledgers = RequestLedgers.of(opened, request_names(opened))
    gaps = {name: ledgers.gaps_of(rid) for rid, name in request_names(opened).items()}
    every = [gap for of in gaps.values() for gap in of]
    assert stalls["gaps"] == len(every)
    assert stalls["waiting_ns"] == sum(gap.gap_ns for gap in every)
    assert stalls["late_ns"] == sum(gap.late_ns for gap in every)
    for kind in PartKind:
        assert stalls["by_kind_ns"][kind.name] == sum(gap.sum_ns([kind]) for gap in every), kind
        assert sum(stalls["over_time"]["waiting_ns"][kind.name]) == stalls["by_kind_ns"][kind.name]
    assert stalls["longest"]["gap_ns"] == max(gap.gap_ns for gap in every)
    victims = {each["rid"]: (each["waiting_ns"], each["late_ns"]) for each in stalls["victims"]}
    assert victims == {
        name: (sum(gap.gap_ns for gap in of), sum(gap.late_ns for gap in of))
        for name, of in gaps.items()
        if of
    }
    costs: dict[str, int] = {}
    for chunk in (chunk for gap in every for chunk in gap.chunks):
        costs[chunk.name] = costs.get(chunk.name, 0) + chunk.in_gap_ns
    assert {each["rid"]: each["cost_ns"] for each in stalls["culprits"]} == costs
    assert sum(each["cost_ns"] for each in stalls["chunks"]) == sum(costs.values())
    assert stalls["provenance"] == open_trace(trace).meta["provenance"]


def test_every_key_is_defined_in_the_docs(runs: dict[str, Path], capfd: Capture) -> None:
    stalls = told(capfd, runs["chunked"], "--request", "decode-1", "--culprit", "long-1")
    text = (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8")
    assert [key for key in sorted(set(keys_of(stalls))) if f"`{key}`" not in text] == []


def keys_of(value: Any) -> Iterator[str]:
    """Keys of a document at any depth; those that name a kind or a budget are capitals."""
    if isinstance(value, dict):
        yield from (key for key in value if not key.isupper())
    for each in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from keys_of(each)


def test_the_wall_is_put_down_to_the_long_prompt(runs: dict[str, Path], capfd: Capture) -> None:
    longest, waiting = {}, {}
    for policy in POLICIES:
        stalls = told(capfd, runs[policy])
        wall = stalls["groups"][0]
        assert wall["rids"] == ["decode-1", "decode-2", "decode-3"]
        assert wall["culprits"][0]["rid"] == "long-1"
        assert stalls["culprits"][0]["rid"] == "long-1"
        longest[policy], waiting[policy] = stalls["longest"]["gap_ns"], stalls["waiting_ns"]
    assert longest["mixed"] < longest["chunked"] / 5
    assert waiting["mixed"] > waiting["chunked"] / 2  # the sum changes far less than the longest


def test_the_answer_stands_first_and_names_sum_and_longest(trace: Path, capfd: Capture) -> None:
    done = call(capfd, "stalls", trace, "--top", 2)
    assert (done.code, done.err) == (0, "")
    answer, *lines = done.out.splitlines()
    assert answer == told(capfd, trace)["answer"]
    assert re.fullmatch(
        r"[\d.]+ of [\d.]+ m?s of waiting went to .*; long-1 alone cost .*\. Worst .*\.", answer
    )
    text = "\n".join(lines)
    for head in ("where the waiting went", "worst tokens", "who waited", "culprits", "chunks"):
        assert head in text
    assert "all waits together" in text
    assert "the longest one" in text
    assert "decode-1–decode-3  ×3" in text
    assert f"{trace}, simulated" in text or f"{trace}, measured" in text
    assert "by tokens" in text


def test_a_requests_worst_waits_come_with_every_part(runs: dict[str, Path], capfd: Capture) -> None:
    request = told(capfd, runs["chunked"], "--request", "decode-1")["request"]
    assert request["rid"] == "decode-1"
    assert request["waiting_ns"] == sum(request["by_kind_ns"].values())
    for gap in request["worst"]:
        assert sum(part["part_ns"] for part in gap["parts"]) == gap["gap_ns"]
    ttft = request["ttft"]
    assert sum(part["part_ns"] for part in ttft["parts"]) == ttft["ttft_ns"]
    assert sum(ttft["by_kind_ns"].values()) == ttft["ttft_ns"] == ttft["first_token_ns"] - ttft["arrival_ns"]
    out = call(capfd, "stalls", runs["chunked"], "--request", "decode-1", "--top", 1).out
    assert "waiting in 23 gaps made decode-1's tokens late. Worst token: " in out.splitlines()[0]
    assert out.count("gap, parts sum exactly") == 1
    assert out.count("time to first token, parts sum exactly") == 1
    assert "others' prefill" in out
    assert "--enable-mixed-chunk" in out


def test_a_culprits_chunks_say_what_they_cost_whom(trace: Path, capfd: Capture) -> None:
    stalls = told(capfd, trace, "--culprit", "long-1", "--top", 1000)
    culprit = stalls["culprit"]
    [ranked] = [each for each in stalls["culprits"] if each["rid"] == "long-1"]
    assert culprit["cost_ns"] == ranked["cost_ns"] == sum(chunk["cost_ns"] for chunk in culprit["chunks"])
    ranked_chunks = {
        each["forward_id"]: each["cost_ns"] for each in stalls["chunks"] if each["rid"] == "long-1"
    }
    assert {chunk["forward_id"]: chunk["cost_ns"] for chunk in culprit["chunks"]} == ranked_chunks
    out = call(capfd, "stalls", trace, "--culprit", "long-1").out
    assert out.startswith("long-1 cost others ")
    assert len(re.findall(r"^long-1 \d+/\d+ ", out, re.MULTILINE)) == len(culprit["chunks"])


def test_what_would_change_a_wait_is_told_from_the_options_of_the_run(tmp_path: Path, capfd: Capture) -> None:
    trace = simulated(tmp_path / "t.chunkscope", capfd, chunk=-1)
    victim = told(capfd, trace)["longest"]["rids"][0]
    out = " ".join(call(capfd, "stalls", trace, "--request", victim).out.split())
    assert "With --enable-mixed-chunk and a --chunked-prefill-size decodes ride along in each chunk" in out


def test_request_and_culprit_may_be_asked_together(runs: dict[str, Path], capfd: Capture) -> None:
    out = call(capfd, "stalls", runs["mixed"], "--request", "decode-2", "--culprit", "long-2").out
    assert out.index("decode-2's tokens late") < out.index("long-2 cost others")


def test_a_model_may_split_forwards_and_is_named(tmp_path: Path, capfd: Capture) -> None:
    trace = simulated(tmp_path / "t.chunkscope", capfd)
    by_tokens, by_model = told(capfd, trace), told(capfd, trace, "--split", "model")
    assert (by_tokens["split"], by_model["split"]) == ("tokens", "the run's own cost model")
    assert by_model["ttft"]["split"] == by_model["split"]
    assert by_model["waiting_ns"] == by_tokens["waiting_ns"]
    assert by_model["by_kind_ns"] == by_tokens["by_kind_ns"]
    assert sum(c["cost_ns"] for c in by_model["culprits"]) == sum(c["cost_ns"] for c in by_tokens["culprits"])
    assert by_model["culprits"] != by_tokens["culprits"]
    assert "by the run's own cost model" in call(capfd, "stalls", trace, "--split", "model").out


def simulated(path: Path, capfd: Capture, chunk: int = 2_048) -> Path:
    """A decode, and prompts that share forwards behind prefixes of different lengths."""
    requests = [("decode", 0.0, 5, 60), ("a", 0.01, 3_000, 2), ("b", 0.01, 1_500, 2), ("c", 0.01, 700, 2)]
    keys = ("rid", "arrival_s", "prompt_tokens", "max_new_tokens")
    lines = [{**dict(zip(keys, each, strict=True)), "ignore_eos": True} for each in requests]
    workload = write_workload(path.parent / "w.jsonl", *lines)
    sizes = {"hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 16}
    model = write_model(path.parent, **sizes, num_attention_heads=16, num_key_value_heads=4)
    options = ("--executor", "simulated", "--gpu", "h200", "--max-total-tokens", 20_000)
    files = ("--model", model, "--workload", workload, "-o", path)
    done = call(capfd, "run", *options, "--chunked-prefill-size", chunk, *files)
    assert done.code == 0, done.err
    return path


def test_a_trace_without_gaps_is_no_error(tmp_path: Path, capfd: Capture) -> None:
    with TraceWriter(tmp_path / "empty.chunkscope", {"provenance": "simulated"}):
        pass
    done = call(capfd, "stalls", tmp_path / "empty.chunkscope")
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("No request gave two tokens")
    assert "where" not in done.out.partition("\n")[2]
    stalls = told(capfd, tmp_path / "empty.chunkscope")
    assert (stalls["gaps"], stalls["longest"], stalls["groups"]) == (0, None, [])


def test_bad_input_is_refused_in_one_line(runs: dict[str, Path], tmp_path: Path, capfd: Capture) -> None:
    trace = runs["chunked"]
    cases = [
        (["stalls", tmp_path / "no.chunkscope"], "no such trace"),
        (["stalls", trace, "--request", "nobody"], "has no request nobody: it has decode-1, decode-2"),
        (["stalls", trace, "--culprit", "a\nb"], "a\\nb"),
        (["stalls", trace, "--top", "0"], "--top"),
        (["stalls", trace, "--top", "many"], "--top"),
        (["stalls", trace, "--split", "luck"], "--split"),
        (["stalls", trace, "--split", "model"], f"{trace}: meta.json tells no model"),
    ]
    for args, words in cases:
        assert words in refused(capfd, *args)


def test_names_are_text(tmp_path: Path, capfd: Capture) -> None:
    hostile = "[red]x[/]\n\x1b]0;t\x07"
    trace = record_three_runs(tmp_path, [(hostile, 0, 20, 30), ("long\t1", 20_000_000, 600, 2)])["chunked"]
    stalls = told(capfd, trace, "--request", hostile)
    assert stalls["victims"][0]["rid"] == stalls["request"]["rid"] == hostile
    out = call(capfd, "stalls", trace).out
    assert "[red]x[/]\\n\\x1b]0;t\\x07" in out
    assert "long\\t1 alone cost" in out or "long\\t1 cost" in out


def test_nothing_heavy_is_loaded_to_split_by_tokens(runs: dict[str, Path]) -> None:
    code = (
        "import sys; from ui.cli import main\n"
        f"try: main(['stalls', {str(runs['chunked'])!r}, '--json'])\n"
        f"finally: print([name for name in {HEAVY!r} if name in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stderr.strip() == "[]"
