"""Measures forward time against tokens: prompts of chosen lengths, one a forward, in an ordinary engine."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np

from engine.config import CHUNKING_OFF, EngineConfig
from engine.engine import Engine
from engine.errors import ConfigError
from engine.observer import EngineObserver, ForwardRecord
from engine.request import Request, SamplingParams
from engine.workload import random_ids

__all__ = ["BuildEngine", "run_sweep", "sweep_config", "sweep_sizes"]

BuildEngine = Callable[[EngineObserver | None], Engine]

_RANGE = re.compile(r"([0-9]{1,9}):([0-9]{1,9})")


def sweep_sizes(spec: str, count: int = 10) -> list[int]:
    """`count` different sizes from `"LOW:HIGH"` tokens in geometric steps, both ends included.

    All sizes of a range that holds fewer. Raises ConfigError when `spec` is no such range.
    """
    match = _RANGE.fullmatch(spec)
    low, high = (int(match[1]), int(match[2])) if match else (0, 0)
    if not 1 <= low <= high:
        raise ConfigError(f"--tokens {spec!r} is no range of tokens: give LOW:HIGH, like 8:1024")
    count = min(count, high - low + 1)
    sizes = [low]
    for steps in range(count - 1, 0, -1):
        sizes.append(max(sizes[-1] + 1, round(sizes[-1] * (high / sizes[-1]) ** (1 / steps))))
    return sizes


def sweep_config(largest: int, page_size: int = 1) -> EngineConfig:
    """Options for a sweep up to `largest` tokens: prompts whole, no prefix cache, one request at a time.

    The KV pool is just large enough, so that the warm-up has touched all of it.
    """
    pool = -(-largest // page_size) * page_size + 3 * page_size
    return EngineConfig(
        chunked_prefill_size=CHUNKING_OFF,
        max_prefill_tokens=largest,
        page_size=page_size,
        disable_overlap_schedule=True,  # one forward at a time: nothing to overlap
        disable_radix_cache=True,
        max_running_requests=1,
    ).resolve(max_total_tokens=pool, context_length=pool)


def run_sweep(
    build: BuildEngine,
    recorder: EngineObserver,
    sizes: Sequence[int],
    *,
    vocab_size: int,
    repeats: int = 3,
    seed: int = 0,
    on_step: Callable[[ForwardRecord], None] | None = None,
) -> Engine:
    """Record `repeats` forwards of each size, in an order shuffled anew for each repeat.

    `build` makes an engine on the same executor and clock every time; it is called without an observer for
    the warm-up, which runs every size once, the largest first and twice, and is recorded nowhere. Prompts are
    random token ids. Returns the recorded engine; the caller closes the recorder.
    """
    largest_first = sorted(sizes, reverse=True)
    warm_up = [*largest_first[:1], *largest_first]
    _measure(build(None), _prompts(warm_up, vocab_size, seed), None)
    rng = np.random.default_rng(seed)
    order = [int(size) for _ in range(repeats) for size in rng.permutation(sizes)]
    engine = build(recorder)
    _measure(engine, _prompts(order, vocab_size, seed), on_step)
    return engine


def _measure(
    engine: Engine, requests: Iterable[Request], on_step: Callable[[ForwardRecord], None] | None
) -> None:
    """Run requests one after another, each arriving when the one before has ended."""
    for request in requests:
        request.arrival_ns = engine.clock.now_ns()
        engine.submit(request)
        while engine.has_work:
            record = engine.step()
            if record is not None and on_step is not None:
                on_step(record)


def _prompts(sizes: Sequence[int], vocab_size: int, seed: int) -> Iterator[Request]:
    """A request for each size that ends with its first token."""
    once = SamplingParams(max_new_tokens=1, ignore_eos=True)
    for rid, size in enumerate(sizes):
        yield Request(rid, f"{size}-{rid}", random_ids(size, vocab_size, seed, rid), once)
