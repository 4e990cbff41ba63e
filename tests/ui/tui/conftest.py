"""A recorded trace, and applications whose clock stands still unless a test moves it."""

from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest

from profiler.advice import Advice, advise
from profiler.ledger.report import StallReport
from profiler.ledger.stall_report import stall_report
from profiler.saturation import Plateau
from profiler.saturation_board import SaturationBoard, saturation_board
from profiler.timeline.timeline import Timeline, open_timeline
from tests.support.cli import write_model, write_workload
from tests.support.three_runs import record_three_runs
from traces.reader import Trace, open_trace
from ui.cli import main


class Computed(NamedTuple):
    """A board and the advice for its trace."""

    board: SaturationBoard
    advice: Advice


@pytest.fixture(autouse=True)
def _one_terminal(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The same terminal everywhere, and a cache of the test's own."""
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLORTERM", "truecolor")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("NO_COLOR", raising=False)


@pytest.fixture(scope="session")
def traces(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return record_three_runs(tmp_path_factory.mktemp("three"))


@pytest.fixture
def chunked(traces: dict[str, Path]) -> Timeline:
    return open_timeline(traces["chunked"])


@pytest.fixture(scope="session")
def sized(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A simulated run whose prompts tell a saturation point, one by one; then one stalls six decodes."""
    folder = tmp_path_factory.mktemp("sized")
    sizes = {"hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 16, "vocab_size": 32000}
    heads = {"num_attention_heads": 16, "num_key_value_heads": 4}
    model = write_model(folder, **sizes, **heads, max_position_embeddings=16384)
    alone = (
        {
            "rid": f"alone-{i}",
            "arrival_s": float(i),
            "prompt_tokens": round(16 * 2 ** (i / 2)),
            "max_new_tokens": 1,
        }
        for i in range(20)
    )
    decodes = (
        {"rid": f"decode-{i}", "arrival_s": 30.0, "prompt_tokens": 64, "max_new_tokens": 60} for i in range(6)
    )
    long = {"rid": "long", "arrival_s": 30.05, "prompt_tokens": 12000, "max_new_tokens": 4}
    workload = write_workload(folder / "w.jsonl", *alone, *decodes, long)
    options = ("--chunked-prefill-size", -1, "--page-size", 16, "--max-total-tokens", 40_000)
    args = ("run", "--executor", "simulated", "--gpu", "h100", "--model", model, "--workload", workload)
    with pytest.raises(SystemExit) as ended:
        main([str(arg) for arg in (*args, *options, "-o", folder / "sized.chunkscope")])
    assert ended.value.code == 0
    return folder / "sized.chunkscope"


@pytest.fixture(scope="session")
def computed(sized: Path) -> Computed:
    """What the Saturation screen computes of that run, once for all tests, with round intervals.

    So an image of the screen does not hang on how a fit resamples.
    """
    trace = open_trace(sized)
    board, advice = saturation_board(trace), advise(trace, chunks=(256, 512, 704, 1024))
    found = board.report.found
    assert found.status == "ok"
    found = replace(
        found,
        tokens=690,
        low=600,
        high=830,
        last_below=None,
        plateau=Plateau(240_000.0, 236_000.0, 244_000.0),
    )
    report = replace(board.report, found=found, residual=0.005)
    point = replace(advice.point, tokens=690, low=600, high=830)
    return Computed(replace(board, report=report), replace(advice, point=point))


@pytest.fixture
def at_once(computed: Computed, monkeypatch: pytest.MonkeyPatch) -> None:
    """The screen's thread gets it without computing."""
    monkeypatch.setattr("profiler.saturation_board.saturation_board", lambda trace: computed.board)
    monkeypatch.setattr("profiler.advice.advise", lambda trace: computed.advice)


@pytest.fixture(scope="session")
def _reports() -> dict[Path, StallReport]:
    return {}


@pytest.fixture
def reported(_reports: dict[Path, StallReport], monkeypatch: pytest.MonkeyPatch) -> None:
    """The ledger of a trace is summed up once for all tests, however often it is opened."""

    def once(trace: Trace, top: int) -> StallReport:
        if trace.path not in _reports:
            _reports[trace.path] = stall_report(trace, min(top, 10))  # a list that a test can go through
        return _reports[trace.path]

    monkeypatch.setattr("profiler.timeline.timeline.stall_report", once)
