"""A sweep that was broken off goes on where it stopped, and its trace is one sound trace."""

import math
import shutil
from collections import Counter
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from engine.batch import ForwardBatch
from engine.clock import VirtualClock
from engine.engine import Engine
from engine.errors import ConfigError
from engine.executors.simulated import SimulatedExecutor
from engine.observer import EngineObserver, ForwardRecord
from profiler.invariants.check import check_trace
from profiler.recorder import Recorder, Writer
from profiler.sweep import Sweep
from profiler.sweep_cases import SweepCase
from profiler.sweep_continued import continue_trace, set_aside, whole_trace
from profiler.sweep_halfway import Halfway, halfway
from profiler.sweep_plan import SweepPlan
from profiler.tables import frame
from tests.support.recorded import TINY
from traces.errors import TraceError
from traces.meta import update_sealed_meta
from traces.ownership import DirectoryLock
from traces.reader import Trace, open_trace
from traces.writer import TraceWriter

VOCAB = 40
PLAN = SweepPlan((1, 64), (0, 96), batch=(1, 6), kv_tokens=20, repeats=2)
META = {"provenance": "simulated", "model": {"dtype": "float32"}, "hardware": {"threads": 1}}


class Microseconds:
    """A microsecond a token, and ten a forward."""

    def forward_ns(self, batch: ForwardBatch) -> int:
        return 10_000 + 1_000 * len(batch.input_ids)


class Broken(Exception):
    """Ends a sweep in its midst."""


def record(path: Path, *, forwards: int | None = None, before: Halfway | None = None) -> Sweep:
    """Record the sweep at `path`, or go on with it; broken off after so many forwards."""
    clock = VirtualClock()
    config = PLAN.config().resolve(max_total_tokens=PLAN.pool_tokens, context_length=4096)
    executor = SimulatedExecutor(Microseconds(), clock, VOCAB)
    sweep = Sweep(PLAN, vocab_size=VOCAB, num_sizes=4, halfway=before)
    meta = {**META, "workload": {"kind": "closed", "sweep": PLAN.as_json(sweep.cases)}}
    writer: Writer = continue_trace(path, meta, before) if before else TraceWriter(path, meta)
    clock.wait_until(before.end_ns if before else 0)
    recorder = Recorder(writer, TINY, clock=clock, simulated=True)
    seen = 0

    def step(record: ForwardRecord) -> None:
        nonlocal seen
        seen += 1
        if seen == forwards:
            raise Broken

    def build(observer: EngineObserver | None) -> Engine:
        return Engine(config, executor, clock=clock, observer=observer)

    try:
        engine = sweep.record(build, recorder, step)
    except Broken:
        recorder.close(clean_end=False)
    else:
        recorder.close(engine.cache.pool_state())
    return sweep


def measured(trace: Trace) -> Counter[SweepCase]:
    """How many forwards of each kind the trace holds, those of decode rows by the KV of their first."""
    forwards = frame(trace, "forwards")
    prompts = forwards.filter((pl.col("mode") == 0) & (pl.col("num_extend_seqs") == 1))
    decodes = forwards.filter((pl.col("mode") == 1) & (pl.col("kv_tokens") == 21 * pl.col("decode_tokens")))
    cases = [SweepCase(*row) for row in prompts.select("extend_tokens", "prefix_tokens").iter_rows()]
    cases += [SweepCase(rows, 20, decode=True) for rows in decodes["decode_tokens"]]
    return Counter(cases)


@pytest.mark.parametrize("forwards", [1, 3, 9, 20, 33])
def test_it_ends_as_one_sound_trace(forwards: int, tmp_path: Path) -> None:
    path = tmp_path / "s.chunkscope"
    record(path, forwards=forwards)
    before = halfway(open_trace(path))
    assert before.next_forward_id <= forwards
    sweep = record(path, before=before)
    assert sweep.complete
    trace = open_trace(path)
    assert measured(trace) == dict.fromkeys(sweep.cases, 2)
    report = check_trace(trace)
    assert [rule.name for rule in report.rules if rule.violations] == []
    assert "nothing_leaks" in {rule.name for rule in report.rules if rule.checked}
    ids = frame(trace, "forwards")["forward_id"].to_list()
    assert ids == list(range(len(ids)))
    assert trace.meta["resumed"] == [{"forward_id": before.next_forward_id, "run_ns": before.end_ns}]
    assert [path] == list(tmp_path.iterdir())


