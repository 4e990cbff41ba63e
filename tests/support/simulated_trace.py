"""A workload recorded on the simulated executor, under a cost model of the test's own."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from engine.clock import VirtualClock
from engine.config import EngineConfig
from engine.engine import Engine
from engine.executors.simulated import CostModel, SimulatedExecutor
from engine.request import Request
from engine.shapes import ModelShape
from profiler.recorder import Recorder
from tests.support.recorded import TINY
from traces.reader import Trace, open_trace
from traces.writer import TraceWriter


def record_simulated(
    path: Path,
    requests: Sequence[Request],
    config: EngineConfig,
    cost: CostModel,
    *,
    shape: ModelShape = TINY,
    eos_token_ids: frozenset[int] = frozenset(),
    meta: Mapping[str, Any] | None = None,
) -> Trace:
    """The sealed trace of fresh copies of the requests. `config` must be resolved."""
    about = {
        "provenance": "simulated",
        "engine": asdict(config),
        "workload": {"kind": "open"},
        "model": {**asdict(shape), "dtype": "bfloat16"},
        **(meta or {}),
    }
    clock = VirtualClock()
    executor = SimulatedExecutor(cost, clock, shape.vocab_size)
    recorder = Recorder(TraceWriter(path, about), shape, clock=clock, element_bytes=2, simulated=True)
    engine = Engine(config, executor, clock=clock, observer=recorder, eos_token_ids=eos_token_ids)
    engine.run(request.fresh() for request in requests)
    recorder.close(engine.cache.pool_state())
    return open_trace(path)
