"""What planning a round costs, against running and waiting requests.

    python benchmarks/scheduler.py [--rounds N] [--policy NAME ...] [--profile]

An engine without a model keeps so many requests decoding; each that ends is replaced from a queue that is
kept at its length. Times are those of `Scheduler.plan` alone, the median and 95th percentile over the
rounds, in microseconds. Under fcfs planning must not depend on how many wait. `--profile` says where the
time goes at 256 running requests, by function.
"""

import argparse
import cProfile
import itertools
import pstats
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median, quantiles

# A script's own directory comes first on the path, and holds an engine.py of its own.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from engine.batch import ForwardBatch
from engine.config import EngineConfig
from engine.engine import Engine
from engine.executors.protocol import FinishedForward, ForwardResult
from engine.request import Request, SamplingParams

RUNNING = (1, 16, 64, 256, 1024)
WAITING = (10, 100, 1_000, 10_000, 100_000)
PROMPT_TOKENS = 32
LONGEST_OUTPUT = 200
PROFILED_RUNNING, PROFILED_WAITING = 256, 1_000


class NoModel:
    """Answers every row with the same token, at once."""

    def launch(self, batch: ForwardBatch) -> FinishedForward:
        return FinishedForward(ForwardResult([1] * batch.num_rows, 0, 0))


class Server:
    """An engine that always has `running` requests decoding and `waiting` in its queue."""

    def __init__(self, running: int, waiting: int, policy: str) -> None:
        pool = (running + 1) * (PROMPT_TOKENS + LONGEST_OUTPUT + 64)
        config = EngineConfig(
            chunked_prefill_size=8192,
            page_size=16,
            schedule_policy=policy,
            max_running_requests=running,
            max_total_tokens=pool,
        ).resolve(max_total_tokens=pool, context_length=pool)
        self.engine = Engine(config, NoModel())
        self._waiting = waiting
        self._rids = itertools.count()
        self._fill(running + waiting)
        while len(self.engine.scheduler.running) < running - 1:
            self.step()

    def step(self) -> None:
        """One round, and as many new arrivals as were admitted."""
        self.engine.step()
        self._fill(self._waiting - len(self.engine.scheduler.waiting))

    def _fill(self, count: int) -> None:
        for rid in itertools.islice(self._rids, max(0, count)):
            # Outputs differ in length, so that requests end one by one.
            sampling = SamplingParams(1 + rid * 37 % LONGEST_OUTPUT, ignore_eos=True)
            self.engine.submit(Request(rid, f"r{rid}", [rid % 1000] * PROMPT_TOKENS, sampling))


def planning_us(running: int, waiting: int, policy: str, rounds: int) -> list[float]:
    """Microseconds of each of `rounds` plans, after as many unseen ones."""
    server = Server(running, waiting, policy)
    plan, times = server.engine.scheduler.plan, []

    def timed() -> object:
        start = time.perf_counter_ns()
        planned = plan()
        times.append((time.perf_counter_ns() - start) / 1e3)
        return planned

    server.engine.scheduler.plan = timed  # type: ignore[method-assign,assignment]
    for _ in range(2 * rounds):
        server.step()
    return times[rounds:]


def print_table(policy: str, rounds: int, cell: Callable[[list[float]], str]) -> None:
    """Rows are running requests, columns waiting ones."""
    print(f"\n{policy}: planning a round, us, median (p95)\n")
    print("| running | " + " | ".join(f"{n:,} waiting" for n in WAITING) + " |")
    print("|---" * (len(WAITING) + 1) + "|")
    for running in RUNNING:
        cells = [cell(planning_us(running, waiting, policy, rounds)) for waiting in WAITING]
        print(f"| {running:,} | " + " | ".join(cells) + " |", flush=True)


def print_profile(rounds: int) -> None:
    """The functions that planning spends its own time in."""
    server = Server(PROFILED_RUNNING, PROFILED_WAITING, "fcfs")
    profile, plan = cProfile.Profile(), server.engine.scheduler.plan
    server.engine.scheduler.plan = lambda: profile.runcall(plan)  # type: ignore[method-assign]
    for _ in range(rounds):
        server.step()
    print(f"\nProfile of {rounds} plans at {PROFILED_RUNNING} running, {PROFILED_WAITING:,} waiting, fcfs:")
    pstats.Stats(profile).sort_stats("tottime").print_stats(12)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--policy", action="append", help="default: fcfs")
    parser.add_argument("--profile", action="store_true")
    options = parser.parse_args()
    for policy in options.policy or ["fcfs"]:
        print_table(policy, options.rounds, lambda us: f"{median(us):.0f} ({quantiles(us, n=20)[-1]:.0f})")
    if options.profile:
        print_profile(options.rounds)


if __name__ == "__main__":
    main()