def test_it_may_be_broken_off_again_and_again(tmp_path: Path) -> None:
    path = tmp_path / "s.chunkscope"
    record(path, forwards=12)
    for _ in range(2):
        record(path, forwards=15, before=halfway(open_trace(path)))
    sweep = record(path, before=halfway(open_trace(path)))
    trace = open_trace(path)
    assert measured(trace) == dict.fromkeys(sweep.cases, 2)
    assert len(trace.meta["resumed"]) == 3
    assert not any(rule.violations for rule in check_trace(trace).rules)
    anchors = [anchor["run_ns"] for anchor in trace.meta["clock_anchors"]]
    assert anchors == sorted(anchors)
    assert len(anchors) == 4 + 1  # one where each part begins, and one at the end


def test_a_complete_sweep_has_nothing_left(tmp_path: Path) -> None:
    path = tmp_path / "s.chunkscope"
    whole = record(path)
    before = halfway(open_trace(path))
    again = Sweep(before.plan, vocab_size=VOCAB, halfway=before)
    assert again.complete
    assert again.cases == whole.cases
    for case in whole.cases:
        assert again.timings.repeats(case) == 2


def test_the_order_is_another_and_prompts_are_new_after_a_resume(tmp_path: Path) -> None:
    path = tmp_path / "s.chunkscope"
    record(path, forwards=20)
    first = frame(open_trace(path), "requests")["name"].to_list()
    before = halfway(open_trace(path))
    record(path, before=before)
    requests = frame(open_trace(path), "requests")
    assert requests["rid"].to_list() == list(range(len(requests)))
    assert requests["name"].to_list()[: before.next_rid] == first[: before.next_rid]


def test_a_take_over_that_broke_off_loses_nothing(tmp_path: Path) -> None:
    path = tmp_path / "s.chunkscope"
    record(path, forwards=20)
    assert whole_trace(path) == path
    aside = set_aside(path)
    path.rename(aside)
    assert whole_trace(path) == aside  # ended before the new trace was begun
    TraceWriter(path, META).close()
    assert whole_trace(path) == aside  # ended before all was copied
    sweep = record(path, before=halfway(open_trace(aside)))
    assert measured(open_trace(path)) == dict.fromkeys(sweep.cases, 2)
    assert not aside.exists()
    shutil.copytree(path, aside)
    assert whole_trace(path) == path  # ended before the old one was removed
    (path / "meta.json").unlink()
    assert whole_trace(path) == aside


def test_another_setting_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "s.chunkscope"
    record(path, forwards=20)
    before = halfway(open_trace(path))
    before.require_same(META)
    with pytest.raises(ConfigError, match="recorded with --dtype float32, this is bfloat16: give the same"):
        before.require_same({**META, "model": {"dtype": "bfloat16"}})
    with pytest.raises(ConfigError, match="--threads 1, this is 2"):
        before.require_same({**META, "hardware": {"threads": 2}})
    with pytest.raises(ConfigError, match="other assumptions about the GPU"):
        before.require_same({**META, "cost_model": {"kind": "roofline"}})
    with pytest.raises(ConfigError, match="other assumptions about the GPU"):
        before.require_same({**META, "hardware": {"threads": 1, "peaks": {"flops_per_s": 1e12}}})


