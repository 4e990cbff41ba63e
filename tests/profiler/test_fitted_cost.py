"""A fitted model in the place of a roofline: run again with it, a workload takes what it took."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.arithmetic import ForwardSums, forward_sums
from engine.batch import ForwardBatch
from profiler.fitted_cost import FittedCost
from profiler.forward_fit_host import HostTime
from profiler.forward_model import fit_forward_model
from profiler.latency import latency
from profiler.price_rows import ForwardCostModel
from tests.support.fitted_runs import record_8b
from tests.support.ragged import Ragged, attention_shape
from traces.reader import Trace


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Trace:
    return record_8b(tmp_path_factory.mktemp("runs") / "first.chunkscope", 512)


@pytest.fixture(scope="module")
def cost(run: Trace) -> FittedCost:
    return FittedCost(fit_forward_model(run))


def total_ns(trace: Trace) -> int:
    ends = trace.table("forwards").column("end_ns").to_numpy()
    return int(np.max(ends))


def test_the_same_workload_again(run: Trace, cost: FittedCost, tmp_path: Path) -> None:
    again = record_8b(tmp_path / "again.chunkscope", 512, cost)
    assert total_ns(again) == pytest.approx(total_ns(run), rel=0.01)
    was, told = latency(run), latency(again)
    assert told.itl.p99 == pytest.approx(was.itl.p99, rel=0.03)
    assert told.ttft.p50 == pytest.approx(was.ttft.p50, rel=0.05)


def test_another_chunk_size_before_it_is_run(cost: FittedCost, tmp_path: Path) -> None:
    told = record_8b(tmp_path / "told.chunkscope", 1024, cost, enable_mixed_chunk=True)
    came = record_8b(tmp_path / "came.chunkscope", 1024, enable_mixed_chunk=True)
    assert latency(told).itl.max == pytest.approx(latency(came).itl.max, rel=0.05)
    assert total_ns(told) == pytest.approx(total_ns(came), rel=0.02)


def batch(extends: list[tuple[int, int]], decodes: list[int]) -> ForwardBatch:
    import torch

    rows = extends + [(prefix, 1) for prefix in decodes]
    return Ragged(attention_shape(1, 1, 2), 16, rows, len(decodes), torch.float32).batch


def test_a_planned_forward_takes_its_sums_and_the_gap(cost: FittedCost) -> None:
    planned = batch([(40, 30)], [100, 7])
    seconds = cost.seconds(forward_sums(planned))
    assert cost.forward_ns(planned) == round(seconds * 1e9)
    host = HostTime(overhead_ns=5_000, launch_gap_ns=700)
    hosted = FittedCost(replace(cost.model, host=host))
    assert hosted.forward_ns(planned) == round(seconds * 1e9) + 700
    assert hosted.seconds(forward_sums(planned)) == seconds
    assert hosted.host_overhead_ns == 5_000
    assert FittedCost(replace(cost.model, host=HostTime())).host_overhead_ns == 0


@settings(max_examples=settings().max_examples // 2)
@given(st.data())
def test_no_forward_is_free_and_more_takes_no_less(cost: FittedCost, data: st.DataObject) -> None:
    names = tuple(ForwardSums.__dataclass_fields__)
    some = data.draw(st.fixed_dictionaries({name: st.integers(0, 10**6) for name in names}))
    more = data.draw(st.fixed_dictionaries({name: st.integers(0, 10**6) for name in names}))
    model: ForwardCostModel = cost
    few = model.seconds(ForwardSums(**some))
    assert 0 < few <= model.seconds(ForwardSums(**{name: some[name] + more[name] for name in names}))


def test_meta_holds_the_whole_model(cost: FittedCost) -> None:
    told = cost.describe()
    assert told["kind"] == "fitted"
    assert told["expected_from"]["source"] == "peaks of H200 SXM"
    assert told["host"] == {"overhead_ns": 0, "launch_gap_ns": 0}
