"""Choosing the next token: greedy, or at a temperature with a seed per request."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from engine.ops.choose import default_ops
from engine.ops.protocol import Ops
from engine.transfer import to_device

__all__ = ["Draw", "sample"]

SEED_MASK = 2**64 - 1
FLOAT32 = np.finfo(np.float32)


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
    ops = default_ops(logits.device)
    drawn = [row for row, draw in enumerate(draws) if draw.temperature > 0]
    if not drawn:
        return ops.argmax(logits)
    rows = to_device(np.array(drawn), logits.device)
    picked = _at_temperature(ops, logits, rows, [draws[row] for row in drawn])
    if len(drawn) == len(draws):
        return picked
    return ops.argmax(logits).index_copy_(0, rows, picked)


def _at_temperature(
    ops: Ops, logits: torch.Tensor, rows: torch.Tensor, draws: Sequence[Draw]
) -> torch.Tensor:
    """Draw from softmax(logits / temperature) by the Gumbel-max trick.

    The largest of logits / temperature - log(Exponential(1)) is at i with probability softmax(...)[i]
    (Gumbel, 1954). The noise is drawn on the host, so that the device need not be waited for.
    """
    noise = np.stack([_noise(draw, logits.shape[1]) for draw in draws])
    # Of the smallest normal number and less greedy is the limit, and infinity would make -inf NaN.
    temperatures = np.clip([draw.temperature for draw in draws], FLOAT32.tiny, FLOAT32.max)
    return ops.noisy_argmax(
        logits,
        rows,
        to_device(temperatures.astype(np.float32), logits.device),
        to_device(noise, logits.device),
    )


def _noise(draw: Draw, vocab_size: int) -> NDArray[np.float32]:
    """(vocabulary,) log of exponential noise: Philox's stream for the key (seed, index)."""
    key = np.array([draw.seed & SEED_MASK, draw.index], dtype=np.uint64)
    noise = np.random.Generator(np.random.Philox(key=key)).standard_exponential(vocab_size)
    return np.log(np.maximum(noise, np.finfo(np.float64).tiny)).astype(np.float32)
