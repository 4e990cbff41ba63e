"""The KV that a sweep's forwards find: a long prefix, and prompts that go on to decode together.

It is put into the radix cache by ordinary forwards, which are in the trace like any other. Each has two rows
or more, so that none is a point of a layout that the sweep measures.
"""

from array import array
from collections.abc import Iterator

from engine.workload import random_ids
from engine.workload.prompts import shared_prefix
from profiler.sweep_cases import SweepCase
from profiler.sweep_plan import SweepPlan

__all__ = ["KVStock"]

FIRST_TOKEN = 0  # of all that is in stock, and of no prompt without a prefix


class KVStock:
    """Token sequences whose KV is, or will be, in the cache; a companion is the shortest of them."""

    def __init__(self, plan: SweepPlan, vocab_size: int, seed: int) -> None:
        self._plan = plan
        self._vocab_size = vocab_size
        self._seed = seed
        self._sequences = [self._sequence("prefix", max(plan.prefixes))]
        self._sequences += [self._sequence(f"row-{i}", plan.kv_tokens) for i in range(plan.most_rows)]
        self._ready = [0] * len(self._sequences)  # tokens of each in the cache

    @property
    def companion(self) -> "array[int]":
        """A prompt of one token, for a forward that would have but one row."""
        return array("i", [FIRST_TOKEN])

    def forwards(self) -> Iterator[tuple[list["array[int]"], int]]:
        """Prompts of each forward of the set-up, in order, and how many tokens it computes of them.

        Take the next when the one before has run.
        """
        group: list[tuple[int, int]] = []  # which sequence grows to how many tokens
        used = 0
        for which, start, end in self._pieces():
            if group and (start or used + end - start > self._plan.setup_tokens):
                yield from self._forward(group, used)
                group, used = [], 0
            group.append((which, end))
            used += end - start
        if group:
            yield from self._forward(group, used)

    def held(self) -> list["array[int]"]:
        """What is in the cache of each sequence."""
        return [
            sequence[:ready] for sequence, ready in zip(self._sequences, self._ready, strict=True) if ready
        ]

    def covers(self, case: SweepCase) -> bool:
        """Whether all the KV that a case needs is in the cache."""
        if case.decode:
            return all(ready >= case.prefix_tokens for ready in self._ready[1 : case.tokens + 1])
        return self._ready[0] >= case.prefix_tokens

    def prompt(self, case: SweepCase, rid: int) -> "array[int]":
        """A prompt of which exactly the case's prefix is in the cache."""
        new = random_ids(case.tokens, self._vocab_size, self._seed, rid)
        prefix, at = self._sequences[0], case.prefix_tokens
        unlike = prefix[at] if at < len(prefix) else FIRST_TOKEN
        if new[0] == unlike:  # else its KV would be found, too
            new[0] = (new[0] + 1) % self._vocab_size
        return prefix[:at] + new

    def rows(self, case: SweepCase) -> list["array[int]"]:
        """The prompts that decode together: each has its own KV in the cache, but for the last token."""
        return [sequence[: case.prefix_tokens] for sequence in self._sequences[1 : case.tokens + 1]]

    def _forward(self, group: list[tuple[int, int]], tokens: int) -> Iterator[tuple[list["array[int]"], int]]:
        yield [self.companion, *(self._sequences[which][:end] for which, end in group)], tokens
        for which, end in group:
            self._ready[which] = end

    def _pieces(self) -> Iterator[tuple[int, int, int]]:
        """Which sequence grows from where to where, one piece after another."""
        step = self._plan.setup_tokens
        for which, sequence in enumerate(self._sequences):
            for start in range(0, len(sequence), step):
                yield which, start, min(start + step, len(sequence))

    def _sequence(self, name: str, length: int) -> "array[int]":
        tokens = shared_prefix(length, self._vocab_size, self._seed, name)
        if tokens:
            tokens[0] = FIRST_TOKEN
        return tokens
