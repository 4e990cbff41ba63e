"""The ledgers of every trace that the tests have elsewhere, against the oracle."""

import ast
import inspect
from pathlib import Path
from random import Random
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from engine.arithmetic import ForwardSums
from engine.batch import ForwardBatch, ForwardMode, Role
from engine.config import EngineConfig
from engine.observer import EventKind
from engine.request import Request, SamplingParams
from profiler.decode_plane import decode_plane
from profiler.ledger.stall_report import stall_report
from profiler.timeline.timeline import Timeline
from tests.support import ledger_oracle, oracle_extra, oracle_sums, oracle_tables
from tests.support.fitted_runs import COST as ROOFLINE
from tests.support.ledger_checks import gaps_agree, ledgers_agree, parts_of
from tests.support.ledger_oracle import LedgerOracle
from tests.support.oracle_extra import alone_ns
from tests.support.overlapped_trace import overlapped_tables
from tests.support.recorded import record_run
from tests.support.shapes import LLAMA_8B
from tests.support.silent_tables import silent_tables
from tests.support.simulated_trace import record_simulated
from tests.support.sound_trace import sound_tables
from tests.support.three_runs import record_three_runs
from tests.support.traces import MemoryTrace, decode_row, event, extend_row, forward, request
from tests.support.workloads import Arrival
from traces.reader import Trace, open_trace

TABLES = {"sound": sound_tables, "overlapped": overlapped_tables, "silent": silent_tables}


class TokenCost:
    """A prompt's token costs the more the more it attends to, and each row with logits the same."""

    def seconds(self, sums: ForwardSums) -> float:
        return 1e-6 * (20 + 3 * sums.tokens + 7 * sums.rows_with_logits) + 1e-9 * sums.pairs_prefix

    def forward_ns(self, batch: ForwardBatch) -> int:
        raise AssertionError("nothing is simulated")


COST = ("tokens and pairs", TokenCost())


@pytest.mark.parametrize("module", [ledger_oracle, oracle_extra, oracle_sums, oracle_tables])
def test_the_oracle_shares_nothing_with_what_it_judges(module: ModuleType) -> None:
    nodes = ast.walk(ast.parse(inspect.getsource(module)))
    imports = {str(node.module).split(".")[0] for node in nodes if isinstance(node, ast.ImportFrom)}
    assert imports.isdisjoint({"profiler", "ui"})


@pytest.mark.parametrize("name", TABLES)
def test_tables_by_hand(name: str) -> None:
    trace = MemoryTrace(TABLES[name]())
    assert ledgers_agree(trace)["OWN_DECODE"] > 0
    ledgers_agree(trace, COST)


def test_the_three_policies(tmp_path: Path) -> None:
    traces = {name: open_trace(path) for name, path in record_three_runs(tmp_path).items()}
    kinds = {name: ledgers_agree(trace) for name, trace in traces.items()}
    assert kinds["whole"]["OTHERS_PREFILL"] < kinds["chunked"]["OTHERS_PREFILL"]
    assert kinds["mixed"]["OTHERS_PREFILL"] == 0 < kinds["mixed"]["MIXED_EXTRA"]
    assert kinds["sweep"].total() == 0


@pytest.mark.parametrize("mixed", [False, True])
def test_a_simulated_run(tmp_path: Path, mixed: bool) -> None:
    config = EngineConfig(chunked_prefill_size=2048, enable_mixed_chunk=mixed)
    config = config.resolve(max_total_tokens=100_000, context_length=131_072)
    prompts = (300, 700, 400, 12_000, 5_000, 900)
    requests = [
        Request(rid, f"r{rid}", [rid] * prompt, SamplingParams(30, ignore_eos=True), rid * 20_000_000)
        for rid, prompt in enumerate(prompts)
    ]
    trace = record_simulated(tmp_path / "t.chunkscope", requests, config, ROOFLINE, shape=LLAMA_8B)
    kinds = ledgers_agree(trace, tops=(1,))
    assert kinds["MIXED_EXTRA" if mixed else "OTHERS_PREFILL"] > 20


