"""What a sweep measures: cases, and the sizes between two ends."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from engine.errors import ConfigError

__all__ = ["SweepCase", "geometric_sizes", "parse_range"]

_RANGE = re.compile(r"([0-9]{1,9}):([0-9]{1,9})")


@dataclass(frozen=True, slots=True, order=True)
class SweepCase:
    """Forwards of one kind: a prompt's tokens in one piece."""

    tokens: int  # computed in the forward

    def cost_guess(self, known: Iterable[tuple["SweepCase", float]]) -> float:
        """Seconds that it may take: those of the nearest smaller one times the ratio of tokens; else 0."""
        smaller = [pair for pair in known if pair[0].tokens <= self.tokens]
        if not smaller:
            return 0.0
        nearest, cost_s = max(smaller)
        return cost_s * self.tokens / nearest.tokens


def parse_range(spec: str, option: str, unit: str) -> tuple[int, int]:
    """Both ends of `"LOW:HIGH"`. ConfigError, naming the option, when it is no such range from 1 upward."""
    match = _RANGE.fullmatch(spec)
    low, high = (int(match[1]), int(match[2])) if match else (0, 0)
    if not 1 <= low <= high:
        raise ConfigError(f"{option} {spec!r} is no range of {unit}: give LOW:HIGH, like 8:1024")
    return low, high


def geometric_sizes(low: int, high: int, count: int) -> list[int]:
    """`count` different sizes in geometric steps, both ends included; all sizes where there are fewer."""
    count = min(count, high - low + 1)
    sizes = [low]
    for steps in range(count - 1, 0, -1):
        sizes.append(max(sizes[-1] + 1, round(sizes[-1] * (high / sizes[-1]) ** (1 / steps))))
    return sizes
