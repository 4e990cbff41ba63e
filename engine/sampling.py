"""Choosing the next token: greedy, or at a temperature with a seed per request."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from engine.transfer import to_device

__all__ = ["Draw", "sample"]

SEED_MASK = 2**64 - 1


@dataclass(frozen=True, slots=True)
class Draw:
    """How one row's token is chosen: the `index`-th output of a request with this temperature and seed."""

    temperature: float  # 0 is greedy
    seed: int
    index: int


def sample(logits: torch.Tensor, draws: Sequence[Draw]) -> torch.Tensor:
    """(rows,) token ids, one for each row of `logits` (rows, vocabulary), on their device.

    What a row draws depends on its logits and its Draw alone, never on the rows beside it.
    """
    tokens = logits.argmax(dim=-1)
    drawn = [row for row, draw in enumerate(draws) if draw.temperature > 0]
    if drawn:
        rows = to_device(np.array(drawn), logits.device)
        picked = _at_temperature(logits.index_select(0, rows), [draws[row] for row in drawn])
        tokens.index_copy_(0, rows, picked)
    return tokens


def _at_temperature(logits: torch.Tensor, draws: Sequence[Draw]) -> torch.Tensor:
    """Draw from softmax(logits / temperature) by the Gumbel-max trick.

    The largest of logits / temperature - log(Exponential(1)) is at i with probability softmax(...)[i]
    (Gumbel, 1954). The noise is drawn on the host, so that the device need not be waited for.
    """
    noise = to_device(np.stack([_noise(draw, logits.shape[1]) for draw in draws]), logits.device)
    temperatures = to_device(np.array([[draw.temperature] for draw in draws]), logits.device)
    # Shifted so that a tiny temperature sends all but the best to -inf instead of overflowing.
    shifted = logits.double() - logits.double().amax(dim=-1, keepdim=True)
    return (shifted / temperatures - noise).argmax(dim=-1)


def _noise(draw: Draw, vocab_size: int) -> NDArray[np.float64]:
    """(vocabulary,) log of exponential noise: Philox's stream for the key (seed, index)."""
    key = np.array([draw.seed & SEED_MASK, draw.index], dtype=np.uint64)
    noise = np.random.Generator(np.random.Philox(key=key)).standard_exponential(vocab_size)
    log_noise: NDArray[np.float64] = np.log(np.maximum(noise, np.finfo(np.float64).tiny))
    return log_noise
