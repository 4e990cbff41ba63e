"""Who held the device: a forward's time shared among the requests whose prompts it computed."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

__all__ = ["Culprit", "ranked_culprits", "split_exactly"]


@dataclass(frozen=True, slots=True)
class Culprit:
    """A request whose prefill held the device while another was silent."""

    rid: int
    name: str
    device_ns: int


def ranked_culprits(charges: Iterable[tuple[int, int]], name_of: Callable[[int], str]) -> tuple[Culprit, ...]:
    """Requests and nanoseconds charged to them, summed by request; the largest sum first."""
    sums: dict[int, int] = {}
    for rid, ns in charges:
        sums[rid] = sums.get(rid, 0) + ns
    ranked = sorted(sums.items(), key=lambda item: (-item[1], item[0]))
    return tuple(Culprit(rid, name_of(rid), ns) for rid, ns in ranked)


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
