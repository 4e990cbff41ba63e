"""What the formats of workload files have in common: a request as a line of a file tells it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from engine.lazy_prompt import LazyPrompt
from engine.request import SamplingParams
from engine.workload.prompts import block_ids, random_ids

__all__ = ["Entry", "Format", "Recorded", "RecordedReader"]


class Entry(NamedTuple):
    """A request that has no rid yet; `line` counts from 1, `prompt` may be empty."""

    line: int
    name: str
    arrival_ns: int
    prompt: Sequence[int]
    sampling: SamplingParams
    priority: int = 0
    recorded_output_tokens: int | None = None  # None where the file is no record


@dataclass(frozen=True, slots=True)
class Format:
    """What a file's first line says of the others."""

    title: str
    read: Callable[[int, int, bytes], Entry]  # line number from 1, place among the requests from 0, the line
    has_head: bool = False  # the first line names columns
    from_first: bool = False  # arrivals are dates: they count from the earliest
    timed: bool = True  # else the file has no arrivals, and all are at 0


class Recorded(NamedTuple):
    """What a file of others knows of a request; lengths in tokens, `blocks` are ids of 512 tokens each."""

    arrival_ns: int
    prompt_tokens: int
    output_tokens: int
    token_ids: Sequence[int] | None = None
    blocks: Sequence[int] | None = None


@dataclass(frozen=True, slots=True)
class RecordedReader:
    """Turns lines of a format of others into entries that are as long as recorded, whatever is sampled."""

    stem: str  # of request names: `azure` names line 17 azure-17
    parse: Callable[[bytes], Recorded]  # raises WorkloadError that names the fault, not yet file and line
    vocab_size: int
    seed: int

    def read(self, number: int, place: int, raw: bytes) -> Entry:
        """The entry of line `number`, the file's `place`-th from 0."""
        recorded = self.parse(raw)
        sampling = SamplingParams(
            max_new_tokens=max(1, recorded.output_tokens),
            seed=(self.seed + place) % 2**63,
            ignore_eos=True,
        )
        return Entry(
            line=number,
            name=f"{self.stem}-{number}",
            arrival_ns=recorded.arrival_ns,
            prompt=self._prompt(recorded, place),
            sampling=sampling,
            recorded_output_tokens=recorded.output_tokens,
        )

    def _prompt(self, recorded: Recorded, place: int) -> Sequence[int]:
        count = recorded.prompt_tokens
        if recorded.token_ids is not None:
            return recorded.token_ids
        if recorded.blocks is not None:
            return LazyPrompt(count, partial(block_ids, count, self.vocab_size, self.seed, recorded.blocks))
        return LazyPrompt(count, partial(random_ids, count, self.vocab_size, self.seed, place))
