"""Three policies on one small workload, recorded on the hash executor under a clock that a cost moves.

A stand-in for the demo's traces where a picture needs some: six decodes, two long prompts, three short ones.
"""

from array import array
from collections.abc import Sequence
from pathlib import Path

from engine.batch import ForwardBatch
from engine.config import CHUNKING_OFF, EngineConfig
from engine.engine import Engine
from engine.executors.protocol import FinishedForward
from engine.request import Request, SamplingParams
from profiler.compare import CHUNKED, MIXED, WHOLE
from profiler.recorder import Recorder
from profiler.sweep import run_sweep
from tests.support.hash_executor import HashExecutor
from tests.support.recorded import TINY, TickClock
from traces.writer import TraceWriter

CHUNK_TOKENS = 128
POOL_TOKENS = 4096
MS = 1_000_000
POLICIES = {
    WHOLE: {"chunked_prefill_size": CHUNKING_OFF},
    CHUNKED: {"chunked_prefill_size": CHUNK_TOKENS},
    MIXED: {"chunked_prefill_size": CHUNK_TOKENS, "enable_mixed_chunk": True},
}
ARRIVALS = (
    *((f"decode-{i + 1}", 0, 20, 60) for i in range(6)),
    ("long-1", 60 * MS, 1200, 6),
    ("short-1", 90 * MS, 40, 6),
    ("long-2", 150 * MS, 500, 6),
    ("short-2", 200 * MS, 30, 6),
    ("short-3", 420 * MS, 30, 4),
)
"""Name, arrival in nanoseconds, tokens of prompt and output."""

Arrivals = Sequence[tuple[str, int, int, int]]


class CostlyExecutor:
    """A hash executor whose forwards last as long as their tokens cost: 5 ms, and 120 µs a token above 32."""

    def __init__(self, executor: HashExecutor, clock: TickClock) -> None:
        self._executor = executor
        self._clock = clock

    def launch(self, batch: ForwardBatch) -> FinishedForward:
        start_ns = self._clock.now_ns()
        result = self._executor.forward(batch)
        self._clock.t_ns += 5 * MS + 120_000 * max(0, len(batch.input_ids) - 32)
        result.start_ns, result.end_ns = start_ns, self._clock.now_ns()
        return FinishedForward(result)


def record_three_runs(folder: Path, arrivals: Arrivals = ARRIVALS) -> dict[str, Path]:
    """Traces `whole`, `chunked` and `mixed` of the arrivals, and `sweep`, in `folder`; sealed."""
    paths = {name: folder / f"{name}.chunkscope" for name in (*POLICIES, "sweep")}
    for name, options in POLICIES.items():
        config = EngineConfig(**options, disable_overlap_schedule=True)
        _record(paths[name], config, {"demo": name}, arrivals)
    _record(
        paths["sweep"],
        EngineConfig(chunked_prefill_size=CHUNKING_OFF, disable_overlap_schedule=True),
        {"kind": "closed"},
    )
    return paths


def _record(
    path: Path, config: EngineConfig, workload: dict[str, str], arrivals: Arrivals | None = None
) -> None:
    """A run of the arrivals; without, a sweep."""
    config = config.resolve(max_total_tokens=POOL_TOKENS, context_length=POOL_TOKENS)
    clock = TickClock(20_000)
    executor = CostlyExecutor(HashExecutor(POOL_TOKENS, config.page_size), clock)
    engine_meta = {name: getattr(config, name) for name in config.__dataclass_fields__}
    meta = {"provenance": "simulated", "engine": engine_meta, "workload": workload}
    recorder = Recorder(TraceWriter(path, meta), TINY, clock=clock, element_bytes=2)

    def build(observer: Recorder | None) -> Engine:
        return Engine(config, executor, clock=clock, observer=observer)

    if arrivals is None:
        engine = run_sweep(
            build, recorder, [8, 16, 32, 48, 64, 96, 128, 256, 512, 1024], vocab_size=50, repeats=3, seed=0
        )
    else:
        engine = build(recorder)
        engine.run(_requests(arrivals))
    recorder.close(engine.cache.pool_state())


def _requests(arrivals: Arrivals) -> list[Request]:
    return [
        Request(
            rid,
            name,
            array("i", [(7 * rid + i) % 50 for i in range(prompt)]),
            SamplingParams(max_new_tokens=output, ignore_eos=True),
            arrival_ns,
        )
        for rid, (name, arrival_ns, prompt, output) in enumerate(arrivals)
    ]
