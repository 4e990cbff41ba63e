"""`stats`, `check` and `sweep`, on recorded, broken and half-written traces."""

import os
import signal
from pathlib import Path
from typing import Any

import pytest

from profiler.invariants.check import RULES
from tests.support.cli import call, refused, start, wait_for_rows, write_model, write_workload
from tests.support.silent_tables import silent_tables
from tests.support.sound_trace import META, sound_tables
from traces.writer import TraceWriter
from ui.program import program

Capture = pytest.CaptureFixture[str]

STATS_KEYS = {
    "provenance",
    "requests",
    "forwards",
    "output_tokens_per_s",
    "ttft_s",
    "itl_s",
    "worst_stall",
    "saturation",
    "kv_pages_peak",
    "inflight_middle_chunks_max",
    "retractions",
}


@pytest.fixture
def recorded(tmp_path: Path, capfd: Capture) -> Path:
    """Two decodes and a prompt in three chunks."""
    trace = tmp_path / "t.chunkscope"
    decode = {"prompt_tokens": 5, "max_new_tokens": 30, "ignore_eos": True}
    workload = write_workload(
        tmp_path / "w.jsonl",
        {"rid": "a", **decode},
        {"rid": "b\n", **decode},
        {"rid": "long", "prompt_tokens": 90, "max_new_tokens": 3, "ignore_eos": True},
    )
    args = ["run", "--model", write_model(tmp_path), "--workload", workload, "-o", trace]
    assert call(capfd, *args, "--chunked-prefill-size", 40, "--enable-mixed-chunk").code == 0
    return trace


def write_trace(path: Path, tables: dict[str, list[dict[str, Any]]]) -> Path:
    """A sealed trace of these rows."""
    meta = {key: value for key, value in META.items() if key != "sealed"}
    with TraceWriter(path, meta) as writer:
        for table, rows in tables.items():
            writer.append(table, {key: [row.get(key) for row in rows] for key in _columns(rows)}, len(rows))
    return path


def _columns(rows: list[dict[str, Any]]) -> set[str]:
    return {key for row in rows for key in row}


def test_stats_as_json_has_what_scripts_rely_on(recorded: Path, capfd: Capture) -> None:
    code, out, err = call(capfd, "stats", recorded, "--json")
    assert (code, err) == (0, "")
    assert out.endswith("}\n")
    stats = call(capfd, "stats", recorded, "--json").json
    assert stats.keys() >= STATS_KEYS
    assert (stats["provenance"], stats["requests"], stats["retractions"]) == ("measured", 3, 0)
    assert stats["inflight_middle_chunks_max"] == 2  # planning overlaps the forward before
    assert stats["output_tokens_per_s"] > 0
    for spread in (stats["ttft_s"], stats["itl_s"]):
        assert 0 < spread["p50"] <= spread["p99"] <= spread["max"]
    worst = stats["worst_stall"]
    assert worst.keys() >= {"gap_s", "rid", "token_index", "forward_ids", "culprit_rids"}
    assert worst["gap_s"] == stats["itl_s"]["max"]
    assert stats["saturation"].keys() >= {"tokens", "low", "high", "status"}
    assert (stats["saturation"]["status"], stats["saturation"]["tokens"]) == ("too_few_points", None)


def test_stats_in_words_keep_a_name_on_its_line(recorded: Path, capfd: Capture) -> None:
    code, out, err = call(capfd, "stats", recorded)
    assert (code, err) == (0, "")
    facts = dict(line.split("  ", 1) for line in out.partition("\n\n")[0].splitlines())
    assert facts["requests"].strip() == "3 (3 LENGTH)"
    assert "MIXED" in facts["forwards"]
    assert "tokens/s" in facts["output"]
    assert "before token" in facts["longest gap"]
    assert "not known" in facts["saturation"]


def test_stats_tell_of_silences_that_had_not_ended(tmp_path: Path, recorded: Path, capfd: Capture) -> None:
    out = call(capfd, "stats", write_trace(tmp_path / "silent.chunkscope", silent_tables())).out
    facts = dict(line.split("  ", 1) for line in out.partition("\n\n")[0].splitlines())
    assert (
        facts["silent"].strip() == "2 decodes at the end, a for 70.0 ms so far; doc holds the half-done slot"
    )
    assert "\nsilent" not in call(capfd, "stats", recorded).out


def test_a_recorded_run_holds_every_rule(recorded: Path, capfd: Capture) -> None:
    code, out, err = call(capfd, "check", recorded)
    assert (code, err) == (0, "")
    assert out == f"{recorded}: {len(RULES)} rules held, 0 violated, 0 not checkable\n"


