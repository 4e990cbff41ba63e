"""`chunkscope run` on workload files of others: what is said, recorded and refused."""

import json
from pathlib import Path

import pytest

from tests.support.cli import call, refused, write_model
from traces.reader import open_trace

AZURE = """TIMESTAMP,ContextTokens,GeneratedTokens
2023-11-16 18:17:04.0000000,30,2
2023-11-16 18:17:03.9000000,40,3
2023-11-16 18:17:03.9799600,0,3
2023-11-16 18:17:05.0000000,50,4
"""


@pytest.fixture
def workload(tmp_path: Path) -> Path:
    path = tmp_path / "trace"
    path.write_text(AZURE)
    return path


def test_a_recorded_trace_runs_as_recorded(
    tmp_path: Path, workload: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    trace = tmp_path / "t.chunkscope"
    args = ["run", "--model", write_model(tmp_path), "--workload", workload, "-o", trace]
    code, out, err = call(capfd, *args, "--limit", 2, "--time-scale", 0.5)
    assert (code, out) == (0, "")
    assert "Azure LLM inference trace: 2 requests in 50.0 ms, 70 prompt tokens, 5 output tokens\n" in err
    assert "Left out: 1 request without a prompt token, first on line 4\n" in err
    opened = open_trace(trace)
    assert [
        (r["name"], r["arrival_ns"], r["prompt_tokens"], r["output_tokens"])
        for r in sorted(opened.table("requests").to_pylist(), key=lambda r: r["rid"])
    ] == [("azure-2", 50_000_000, 30, 2), ("azure-3", 0, 40, 3)]
    assert opened.meta["workload"] == {
        "kind": "open",
        "path": str(workload),
        "format": "Azure LLM inference trace",
        "requests": 2,
        "limit": 2,
        "time_scale": 0.5,
    }


def test_shared_ids_are_found_by_the_cache(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    line = {"timestamp": 0, "input_length": 600, "output_length": 1, "hash_ids": [7, 8]}
    workload, trace = tmp_path / "w", tmp_path / "t.chunkscope"
    later = {**line, "timestamp": 1, "input_length": 513, "hash_ids": [7, 9]}
    workload.write_text(f"{json.dumps(line)}\n{json.dumps(later)}\n")
    args = ["--max-total-tokens", 2000, "--max-running-requests", 1, "-o", trace]
    code, _, err = call(capfd, "run", "--model", write_model(tmp_path), "--workload", workload, *args)
    assert code == 0, err
    requests = open_trace(trace).table("requests").to_pylist()
    assert {r["name"]: r["cached_tokens"] for r in requests} == {"mooncake-1": 0, "mooncake-2": 512}


@pytest.mark.parametrize(
    ("args", "text"),
    [
        ([], "trace:4: GeneratedTokens is"),
        (["--limit", 0], "--limit"),
        (["--time-scale", "nan"], "--time-scale nan: give a number above 0"),
        (["--time-scale", 1e9], "--time-scale"),
    ],
)
def test_a_wrong_file_or_option_is_one_line(
    tmp_path: Path, workload: Path, args: list[object], text: str, capfd: pytest.CaptureFixture[str]
) -> None:
    if not args:
        workload.write_text(AZURE.replace(",0,3\n", ",0,x\n"))
    trace = tmp_path / "t.chunkscope"
    line = refused(capfd, "run", "--model", write_model(tmp_path), "--workload", workload, "-o", trace, *args)
    assert text in line
    assert not trace.exists()


def test_a_prompt_beyond_the_context_names_the_mend(
    tmp_path: Path, workload: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    args = ["--workload", workload, "--context-length", 35, "-o", tmp_path / "t.chunkscope"]
    line = refused(capfd, "run", "--model", write_model(tmp_path), *args)
    assert f"{workload}:3: request 'azure-3': 40 prompt tokens reach the context length 35: raise" in line
    assert "--context-length" in line
    assert line.endswith("(1 other request cannot be served either)\n")
