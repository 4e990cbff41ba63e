"""Recorded runs keep every rule, whatever the options and the workload."""

import shutil
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings

from engine.config import EngineConfig
from engine.request import SamplingParams
from profiler.invariants import Status, check_trace
from tests.support.counts import ENGINE_EXAMPLES
from tests.support.recorded import record_run, rows_of
from tests.support.workloads import Arrival, scenarios
from traces.reader import open_trace

# What a run without a middle chunk, token, end or result gives nothing to check for.
UNTRIED = {"middle_never_emits", "cursor_completed", "token_sequence"}


@settings(max_examples=ENGINE_EXAMPLES // 20, deadline=None)
@given(scenarios())
def test_any_recorded_run_keeps_every_rule(scenario: tuple[EngineConfig, list[Arrival]]) -> None:
    """Of these traces meta.json tells no option; rules that need none are checked all the same."""
    with TemporaryDirectory() as directory:
        trace, kept = record_run(Path(directory) / "t.chunkscope", *scenario)
        report = check_trace(trace)
    assert report.having(Status.VIOLATED) == ()
    assert report.clean_end
    if kept.records:
        unchecked = report.having(Status.NOT_CHECKABLE)
        by_options = {rule.name for rule in unchecked if "meta.json does not tell" in (rule.reason or "")}
        assert len(by_options) == 8
        assert {rule.name for rule in unchecked} - by_options <= UNTRIED


def test_the_pairs_of_a_long_prompt_do_not_depend_on_its_cuts(tmp_path: Path) -> None:
    for chunk in (4096, 1000, -1):
        config = EngineConfig(chunked_prefill_size=chunk).resolve(
            max_total_tokens=13_000, context_length=13_000
        )
        todo = [Arrival(0, tuple(range(12_000)), SamplingParams(max_new_tokens=1))]
        trace, _ = record_run(tmp_path / f"{chunk}.chunkscope", config, todo)
        forwards = rows_of(trace, "forwards")
        assert sum(row["pairs_prefix"] + row["pairs_causal"] for row in forwards) == 72_006_000
        assert check_trace(trace).ok


def test_a_run_cut_short_anywhere_keeps_every_rule_and_shows_what_was_in_flight(tmp_path: Path) -> None:
    config = EngineConfig(chunked_prefill_size=8, enable_mixed_chunk=True, schedule_conservativeness=0.01)
    config = config.resolve(max_total_tokens=150, context_length=1000)
    sampling = SamplingParams(max_new_tokens=30, ignore_eos=False)
    todo = [Arrival(4 * i, tuple(range(i, i + 20)), sampling) for i in range(8)]
    path, rounds = tmp_path / "t.chunkscope", count()

    def copy() -> None:
        if (round_ := next(rounds)) % 9 == 0:
            shutil.copytree(path, tmp_path / f"cut-{round_}.chunkscope")

    whole, _ = record_run(path, config, todo, tick_ns=2_000_000, after_round=copy)
    in_flight = 0
    for cut in tmp_path.glob("cut-*.chunkscope"):
        trace = open_trace(cut)
        report = check_trace(trace)
        assert report.having(Status.VIOLATED) == ()
        assert not report.clean_end
        assert rows_of(trace, "forwards") == rows_of(whole, "forwards")[: trace.table("forwards").num_rows]
        in_flight += trace.table("requests").column("finish_ns").null_count
    assert in_flight
    assert check_trace(whole).ok
