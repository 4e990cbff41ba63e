"""Recorded runs of the real scheduler on an invented device, quick enough to fill a trace of any length.

Nothing is computed: a forward lasts as long as a rough cost of its tokens, with seeded scatter.
"""

import math
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import numpy as np

from engine.batch import ForwardBatch
from engine.config import EngineConfig
from engine.engine import Engine
from engine.executors.protocol import FinishedForward, ForwardResult
from engine.request import Request, SamplingParams
from engine.shapes import ModelShape
from engine.workload import random_ids, shared_prefix
from profiler.recorder import Recorder
from traces.reader import Trace, open_trace
from traces.writer import TraceWriter

__all__ = ["ROWS", "SHAPE", "record_episode"]

SHAPE = ModelShape(
    architecture="llama",
    name="Llama-3.1-8B",
    num_layers=32,
    hidden_size=4096,
    num_heads=32,
    num_kv_heads=8,
    head_dim=128,
    intermediate_size=14336,
    vocab_size=128256,
    max_position_embeddings=8192,
    rope_theta=5e5,
    rms_norm_eps=1e-5,
)
ELEMENT_BYTES = 2
PAGE_SIZE = 16
CONTEXT_LENGTH = 8192
ROWS = 8  # a forward's, on average
GROUPS = 8  # of requests that share the start of their prompts
SHARED_TOKENS = 256
LOOK_NS = 4_000  # each look at the clock takes this long


class Clock:
    """The run's time: a look costs a little, a forward what it lasts."""

    def __init__(self) -> None:
        self.t_ns = 0

    def now_ns(self) -> int:
        self.t_ns += LOOK_NS
        return self.t_ns

    def wait_until(self, t_ns: int) -> None:
        self.t_ns = max(self.t_ns, t_ns)


class InventedDevice:
    """Weights take 5 ms a forward, a token above 200 takes 22 us, KV that is read 0.4 us a token."""

    def __init__(self, clock: Clock, rng: np.random.Generator) -> None:
        self._clock = clock
        self._rng = rng

    def launch(self, batch: ForwardBatch) -> FinishedForward:
        start_ns = self._clock.now_ns()
        tokens, kv_tokens = len(batch.input_ids), int(batch.seq_lens.sum())
        cost_ns = 5_000_000 + 22_000 * max(0, tokens - 200) + 400 * kv_tokens
        self._clock.t_ns += round(cost_ns * self._rng.lognormal(0, 0.03))
        return FinishedForward(ForwardResult([1] * batch.num_rows, start_ns, self._clock.now_ns()))


def record_episode(path: Path, forwards: int, *, mixed: bool, seed: int, rows: int = ROWS) -> Trace:
    """A trace of exactly that many forwards, about `rows` rows each; requests that are left are aborted."""
    clock, rng = Clock(), np.random.default_rng((seed, 0))
    config = _config(rows, mixed)
    meta = {
        "provenance": "simulated",
        "engine": asdict(config),
        "model": {"name": SHAPE.name},
        "hardware": {"device": "none", "name": "invented device"},
        "seed": seed,
        "workload": {"kind": "open", "source": "benchmarks/make_trace.py"},
    }
    recorder = Recorder(
        TraceWriter(path, meta), SHAPE, clock=clock, element_bytes=ELEMENT_BYTES, simulated=True
    )
    engine = Engine(config, InventedDevice(clock, rng), clock=clock, observer=recorder)
    _drive(engine, clock, _requests(seed, _load(rows)), forwards)
    recorder.close(engine.cache.pool_state())
    return open_trace(path)


def _load(rows: int) -> float:
    """How much more tokens arrive, and a chunk has, than for 8 rows: both share out among more rows."""
    return math.sqrt(rows / ROWS)


def _config(rows: int, mixed: bool) -> EngineConfig:
    """Prefill forwards are short of rows, unless decode rows ride in them: the others make up for it."""
    pool = max(ROWS, rows) * 1280
    config = EngineConfig(
        chunked_prefill_size=round(512 * _load(rows)) // PAGE_SIZE * PAGE_SIZE,
        page_size=PAGE_SIZE,
        max_total_tokens=pool,
        max_running_requests=rows + 2 if mixed else max(1, rows * 4 // 3),
        schedule_conservativeness=0.2,  # so that some requests are retracted
        context_length=CONTEXT_LENGTH,
        enable_mixed_chunk=mixed,
        disable_overlap_schedule=True,
    )
    return config.resolve(max_total_tokens=pool, context_length=CONTEXT_LENGTH)


def _drive(engine: Engine, clock: Clock, requests: Iterator[Request], forwards: int) -> None:
    done, arriving = 0, next(requests)
    while done < forwards:
        while arriving.arrival_ns <= clock.t_ns:
            engine.submit(arriving)
            arriving = next(requests)
        if engine.step() is not None:
            done += 1
        elif not engine.has_work:
            clock.wait_until(arriving.arrival_ns)
    for rid in list(engine.requests):
        engine.abort(rid, "the episode ended")
    assert engine.step() is None


def _requests(seed: int, load: float) -> Iterator[Request]:
    """Without end: mostly short prompts, some of many chunks, in bursts and lulls; `load` times as many."""
    rng = np.random.default_rng((seed, 1))
    arrival_s, rid = 0.0, 0
    while True:
        per_s = load * (11.0 if arrival_s % 20 < 8 else 5.5)
        arrival_s += rng.exponential(1 / per_s)
        prompt = int(np.clip(rng.lognormal(np.log(450), 0.95), 16, 6000))
        output = int(np.clip(rng.lognormal(np.log(120), 0.6), 4, 400))
        shared = SHARED_TOKENS if prompt > 2 * SHARED_TOKENS and rng.random() < 0.4 else 0
        start = shared_prefix(shared, SHAPE.vocab_size, seed, f"group-{rng.integers(GROUPS)}")
        ids = start + random_ids(prompt - shared, SHAPE.vocab_size, seed, rid)
        sampling = SamplingParams(max_new_tokens=output)
        yield Request(rid, f"r{rid}", ids, sampling, round(arrival_s * 1e9))
        rid += 1