def test_one_process_alone_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "s.chunkscope"
    record(path, forwards=20)
    before = halfway(open_trace(path))
    lock = DirectoryLock(path)
    with pytest.raises(TraceError, match="another process goes on with it: try again when that has ended"):
        record(path, before=before)
    lock.release()
    stale = replace(before, meta={**before.meta, "writer": {"pid": 1}})  # another was quicker, and has ended
    with pytest.raises(TraceError, match="another process goes on"):
        record(path, before=stale)
    assert [path] == list(tmp_path.iterdir())
    assert record(path, before=before).complete


def test_a_take_over_that_cannot_be_written_puts_the_trace_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "s.chunkscope"
    record(path, forwards=20)
    before = halfway(open_trace(path))

    def full(self: TraceWriter, table: str, columns: object, num_rows: int) -> None:
        raise TraceError(f"{self.path}: cannot write {table}: No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(TraceWriter, "append", full)
        with pytest.raises(TraceError, match="No space left"):
            record(path, before=before)
    assert [path] == list(tmp_path.iterdir())
    assert halfway(open_trace(path)).next_forward_id == before.next_forward_id


def test_another_trace_in_its_place_is_not_removed(tmp_path: Path) -> None:
    path = tmp_path / "s.chunkscope"
    record(path, forwards=20)
    path.rename(set_aside(path))
    TraceWriter(path, {**META, "workload": {"kind": "open"}}).close()
    with pytest.raises(TraceError, match="is another trace"):
        record(path, before=halfway(open_trace(whole_trace(path))))
    assert open_trace(path).meta["workload"] == {"kind": "open"}


@pytest.mark.parametrize("workload", [{"kind": "open"}, {"sweep": [1, 2]}, {"sweep": {"tokens": 5}}, None, 7])
def test_what_is_no_sweep_is_refused(workload: object, tmp_path: Path) -> None:
    path = tmp_path / "s.chunkscope"
    TraceWriter(path, META).close()
    update_sealed_meta(path, {"workload": workload})
    with pytest.raises(ConfigError, match="no trace of a sweep: give another -o, or leave out --resume"):
        halfway(open_trace(path))


SWEEP = PLAN.as_json(PLAN.cases(4))


@pytest.mark.parametrize(
    "told",
    [
        {"tokens": [64, 1]},
        {"tokens": [0, 64]},
        {"tokens": [1.5, 64]},
        {"tokens": None},
        {"prefixes": []},
        {"prefixes": [-5, 0]},
        {"prefixes": [96, 0]},
        {"batch": [0, 6]},
        {"batch": None},
        {"kv_tokens": 0},
        {"kv_tokens": True},
        {"kv_tokens": 10**12},
        {"repeats": 0},
        {"repeats": None},
        {"budget_s": -1.0},
        {"budget_s": math.nan},
        {"sizes": [1, 10**12]},
        {"sizes": [64, 1]},
        {"sizes": []},
        {"batches": [0]},
    ],
)
def test_a_plan_that_no_sweep_has_is_refused(told: dict[str, object]) -> None:
    assert SweepPlan.from_json(SWEEP)[0] == PLAN
    with pytest.raises((KeyError, TypeError, ValueError)):
        SweepPlan.from_json({**SWEEP, **told})


@pytest.mark.parametrize("name", ["clock_anchors", "resumed"])
@pytest.mark.parametrize("told", [None, 3, "x", [None], [{}], [{"run_ns": "x"}]])
def test_what_cannot_be_carried_over_is_refused(name: str, told: object, tmp_path: Path) -> None:
    path = tmp_path / "s.chunkscope"
    record(path, forwards=9)
    update_sealed_meta(path, {name: told})
    with pytest.raises(ConfigError, match=f"{name} in meta.json is not as recording writes it"):
        halfway(open_trace(path))


@pytest.mark.parametrize("told", [None, [], "x", {}])
def test_a_trace_that_does_not_tell_its_setting_is_of_another(told: object, tmp_path: Path) -> None:
    path = tmp_path / "s.chunkscope"
    record(path, forwards=9)
    update_sealed_meta(path, {"model": told})
    with pytest.raises(ConfigError, match="was recorded with --dtype None, this is float32"):
        halfway(open_trace(path)).require_same(META)