def test_a_violated_rule_is_named_with_its_first_place(tmp_path: Path, capfd: Capture) -> None:
    good = write_trace(tmp_path / "good.chunkscope", sound_tables())
    tables = sound_tables()
    tables["forwards"][2]["pages_free"] += 1
    bad = write_trace(tmp_path / "bad.chunkscope", tables)
    code, out, _ = call(capfd, "check", good, bad)
    assert code == 1
    assert f"{good}: " in out
    assert f"{bad}: " in out
    assert out.count("  violated: ") >= 1
    assert "first at forward 2" in out
    report = call(capfd, "check", good, bad, "--json")
    assert report.code == 1
    assert (report.json["ok"], [trace["ok"] for trace in report.json["traces"]]) == (False, [True, False])
    assert call(capfd, "check", good).code == 0


def test_rules_without_their_columns_are_listed(tmp_path: Path, capfd: Capture) -> None:
    tables = sound_tables()
    for row in tables["forwards"]:
        row["pages_private"] = None
    code, out, _ = call(capfd, "check", write_trace(tmp_path / "t.chunkscope", tables))
    assert code == 0
    assert "  not checkable: " in out
    assert "forwards.pages_private" in out


def test_a_killed_run_is_read_up_to_its_last_flush(tmp_path: Path, capfd: Capture) -> None:
    lines = [
        {"rid": f"r{i}", "prompt_tokens": 3, "max_new_tokens": 4000, "ignore_eos": True} for i in range(20)
    ]
    trace = tmp_path / "t.chunkscope"
    workload = write_workload(tmp_path / "w.jsonl", *lines)
    process = start("run", "--model", write_model(tmp_path), "--workload", workload, "-o", trace)
    wait_for_rows(trace, process)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate(timeout=30)
    assert process.returncode == -signal.SIGKILL
    with (trace / "rank-0/forwards.arrow").open("ab") as stream:
        stream.write(b"\xff" * 100)
    stats = call(capfd, "stats", trace, "--json")
    assert stats.code == 0
    assert stats.json["requests_by_finish"] == {"UNFINISHED": 20}
    assert stats.json["output_tokens"] > 0
    assert stats.json["torn_bytes"] >= 100
    assert "torn bytes" in stats.err
    check = call(capfd, "check", trace)
    assert check.code == 0
    assert "torn bytes" in check.out
    assert "did not come to a clean end" in check.out


def test_a_flipped_byte_is_bad_input(recorded: Path, capfd: Capture) -> None:
    file = recorded / "rank-0/rows.arrow"
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 0x10
    file.write_bytes(content)
    for command in ("stats", "check"):
        assert "rows.arrow" in refused(capfd, command, recorded)


def test_check_reads_the_tables_that_no_rule_reads(recorded: Path, capfd: Capture) -> None:
    file = recorded / "rank-0/pages.arrow"
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 0x10
    file.write_bytes(content)
    assert "pages.arrow" in refused(capfd, "check", recorded)


def test_a_truncated_trace_is_bad_input(recorded: Path, capfd: Capture) -> None:
    file = recorded / "rank-0/forwards.arrow"
    file.write_bytes(file.read_bytes()[:-50])
    assert "forwards.arrow" in refused(capfd, "stats", recorded)


@pytest.mark.parametrize("command", ["stats", "check"])
def test_what_is_no_trace(command: str, tmp_path: Path, capfd: Capture) -> None:
    assert "holds no meta.json" in refused(capfd, command, tmp_path)
    assert "no such trace" in refused(capfd, command, tmp_path / "none.chunkscope")
    (tmp_path / "file.chunkscope").touch()
    assert "a file, not a trace" in refused(capfd, command, tmp_path / "file.chunkscope")
    (tmp_path / "meta.json").write_text("{")
    assert "not JSON" in refused(capfd, command, tmp_path)


def test_a_sweep_is_a_trace_with_every_size_as_often_as_asked(tmp_path: Path, capfd: Capture) -> None:
    trace = tmp_path / "s.chunkscope"
    args = ["sweep", "--model", write_model(tmp_path), "--tokens", "4:300", "--repeats", 2, "-o", trace]
    code, out, err = call(capfd, *args)
    assert (code, out) == (0, "")
    assert f"Next: {program()} stats {trace}" in err
    stats = call(capfd, "stats", trace, "--json").json
    assert (stats["forwards"], stats["largest_forward_tokens"]) == (20, 300)
    assert (stats["saturation"]["num_sizes"], stats["saturation"]["num_points"]) == (10, 20)
    assert call(capfd, "check", trace).code == 0


@pytest.mark.parametrize(
    ("tokens", "text"),
    [("8", "LOW:HIGH"), ("9:8", "LOW:HIGH"), ("0:5", "LOW:HIGH"), ("8:5000", "context of 4096")],
)
def test_a_wrong_range_of_a_sweep(tokens: str, text: str, tmp_path: Path, capfd: Capture) -> None:
    trace = tmp_path / "s.chunkscope"
    args = ["sweep", "--model", write_model(tmp_path), "-o", trace]
    assert text in refused(capfd, *args, "--tokens", tokens)
    assert not trace.exists()
