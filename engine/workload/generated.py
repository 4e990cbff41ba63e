"""Seeded workloads made of numbers alone."""

import numpy as np

from engine.request import Request, SamplingParams
from engine.workload.prompts import random_ids

__all__ = ["uniform_requests"]

LENGTH_STREAM = 2  # apart from the streams of the prompts


def uniform_requests(
    count: int,
    *,
    vocab_size: int,
    prompt_tokens: tuple[int, int],
    new_tokens: tuple[int, int],
    seed: int = 0,
    requests_per_s: float | None = None,
) -> list[Request]:
    """Requests with prompts and outputs uniform in the closed ranges given, EOS ignored.

    All arrive at 0, or as a Poisson process of `requests_per_s`.
    """
    rng = np.random.default_rng((seed, LENGTH_STREAM))
    prompts = rng.integers(*prompt_tokens, size=count, endpoint=True)
    outputs = rng.integers(*new_tokens, size=count, endpoint=True)
    arrivals = np.zeros(count)
    if requests_per_s is not None:
        arrivals = rng.exponential(1 / requests_per_s, size=count).cumsum()
    return [
        Request(
            rid=rid,
            name=f"r{rid}",
            prompt_token_ids=random_ids(int(prompts[rid]), vocab_size, seed, rid),
            sampling=SamplingParams(max_new_tokens=int(outputs[rid]), seed=rid, ignore_eos=True),
            arrival_ns=round(arrivals[rid] * 1e9),
        )
        for rid in range(count)
    ]
