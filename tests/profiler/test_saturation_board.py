"""The saturation board: its parts are those of the analyses, and a part that is lacking says why."""

from dataclasses import asdict, fields
from pathlib import Path

import pytest

from profiler.forward_model import fit_forward_model
from profiler.prefix_curve import prefix_curve
from profiler.price_sums import chunk_sums
from profiler.saturation_board import DRAWN_PER_MODE, SaturationBoard, saturation_board
from profiler.saturation_report import decode_report, saturation_report
from tests.support.recorded import TINY
from tests.support.three_runs import record_three_runs
from tests.support.traces import MemoryTrace, forward, prefill_trace
from traces.meta import update_sealed_meta
from traces.reader import Trace, open_trace

FEW = (("decode", 0, 20, 30), ("long", 40_000_000, 300, 4))
OPTIONAL = ("decode", "model", "plain", "behind", "memory", "operator_source")
FLOPS = ("flops_linear", "flops_attention_extend", "flops_attention_decode", "flops_head")
BYTES = ("bytes_weights", "bytes_kv_read", "bytes_kv_write", "bytes_activation")


def told_runs(folder: Path) -> dict[str, Path]:
    """Small traces whose meta.json tells their model."""
    paths = record_three_runs(folder, FEW)
    for path in paths.values():
        update_sealed_meta(path, {"model": {**asdict(TINY), "dtype": "float32"}})
    return paths


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Trace]:
    return {name: open_trace(path) for name, path in told_runs(tmp_path_factory.mktemp("board")).items()}


def lacking(board: SaturationBoard) -> set[str]:
    return {name for name in OPTIONAL if getattr(board, name) is None}


def test_a_run_has_every_part_and_each_is_that_of_its_analysis(traces: dict[str, Trace]) -> None:
    trace = traces["mixed"]
    board = saturation_board(trace)
    assert board.provenance == "simulated"
    assert lacking(board) == {"operator_source"}
    assert set(board.lacking) == {"operators", "roof"}
    assert board.report.found == saturation_report(trace).found
    assert board.decode is not None
    assert board.decode.sizes.equals(decode_report(trace).sizes)
    model = fit_forward_model(trace)
    assert board.model is not None
    assert board.model.terms == model.terms
    assert board.ridge_tokens == pytest.approx(model.curve.weights / model.curve.compute)
    assert board.modes["forwards"].sum() == trace.table("forwards").num_rows


def test_the_curves_are_the_models_over_the_sizes_that_were_fitted(traces: dict[str, Trace]) -> None:
    board = saturation_board(traces["mixed"])
    model, plain, behind = board.model, board.plain, board.behind
    assert model is not None
    assert plain is not None
    assert behind is not None
    assert (plain.prefix_tokens, behind.prefix_tokens) == (0, model.reach.prefix_tokens[1])
    for curve in (plain, behind):
        assert (curve.tokens[0], curve.tokens[-1]) == model.reach.tokens
        for tokens, time_s in zip(curve.tokens, curve.times_s, strict=True):
            assert time_s == model.seconds(chunk_sums(tokens, curve.prefix_tokens))
    assert all(late > soon for late, soon in zip(behind.times_s, plain.times_s, strict=True))


def test_a_sweep_has_no_decodes_and_no_prefix(traces: dict[str, Trace]) -> None:
    board = saturation_board(traces["sweep"])
    assert lacking(board) == {"decode", "behind", "operator_source"}
    assert "no forward here stands behind a prefix" in board.lacking["behind"]
    assert "decode rows alone" in board.lacking["decode"]
    assert board.plain is not None


@pytest.mark.parametrize(
    "trace", [MemoryTrace({}), prefill_trace([(8, 10**6)])], ids=["empty", "one forward"]
)
def test_what_a_trace_cannot_give_is_named_with_a_reason(trace: MemoryTrace) -> None:
    board = saturation_board(trace)
    assert lacking(board) == set(OPTIONAL)
    assert board.roof is None
    assert set(board.lacking) == {"decode", "model", "behind", "memory", "operators", "roof"}
    assert all(reason and "\n" not in reason for reason in board.lacking.values())
    assert board.ridge_tokens is None
    assert {field.name for field in fields(board)} >= {"forwards_above", "operators_above", "conventions"}


def test_points_above_the_roof_are_all_there_though_few_are_drawn() -> None:
    work = {**dict.fromkeys(FLOPS, 10**9), **dict.fromkeys(BYTES, 10**6)}
    forwards = [forward(i, 0, 1000 + i, decode_tokens=1, **work) for i in range(2 * DRAWN_PER_MODE)]
    meta = {
        "provenance": "simulated",
        "hardware": {"peaks": {"dtype": "float32", "flops_per_s": 1e9, "bytes_per_s": 1e9}},
    }
    board = saturation_board(MemoryTrace({"forwards": forwards}, meta))
    assert board.forwards.height == DRAWN_PER_MODE // 4
    assert board.forwards_above.height == 2 * DRAWN_PER_MODE
    assert board.forwards_above["reason"].n_unique() == 1


def test_a_curve_goes_over_whole_sizes_once() -> None:
    class PerToken:
        def seconds(self, sums: object) -> float:
            return float(sums.tokens)  # type: ignore[attr-defined]

        def forward_ns(self, batch: object) -> int:
            raise AssertionError

    curve = prefix_curve(PerToken(), 1, 10, 5)
    assert curve.tokens == tuple(range(1, 11))
    assert curve.times_s == tuple(float(size) for size in curve.tokens)
