"""Choosing the next token: greedy, or at a temperature with a seed per request."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

__all__ = ["Draw", "sample"]

SEED_MASK = 2**64 - 1


@dataclass(frozen=True, slots=True)
class Draw:
    """How one row's token is chosen: the `index`-th output of a request with this temperature and seed."""

    temperature: float  # 0 is greedy
    seed: int
    index: int


def sample(logits: torch.Tensor, draws: Sequence[Draw]) -> list[int]:
    """One token id for each row of `logits` (rows, vocabulary).

    What a row draws depends on its logits and its Draw alone, never on the rows beside it.
    """
    tokens: list[int] = logits.argmax(dim=-1).tolist()
    for row, draw in enumerate(draws):
        if draw.temperature > 0:
            tokens[row] = _at_temperature(logits[row].double().cpu().numpy(), draw)
    return tokens


def _at_temperature(logits: NDArray[np.float64], draw: Draw) -> int:
    """Draw from softmax(logits / temperature) by the Gumbel-max trick.

    The largest of logits / temperature - log(Exponential(1)) is at i with probability softmax(...)[i]
    (Gumbel, 1954). The noise is Philox's stream for the key (seed, index): no state lives between draws.
    """
    key = np.array([draw.seed & SEED_MASK, draw.index], dtype=np.uint64)
    noise = np.random.Generator(np.random.Philox(key=key)).standard_exponential(len(logits))
    # Shifted so that a tiny temperature sends all but the best to -inf instead of overflowing.
    with np.errstate(over="ignore"):
        scaled = (logits - logits.max()) / draw.temperature
    return int((scaled - np.log(np.maximum(noise, np.finfo(np.float64).tiny))).argmax())
