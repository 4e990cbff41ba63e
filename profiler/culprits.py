"""Who held the device: a forward's time shared among the requests whose prompts it computed."""

from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["Culprit", "split_exactly"]


@dataclass(frozen=True, slots=True)
class Culprit:
    """A request whose prefill held the device while another was silent."""

    rid: int
    name: str
    device_ns: int


def split_exactly(total: int, weights: Sequence[int]) -> list[int]:
    """`total` in whole parts proportional to `weights`, by largest remainder, so that they sum to it."""
    whole = sum(weights)
    if whole <= 0:
        return [0] * len(weights)
    parts = [total * w // whole for w in weights]
    by_remainder = sorted(range(len(weights)), key=lambda i: (-(total * weights[i] % whole), i))
    for i in by_remainder[: total - sum(parts)]:
        parts[i] += 1
    return parts
