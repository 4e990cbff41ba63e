"""What a sweep measures: cases, and the sizes between two ends."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from engine.errors import ConfigError

__all__ = ["SweepCase", "geometric_sizes", "parse_range"]

_RANGE = re.compile(r"([0-9]{1,9}):([0-9]{1,9})")


@dataclass(frozen=True, slots=True, order=True)
class SweepCase:
    """Forwards of one kind: a piece of one prompt behind a prefix, or decode rows alone."""

    tokens: int  # computed in the forward: the piece's, or one for each decode row
    prefix_tokens: int = 0  # KV before them, of each row
    decode: bool = False

    def cost_guess(self, known: Iterable[tuple["SweepCase", float]]) -> float:
        """Seconds that it may take: those of the nearest smaller one times the ratio of tokens; else 0."""
        smaller = [(case, cost_s) for case, cost_s in known if self._is_no_less_than(case)]
        if not smaller:
            return 0.0
        nearest, cost_s = max(smaller)
        return cost_s * self.tokens / nearest.tokens

    def _is_no_less_than(self, case: "SweepCase") -> bool:
        alike = case.decode == self.decode
        return alike and case.tokens <= self.tokens and case.prefix_tokens <= self.prefix_tokens


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
