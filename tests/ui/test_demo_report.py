"""The demo's table and sentences, from summaries."""

import copy
from io import StringIO
from typing import Any

import pytest
from rich.console import Console

from profiler.summary import summarize
from tests.support.traces import MemoryTrace, decode_row, forward, prefill_trace, request
from ui.demo.report import explain


def summary(gap_ns: int) -> dict[str, Any]:
    """One request whose tokens come at equal distances."""
    forwards = [forward(i, i * gap_ns, i * gap_ns + 1, decode_tokens=1, extend_tokens=0) for i in range(5)]
    rows = [decode_row(i, 0, i) for i in range(5)]
    return summarize(MemoryTrace({"forwards": forwards, "rows": rows, "requests": [request(0, name="a")]}))


SWEEP = summarize(prefill_trace([(tokens, tokens * 1000) for tokens in range(1, 5)]))


def printed(*policies: dict[str, Any], sweep: dict[str, Any] = SWEEP) -> str:
    console = Console(file=StringIO(), width=200)
    explain(console, policies, sweep)
    assert isinstance(console.file, StringIO)
    return console.file.getvalue()


def test_a_column_for_each_policy_and_a_dash_for_what_is_unknown() -> None:
    text = printed(summary(10_000_000), summary(11_000_000), summary(20_000_000))
    rows = {cells[1].strip(): [c.strip() for c in cells[2:5]] for cells in _cells(text)}
    assert rows["longest gap"] == ["10.0 ms", "11.0 ms", "20.0 ms"]
    assert rows["waiting in sum"] == ["40.0 ms", "44.0 ms", "80.0 ms"]
    assert rows["of request"] == ["a", "a", "a"]
    assert rows["memory peak"] == ["–", "–", "–"]
    assert rows["ITL p50"] == ["10.0 ms", "11.0 ms", "20.0 ms"]
    assert "The saturation point is not known" in text


def test_a_saturation_point_is_said_with_its_interval() -> None:
    found = copy.deepcopy(SWEEP)
    found["saturation"] |= {"status": "ok", "tokens": 126, "low": 108, "high": 159, "fit_kind": "parametric"}
    assert "126 tokens [108, 159]" in printed(*[summary(10_000_000)] * 3, sweep=found)


@pytest.mark.parametrize(
    ("whole_ns", "chunked_ns", "steady"), [(10, 14, True), (10, 16, False), (16, 10, False)]
)
def test_a_change_of_the_machine_is_said(whole_ns: int, chunked_ns: int, steady: bool) -> None:
    text = printed(summary(whole_ns * 10**6), summary(chunked_ns * 10**6), summary(10**7))
    assert ("speed changed meanwhile" in text) is not steady


def _cells(text: str) -> list[list[str]]:
    return [line.split("│") for line in text.splitlines() if line.startswith("│")]
