"""The workload options, and what is said of a file before it runs."""

import json
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from engine.workload import Workload, load_workload
from ui.workload_options import about_workload, lowered_lines, workload_lines, workload_options


def load(tmp_path: Path, text: str, **options: Any) -> Workload:
    path = tmp_path / "w"
    path.write_text(text)
    return load_workload(path, vocab_size=100, **options)


def test_a_record_is_summed_up(tmp_path: Path) -> None:
    workload = load(tmp_path, "arrived_at,num_prefill_tokens,num_decode_tokens\n0.5,1000,1\n2,234,0\n1,0,3\n")
    assert list(workload_lines(workload)) == [
        "Vidur trace: 2 requests in 1.50 s, 1,234 prompt tokens, 2 output tokens",
        "Left out: 1 request without a prompt token, first on line 4",
        "1 request without an output token, first on line 3: asked for one, which any prefill samples",
    ]
    assert about_workload(workload, limit=2, time_scale=0.5) == {
        "path": str(tmp_path / "w"),
        "format": "Vidur trace",
        "requests": 2,
        "limit": 2,
        "time_scale": 0.5,
    }


def test_a_record_without_arrivals_says_so(tmp_path: Path) -> None:
    workload = load(tmp_path, "num_prefill_tokens,num_decode_tokens\n7,1\n")
    assert list(workload_lines(workload)) == [
        "Vidur trace: 1 request at once, 7 prompt tokens, 1 output token",
        "The file has no arrival times: all requests arrive at the start",
    ]


def test_outputs_that_may_end_sooner_are_a_limit(tmp_path: Path) -> None:
    lines = [{"rid": "a", "prompt_tokens": 4, "ignore_eos": True}, {"rid": "b", "prompt_tokens": 4}]
    (line,) = workload_lines(load(tmp_path, "\n".join(map(json.dumps, lines))))
    assert line == "Chunkscope workload: 2 requests at once, 8 prompt tokens, at most 256 output tokens"


def test_a_stop_token_may_end_an_output_unless_no_token_does(tmp_path: Path) -> None:
    line = {"rid": "a", "prompt_tokens": 4, "max_new_tokens": 9, "ignore_eos": True, "stop_token_ids": [1]}
    workload = load(tmp_path, json.dumps(line))
    (said,) = workload_lines(workload)
    assert said.endswith("4 prompt tokens, at most 9 output tokens")
    workload.requests[0].max_new_tokens = 5  # as it is lowered where no more fit
    (said,) = workload_lines(workload, tokens_end_outputs=False)
    assert said.endswith("4 prompt tokens, 5 output tokens")


def test_of_many_lowered_requests_the_first_are_named(tmp_path: Path) -> None:
    workload = load(tmp_path, "num_prefill_tokens,num_decode_tokens\n" + "7,9\n" * 5)
    for request in workload.requests:
        request.max_new_tokens = 4
    assert list(lowered_lines(workload, workload.requests[:3])) == [
        f"{tmp_path / 'w'}:{line}: max_new_tokens lowered to 4, which fits" for line in (2, 3, 4)
    ]
    assert list(lowered_lines(workload, workload.requests))[3:] == ["The same for 2 requests more"]
    assert not list(lowered_lines(workload, []))


@click.command()
@workload_options()
def command(**options: Any) -> None:
    click.echo(repr(options))


@pytest.mark.parametrize(
    ("args", "text"),
    [
        (["--workload", "w", "--limit", "5", "--time-scale", "0.5"], "'limit': 5, 'time_scale': 0.5"),
        (["--workload", "w"], "'limit': None, 'time_scale': 1.0"),
        (["--limit", "5"], "Missing option '--workload'"),
        (["--workload", "w", "--limit", "0"], "--limit"),
        (["--workload", "w", "--time-scale", "fast"], "'fast' is not a valid float"),
    ],
)
def test_the_options(args: list[str], text: str) -> None:
    result = CliRunner().invoke(command, args)
    assert text in result.output
    assert result.exit_code == (0 if "workload_path" in result.output else 2)
