"""The project's own format: one line of JSON, checked field by field before anything runs."""

import difflib
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

from engine.errors import WorkloadError
from engine.lazy_prompt import LazyPrompt
from engine.request import SamplingParams
from engine.workload.entry import Entry, Format
from engine.workload.fields import MAX_ARRIVAL_S, MAX_LENGTH_TOKENS, Fields, decode_object, shown
from engine.workload.prompts import random_ids, shared_prefix

__all__ = ["Tokenizer", "WorkloadLine", "own_format", "parse_line"]

MAX_TEMPERATURE = 1000
MAX_SEED = 2**63 - 1
MOST_PRIORITY = 2**31 - 1
PROMPT_KEYS = ("prompt_tokens", "prompt", "prompt_token_ids")
KEYS = (
    "rid",
    "arrival_s",
    *PROMPT_KEYS,
    "max_new_tokens",
    "ignore_eos",
    "temperature",
    "seed",
    "stop_token_ids",
    "priority",
    "prefix_group",
    "prefix_tokens",
)


class Tokenizer(Protocol):
    """What a text prompt needs; `tokenizers.Tokenizer` is one."""

    def encode(self, sequence: str) -> Any:
        """An encoding whose `ids` are the text's token ids."""
        ...


@dataclass(frozen=True, slots=True)
class WorkloadLine:
    """What a line asks for; exactly one of the three prompts is set. Lengths in tokens."""

    rid: str
    arrival_s: float
    prompt_tokens: int | None
    prompt: str | None
    prompt_token_ids: Sequence[int] | None
    max_new_tokens: int
    ignore_eos: bool
    temperature: float
    seed: int | None
    stop_token_ids: frozenset[int]
    priority: int
    prefix_group: str | None
    prefix_tokens: int


def parse_line(line: bytes, vocab_size: int) -> WorkloadLine:
    """Check one line. Raises WorkloadError that names the field and the mend, not yet file and line."""
    values = decode_object(line)
    _check_keys(values)
    fields = Fields(values, vocab_size)
    prompts = [key for key in PROMPT_KEYS if key in fields]
    if len(prompts) != 1:
        given = " and ".join(prompts) or "no prompt"
        raise WorkloadError(f"{given} given: give exactly one of {', '.join(PROMPT_KEYS)}")
    group = fields.text("prefix_group")
    if (group is None) == ("prefix_tokens" in fields):
        raise WorkloadError("prefix_group and prefix_tokens belong together: give both or neither")
    if group is not None and prompts != ["prompt_tokens"]:
        raise WorkloadError(
            f"prefix_group goes with prompt_tokens only: take it off a line with {prompts[0]}"
        )
    prompt_tokens = fields.whole("prompt_tokens", 1, MAX_LENGTH_TOKENS)
    prefix_tokens = fields.whole("prefix_tokens", 1, MAX_LENGTH_TOKENS) or 0
    if prompt_tokens is not None and prefix_tokens > prompt_tokens:
        raise WorkloadError(f"prefix_tokens is {prefix_tokens}: give at most prompt_tokens, {prompt_tokens}")
    rid = fields.text("rid")
    if rid is None:
        raise WorkloadError("rid is missing: give each request its own name")
    return WorkloadLine(
        rid=rid,
        arrival_s=fields.number("arrival_s", MAX_ARRIVAL_S) or 0,
        prompt_tokens=prompt_tokens,
        prompt=fields.text("prompt"),
        prompt_token_ids=fields.token_ids("prompt_token_ids", least=1),
        max_new_tokens=fields.whole("max_new_tokens", 1, MAX_LENGTH_TOKENS) or 128,
        ignore_eos=fields.flag("ignore_eos"),
        temperature=float(fields.number("temperature", MAX_TEMPERATURE) or 0),
        seed=fields.whole("seed", 0, MAX_SEED),
        stop_token_ids=frozenset(fields.token_ids("stop_token_ids", least=0) or ()),
        priority=fields.whole("priority", -MOST_PRIORITY, MOST_PRIORITY) or 0,
        prefix_group=group,
        prefix_tokens=prefix_tokens,
    )


def own_format(vocab_size: int, tokenizer: Callable[[], Tokenizer | None], seed: int) -> Format:
    """The own format for a model. `tokenizer` is called when a prompt is text."""
    return Format("Chunkscope workload", _Reader(vocab_size, tokenizer, seed).read)


@dataclass(frozen=True, slots=True)
class _Reader:
    """Turns lines into entries, prompts of a given length into seeded token ids."""

    vocab_size: int
    tokenizer: Callable[[], Tokenizer | None]
    seed: int

    def read(self, number: int, place: int, raw: bytes) -> Entry:
        line = parse_line(raw, self.vocab_size)
        sampling = SamplingParams(
            max_new_tokens=line.max_new_tokens,
            temperature=line.temperature,
            seed=(self.seed + place) % 2**63 if line.seed is None else line.seed,
            stop_token_ids=line.stop_token_ids,
            ignore_eos=line.ignore_eos,
        )
        return Entry(
            line=number,
            name=line.rid,
            arrival_ns=round(line.arrival_s * 10**9),
            prompt=self._prompt(line, place),
            sampling=sampling,
            priority=line.priority,
        )

    def _prompt(self, line: WorkloadLine, place: int) -> Sequence[int]:
        if line.prompt_token_ids is not None:
            return array("i", line.prompt_token_ids)
        if line.prompt is not None:
            return _encode(line.prompt, self.vocab_size, self.tokenizer())
        assert line.prompt_tokens is not None
        return LazyPrompt(line.prompt_tokens, partial(self._by_length, line, place))

    def _by_length(self, line: WorkloadLine, place: int) -> "array[int]":
        assert line.prompt_tokens is not None
        own = random_ids(line.prompt_tokens - line.prefix_tokens, self.vocab_size, self.seed, place)
        if line.prefix_group is None:
            return own
        return shared_prefix(line.prefix_tokens, self.vocab_size, self.seed, line.prefix_group) + own


def _check_keys(values: dict[str, Any]) -> None:
    for key in values:
        if key not in KEYS:
            near = difflib.get_close_matches(key, KEYS, 1)
            mend = f"did you mean {near[0]}?" if near else f"the keys are {', '.join(KEYS)}"
            raise WorkloadError(f"{shown(key)} is no key of a workload line: {mend}")


def _encode(text: str, vocab_size: int, tokenizer: Tokenizer | None) -> "array[int]":
    if tokenizer is None:
        raise WorkloadError("the model has no tokenizer: give prompt_tokens or prompt_token_ids, not prompt")
    ids = tokenizer.encode(text).ids
    if not ids:
        raise WorkloadError("prompt gives no token: give a longer text")
    if max(ids) >= vocab_size:
        raise WorkloadError(f"prompt gives token id {max(ids)}: the model knows only {vocab_size}")
    return array("i", ids)
