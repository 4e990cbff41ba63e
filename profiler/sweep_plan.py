"""`SweepPlan`: what a sweep is to measure, and the engine that can measure it."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from engine.config import CHUNKING_OFF, EngineConfig
from engine.errors import ConfigError
from profiler.sweep_cases import SweepCase, geometric_sizes

__all__ = ["DECODE_FORWARDS", "SweepPlan"]

DECODE_FORWARDS = 4  # of one visit of a decode batch: they share the cost of bringing its rows to decode
SETUP_TOKENS = 2048  # that a forward of the set-up may take, where no measured one takes more
MOST = 10**9  # of any number that an option may give
ROW_SLACK = DECODE_FORWARDS + 4  # KV tokens that a row may hold or be charged beside its prompt's


@dataclass(frozen=True, slots=True)
class SweepPlan:
    """Ranges of sizes, and when to stop. Sizes in tokens; both ends of a range are measured."""

    tokens: tuple[int, int] | None = (8, 1024)  # of a prompt in one forward; None: only decodes
    prefixes: tuple[int, ...] = (0,)  # KV tokens before them
    batch: tuple[int, int] | None = None  # rows of a decode forward; None: no decodes
    kv_tokens: int = 512  # of each decode row before its own token, in the first forward of a visit
    repeats: int | None = 3  # measurements of each case; None: as many as the budget has time for
    budget_s: float | None = None

    @property
    def largest(self) -> int:
        """Most prompt tokens of a measured forward; 0 if none is."""
        return self.tokens[1] if self.tokens else 0

    @property
    def most_rows(self) -> int:
        """Most decode rows; 0 if there are none."""
        return self.batch[1] if self.batch else 0

    @property
    def needs_stock(self) -> bool:
        """Whether KV has to be there before a forward is measured."""
        return self.batch is not None or any(self.prefixes)

    @property
    def num_layouts(self) -> int:
        """How many curves come out: one for each prefix, and one of decodes."""
        return (len(self.prefixes) if self.tokens else 0) + (self.batch is not None)

    @property
    def setup_tokens(self) -> int:
        """Most tokens of a forward that makes the stock."""
        return max(self.largest, SETUP_TOKENS)

    @property
    def stock_tokens(self) -> int:
        """KV tokens that have to be there."""
        return max(self.prefixes) + self.most_rows * self.kv_tokens

    def cases(self, count: int) -> list[SweepCase]:
        """All that is to be measured, with `count` sizes in each range."""
        sizes = geometric_sizes(*self.tokens, count) if self.tokens else []
        batches = geometric_sizes(*self.batch, count) if self.batch else []
        return self.cases_of(sizes, batches)

    def cases_of(self, sizes: Sequence[int], batches: Sequence[int]) -> list[SweepCase]:
        """The same with the sizes given."""
        prefills = [SweepCase(size, prefix) for prefix in self.prefixes for size in sizes]
        return prefills + [SweepCase(rows, self.kv_tokens, decode=True) for rows in batches]

    def check(self, context: int, what: str = "context") -> None:
        """Raise ConfigError, naming the option, when a request would be longer than the model's context.

        `what` is what limits it.
        """
        longest = max(self.prefixes)
        if self.tokens and longest + self.largest >= context:
            behind = f" behind a prefix of {longest}" if longest else ""
            raise ConfigError(
                f"--tokens: {self.largest}{behind} is beyond the model's {what} of {context}: give less"
            )
        if self.batch and self.kv_tokens + ROW_SLACK >= context:
            raise ConfigError(
                f"--kv-tokens {self.kv_tokens} is beyond the model's {what} of {context}: give less"
            )

    @property
    def pool_tokens(self) -> int:
        """KV tokens that the pool needs."""
        if not self.needs_stock:
            return self.largest + 3
        return self.stock_tokens + self._forward_tokens + self._rows * ROW_SLACK

    def config(self) -> EngineConfig:
        """Engine options: prompts whole, one forward at a time; the pool is left open.

        The prefix cache is on only where KV has to be there before a forward is measured.
        """
        return EngineConfig(
            chunked_prefill_size=CHUNKING_OFF,
            max_prefill_tokens=self._forward_tokens,
            disable_overlap_schedule=True,  # one forward at a time: nothing to overlap
            disable_radix_cache=not self.needs_stock,
            max_running_requests=self._rows,
        )

    @property
    def _rows(self) -> int:
        """Most requests in a forward, a companion among them."""
        return max(self.most_rows, self.setup_tokens // self.kv_tokens) + 2 if self.needs_stock else 1

    @property
    def _forward_tokens(self) -> int:
        """Most prompt tokens in a forward; the set-up needs room for one of each row beside its own."""
        return max(self.most_rows, self.setup_tokens) + self._rows if self.needs_stock else self.largest

    def as_json(self, cases: Sequence[SweepCase]) -> dict[str, Any]:
        """What meta.json says of the plan and of the sizes that were chosen."""
        sizes = sorted({case.tokens for case in cases if not case.decode})
        batches = sorted({case.tokens for case in cases if case.decode})
        return {**asdict(self), "sizes": sizes, "batches": batches}

    @classmethod
    def from_json(cls, told: Mapping[str, Any]) -> tuple["SweepPlan", list[SweepCase]]:
        """Plan and cases that `as_json` wrote. KeyError, TypeError or ValueError where it did not."""
        plan = cls(
            tokens=_pair(told["tokens"]),
            prefixes=_rising(told["prefixes"], 0, MOST),
            batch=_pair(told["batch"]),
            kv_tokens=_whole(told["kv_tokens"], 1, MOST),
            repeats=None if told["repeats"] is None else _whole(told["repeats"], 1, MOST),
            budget_s=None if told["budget_s"] is None else _seconds(told["budget_s"]),
        )
        if plan.repeats is None and plan.budget_s is None:
            raise ValueError("nothing says when the sweep ends")
        sizes, batches = _between(told["sizes"], plan.tokens), _between(told["batches"], plan.batch)
        return plan, plan.cases_of(sizes, batches)


def _pair(ends: Sequence[int] | None) -> tuple[int, int] | None:
    if ends is None:
        return None
    low, high = (_whole(end, 1, MOST) for end in ends)
    if low > high:
        raise ValueError(f"{low} is above {high}")
    return low, high


def _between(sizes: Sequence[int], ends: tuple[int, int] | None) -> tuple[int, ...]:
    """Sizes of a range; none where there is no range."""
    if ends is None and not sizes:
        return ()
    return _rising(sizes, *(ends or (1, 0)))


def _rising(numbers: Sequence[int], low: int, high: int) -> tuple[int, ...]:
    """Different whole numbers, one at least and the smallest first."""
    whole = tuple(_whole(number, low, high) for number in numbers)
    if not whole or sorted(set(whole)) != list(whole):
        raise ValueError("the numbers do not rise")
    return whole


def _whole(number: int, low: int, high: int) -> int:
    if type(number) is not int or not low <= number <= high:
        raise ValueError(f"it must be a whole number from {low} to {high}")
    return number


def _seconds(number: float) -> float:
    if isinstance(number, bool) or not 0 < number < MOST:
        raise ValueError(f"it must be above 0 and below {MOST}")
    return float(number)