@pytest.fixture(scope="module", params=[False, True], ids=["overlapped", "plain"])
def crowded(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Trace:
    """Chunks, mixed forwards, retractions and an abort in a pool too small for them."""
    config = EngineConfig(
        chunked_prefill_size=16,
        page_size=2,
        max_total_tokens=160,
        enable_mixed_chunk=True,
        schedule_conservativeness=0.01,
        max_running_requests=8,
        disable_overlap_schedule=request.param,
    ).resolve(max_total_tokens=160, context_length=1000)
    sampling = SamplingParams(max_new_tokens=40)
    todo = [
        Arrival(at * 3, tuple([7] * 20 + [at * 5 + i for i in range(10 * at)]), sampling) for at in range(5)
    ]
    todo.append(Arrival(2, (9,) * 70, sampling, abort_after=40))
    return record_run(tmp_path_factory.mktemp("run") / "t.chunkscope", config, todo)[0]


@pytest.mark.parametrize("split", [None, COST], ids=["tokens", "cost"])
def test_a_run_in_too_small_a_pool(crowded: Trace, split: tuple[str, TokenCost] | None) -> None:
    kinds = ledgers_agree(crowded, split)
    assert min(kinds[kind] for kind in ("RETRACTED", "RECOMPUTE", "MIXED_EXTRA")) > 0


def test_many_that_sit_out_together_take_nobodys_place() -> None:
    """Three times twelve decodes wait side by side, and one other the longest: four groups."""
    trace = _crowd(12)
    report = stall_report(trace)
    assert [(len(group.rids), group.lost_ns) for group in report.groups] == [
        (1, 103),
        (12, 12 * 50),
        (12, 12 * 48),
        (12, 12 * 47),
    ]
    ledgers_agree(trace, tops=(1, 2, 3, 4))


@pytest.mark.parametrize("per_row", [-40_000, 0, 3_000])
@pytest.mark.parametrize("per_kv_token", [-7, 0, 90])
@pytest.mark.parametrize("same_rows", [False, True])
def test_the_plane_through_decode_forwards(per_row: int, per_kv_token: int, same_rows: bool) -> None:
    rng = Random(per_row + per_kv_token)
    decodes = []
    for _ in range(30):
        rows, kv = 4 if same_rows else rng.randint(1, 40), rng.randint(100, 90_000)
        ns = 9_000_000 + per_row * rows + per_kv_token * kv + rng.randint(-50_000, 50_000)
        decodes.append((rows, kv, ns))
    plane = decode_plane(*(np.array(column) for column in zip(*decodes, strict=True)))
    assert plane is not None
    for rows, kv in ((1, 200_000), (80, 1_000), (300, 150_000)):  # unlike all of them
        (found,) = plane.ns(np.array([rows]), np.array([kv]))
        assert round(found) == alone_ns(rows, kv, decodes)


def test_the_two_splits_differ(crowded: Trace) -> None:
    by_tokens, by_cost = LedgerOracle(crowded), LedgerOracle(crowded, COST[1].seconds)
    assert [gap.by_kind for gap in by_tokens.gaps] != [gap.by_kind for gap in by_cost.gaps]
    assert [gap.gap_ns for gap in by_tokens.gaps] == [gap.gap_ns for gap in by_cost.gaps]


def test_a_timeline_gives_the_same_gaps(crowded: Trace) -> None:
    timeline = Timeline(crowded)
    for told in LedgerOracle(crowded).gaps:
        gap = timeline.gap(told.rid, told.token_index)
        assert gap is not None
        assert parts_of(gap) == told.parts


@pytest.mark.parametrize("column", ["start_ns", "launch_end_ns", "result_start_ns", "mode", "decode_tokens"])
def test_a_column_that_is_not_known_at_all(crowded: Trace, column: str) -> None:
    forwards = [{**forward, column: None} for forward in crowded.table("forwards").to_pylist()]
    tables = {name: crowded.table(name).to_pylist() for name in ("rows", "events", "requests")}
    trace = MemoryTrace({**tables, "forwards": forwards})
    kinds = gaps_agree(trace, LedgerOracle(trace))
    assert kinds["UNTOLD"] > 0 or not column.endswith("_ns")
    assert kinds["IDLE"] == 0 or not column.endswith("_ns")
    assert kinds["MIXED_EXTRA"] == 0 or column.endswith("_ns")


def _crowd(decodes: int) -> MemoryTrace:
    """Prefill forwards of 50, 48 and 47 ns, which all decodes sit out, between decode forwards of 5 ns."""
    lone, prompt, now = decodes, decodes + 1, 0
    next_token = [0] * (decodes + 1)
    forwards: list[dict[str, Any]] = []
    rows, events = [], []
    for prefill_ns, with_lone in ((50, True), (48, False), (47, True), (0, False)):
        decode = len(forwards)
        forwards.append(_forward(decode, now, now + 5, ForwardMode.DECODE))
        now += 5
        for rid in range(decodes + with_lone):
            rows.append(decode_row(decode, rid, next_token[rid]))
            next_token[rid] += 1
        if prefill_ns:
            forwards.append(_forward(decode + 1, now, now + prefill_ns, ForwardMode.EXTEND))
            rows.append(extend_row(decode + 1, prompt, 10, role=Role.MIDDLE))
            events += [event(now, rid, EventKind.SIT_OUT, forward_id=decode + 1) for rid in range(decodes)]
            now += prefill_ns
    requests = [request(rid) for rid in range(lone + 2)]
    return MemoryTrace({"forwards": forwards, "rows": rows, "events": events, "requests": requests})


def _forward(forward_id: int, start_ns: int, end_ns: int, mode: ForwardMode) -> dict[str, Any]:
    """One whose host takes no time."""
    before = dict.fromkeys(("plan_end_ns", "launch_start_ns", "launch_end_ns"), start_ns)
    return forward(forward_id, start_ns, end_ns, mode, result_start_ns=end_ns, **before)
