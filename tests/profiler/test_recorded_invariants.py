"""Recorded runs keep every rule, whatever the options and the workload."""

from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings

from engine.config import EngineConfig
from engine.request import SamplingParams
from profiler.invariants import Status, check_trace
from tests.support.recorded import record_run, rows_of
from tests.support.workloads import Arrival, scenarios


@settings(max_examples=20, deadline=None)
@given(scenarios())
def test_any_recorded_run_keeps_every_rule(scenario: tuple[EngineConfig, list[Arrival]]) -> None:
    with TemporaryDirectory() as directory:
        trace, kept = record_run(Path(directory) / "t.chunkscope", *scenario)
        report = check_trace(trace)
    assert [rule for rule in report.rules if rule.status is Status.VIOLATED] == []
    assert report.clean_end
    if kept.records:
        unchecked = {rule.name for rule in report.having(Status.NOT_CHECKABLE)}
        assert unchecked <= {"middle_never_emits", "cursor_completed", "token_sequence"}


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
