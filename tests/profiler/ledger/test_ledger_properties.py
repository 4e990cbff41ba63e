"""Over any run, parts sum to their gaps exactly, sums are sums of parts, and the oracle agrees on both."""

from collections import Counter
from dataclasses import replace
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.arithmetic import ForwardSums, forward_sums
from engine.batch import ForwardBatch
from engine.clock import MonotonicClock
from engine.config import EngineConfig
from engine.engine import Engine
from engine.executors.device import DeviceExecutor
from engine.request import Request, SamplingParams
from engine.workload import random_ids
from profiler.recorder import Recorder
from tests.support.counts import ENGINE_EXAMPLES
from tests.support.ledger_checks import ALL, gaps_agree, ledgers_agree
from tests.support.ledger_oracle import LedgerOracle
from tests.support.recorded import record_run
from tests.support.seeded_workloads import seeded_workload
from tests.support.simulated_trace import record_simulated
from tests.support.tiny_llama import TINY_SHAPE, load_tiny
from tests.support.traces import MemoryTrace
from tests.support.wild_tables import wild_tables
from tests.support.workloads import Arrival, scenarios
from traces.reader import Trace, open_trace
from traces.writer import TraceWriter

RUNS = ENGINE_EXAMPLES // 10


class PairCost:
    """Nanoseconds by tokens, rows with logits and what is attended to."""

    def seconds(self, sums: ForwardSums) -> float:
        return 1e-9 * (4000 + 90 * sums.tokens + 50 * sums.rows_with_logits + 3 * sums.pairs_prefix)

    def forward_ns(self, batch: ForwardBatch) -> int:
        return round(1e9 * self.seconds(forward_sums(batch)))


COST = ("pairs", PairCost())


@settings(max_examples=RUNS, deadline=None)
@given(scenarios(), st.sampled_from([None, COST]))
def test_any_recorded_run(
    scenario: tuple[EngineConfig, list[Arrival]], split: tuple[str, PairCost] | None
) -> None:
    with TemporaryDirectory() as folder:
        ledgers_agree(record_run(Path(folder) / "t.chunkscope", *scenario)[0], split)


def test_simulated_runs(tmp_path: Path) -> None:
    """A plan begins at the nanosecond at which a result ended, and the host takes no time."""
    kinds: Counter[str] = Counter()
    for seed in range(RUNS):
        config, arrivals = seeded_workload(seed)
        requests = [each.request(rid, each.round * 20_000) for rid, each in enumerate(arrivals)]
        requests.sort(key=lambda request: request.arrival_ns)
        trace = record_simulated(tmp_path / f"{seed}.chunkscope", requests, config, COST[1])
        kinds += ledgers_agree(trace)
    assert kinds["PLAN"] == kinds["LAUNCH"] == kinds["RESULT"] == 0
    assert min(kinds["OTHERS_PREFILL"], kinds["RETRACTED"], kinds["RECOMPUTE"], kinds["MIXED_EXTRA"]) > 0


@pytest.mark.parametrize("overlapped", [False, True])
def test_decodes_that_sit_out(tmp_path: Path, overlapped: bool) -> None:
    config = EngineConfig(
        chunked_prefill_size=8,
        enable_mixed_chunk=True,
        schedule_conservativeness=0.01,
        disable_overlap_schedule=not overlapped,
    ).resolve(max_total_tokens=42, context_length=1000)
    decode = SamplingParams(max_new_tokens=16)
    short = [Arrival(0, tuple(range(at, at + 4)), decode) for at in (0, 20)]
    long = Arrival(1, tuple(range(24, 50)), replace(decode, max_new_tokens=1))
    trace, _ = record_run(tmp_path / "t.chunkscope", config, [*short, long])
    assert ledgers_agree(trace)["SIT_OUT"] > 0


@pytest.mark.parametrize("overlapped", [False, True])
def test_a_measured_run(tmp_path: Path, overlapped: bool) -> None:
    trace = _measured(tmp_path / "t.chunkscope", overlapped)
    kinds = ledgers_agree(trace)
    assert min(kinds["OWN_DECODE"], kinds["PLAN"], kinds["LAUNCH"], kinds["RESULT"]) > 50
    assert kinds["MIXED_EXTRA"] + kinds["MIXED_UNKNOWN"] > 0


def test_every_gap_of_tables_that_no_engine_would_write() -> None:
    kinds: Counter[str] = Counter()
    for seed in range(2 * RUNS):
        trace = MemoryTrace(wild_tables(Random(seed)))
        kinds += gaps_agree(trace, LedgerOracle(trace))
    assert len(kinds) == 18  # each kind of part was there


@pytest.mark.parametrize("seed", range(RUNS))
def test_the_sums_of_tables_that_no_engine_would_write(seed: int) -> None:
    trace = MemoryTrace(wild_tables(Random(seed), orderly=True))
    ledgers_agree(trace, COST if seed % 2 else None, tops=(5, ALL))


def _measured(path: Path, overlapped: bool) -> Trace:
    """Three decodes and two longer prompts on a tiny model."""
    loaded, clock = load_tiny(), MonotonicClock()
    config = EngineConfig(
        chunked_prefill_size=32,
        enable_mixed_chunk=True,
        page_size=4,
        disable_overlap_schedule=not overlapped,
    ).resolve(max_total_tokens=512, context_length=512)
    recorder = Recorder(TraceWriter(path, {"provenance": "measured"}), TINY_SHAPE, clock=clock)
    engine = Engine(config, DeviceExecutor(loaded, config, clock), clock=clock, observer=recorder)
    arrivals = ((0, 8, 24), (0, 12, 24), (0, 5, 24), (5, 90, 8), (9, 50, 8))
    for round_ in range(200):
        for rid, (at, prompt, output) in enumerate(arrivals):
            if at == round_:
                ids = random_ids(prompt, TINY_SHAPE.vocab_size, 0, rid)
                sampling = SamplingParams(max_new_tokens=output, ignore_eos=True)
                engine.submit(Request(rid, f"r{rid}", ids, sampling, clock.now_ns()))
        engine.step()
    assert not engine.has_work
    recorder.close(engine.cache.pool_state())
    return open_trace(path)
