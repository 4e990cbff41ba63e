"""Requests from a file of JSON lines, and from seeded generators.

A prompt given as a length becomes random token ids: the same seed and place in the file give the same ids.
"""

from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from engine.errors import WorkloadError
from engine.request import Request, SamplingParams
from engine.workload_line import WorkloadLine, parse_line

__all__ = ["Tokenizer", "Workload", "load_workload", "random_ids", "shared_prefix", "uniform_requests"]

OWN_STREAM, GROUP_STREAM, LENGTH_STREAM = 0, 1, 2  # keep a seed's random streams apart


class Tokenizer(Protocol):
    """What a text prompt needs; `tokenizers.Tokenizer` is one."""

    def encode(self, sequence: str) -> Any:
        """An encoding whose `ids` are the text's token ids."""
        ...


@dataclass(frozen=True, slots=True)
class Workload:
    """A file's requests, in its order; `rid` counts them from 0."""

    path: Path
    requests: Sequence[Request]
    lines: Sequence[int]  # each request's line in the file, from 1

    def where(self, request: Request) -> str:
        """FILE:LINE of a request."""
        return f"{self.path}:{self.lines[request.rid]}"


def load_workload(
    path: Path,
    *,
    vocab_size: int,
    tokenizer: Callable[[], Tokenizer | None] = lambda: None,
    seed: int = 0,
) -> Workload:
    """Read a workload file; blank lines are skipped. `tokenizer` is called when a prompt is text.

    Raises WorkloadError, naming file and line, for the first wrong line, and for a file without requests.
    """
    requests: list[Request] = []
    lines: list[int] = []
    seen: dict[str, int] = {}
    for number, raw in _lines(path):
        try:
            line = parse_line(raw, vocab_size)
            if line.rid in seen:
                raise WorkloadError(
                    f"rid {line.rid!r} is taken by line {seen[line.rid]}: give each request its own"
                )
            requests.append(_request(line, len(requests), vocab_size, tokenizer, seed))
        except WorkloadError as error:
            raise WorkloadError(f"{path}:{number}: {error}") from None
        seen[line.rid] = number
        lines.append(number)
    if not requests:
        raise WorkloadError(f"{path} holds no request: write one JSON object a line")
    return Workload(path, requests, lines)


def random_ids(count: int, vocab_size: int, seed: int, rid: int) -> "array[int]":
    """`count` random token ids that depend on seed and rid alone."""
    return _ids(np.random.default_rng((seed, OWN_STREAM, rid)), count, vocab_size)


def shared_prefix(count: int, vocab_size: int, seed: int, group: str) -> "array[int]":
    """The first `count` token ids of a group; a shorter prefix is the start of a longer one."""
    return _ids(np.random.default_rng((seed, GROUP_STREAM, *group.encode())), count, vocab_size)


def uniform_requests(
    count: int,
    *,
    vocab_size: int,
    prompt_tokens: tuple[int, int],
    new_tokens: tuple[int, int],
    seed: int = 0,
    requests_per_s: float | None = None,
) -> list[Request]:
    """Requests with prompts and outputs uniform in the closed ranges given, EOS ignored.

    All arrive at 0, or as a Poisson process of `requests_per_s`.
    """
    rng = np.random.default_rng((seed, LENGTH_STREAM))
    prompts = rng.integers(*prompt_tokens, size=count, endpoint=True)
    outputs = rng.integers(*new_tokens, size=count, endpoint=True)
    arrivals = np.zeros(count)
    if requests_per_s is not None:
        arrivals = rng.exponential(1 / requests_per_s, size=count).cumsum()
    return [
        Request(
            rid=rid,
            name=f"r{rid}",
            prompt_token_ids=random_ids(int(prompts[rid]), vocab_size, seed, rid),
            sampling=SamplingParams(max_new_tokens=int(outputs[rid]), seed=rid, ignore_eos=True),
            arrival_ns=round(arrivals[rid] * 1e9),
        )
        for rid in range(count)
    ]


def _lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Lines that are not blank, numbered from 1; a byte order mark is skipped."""
    try:
        content = path.read_bytes()
    except OSError as error:
        reason = (error.strerror or "unreadable").lower()
        raise WorkloadError(f"{path}: {reason}: give a file of JSON lines") from None
    for number, line in enumerate(content.removeprefix(b"\xef\xbb\xbf").split(b"\n"), start=1):
        if line.strip():
            yield number, line


def _request(
    line: WorkloadLine, rid: int, vocab_size: int, tokenizer: Callable[[], Tokenizer | None], seed: int
) -> Request:
    return Request(
        rid=rid,
        name=line.rid,
        prompt_token_ids=_prompt(line, rid, vocab_size, tokenizer, seed),
        sampling=SamplingParams(
            max_new_tokens=line.max_new_tokens,
            temperature=line.temperature,
            seed=(seed + rid) % 2**63 if line.seed is None else line.seed,
            stop_token_ids=line.stop_token_ids,
            ignore_eos=line.ignore_eos,
        ),
        arrival_ns=round(line.arrival_s * 1e9),
    )


def _prompt(
    line: WorkloadLine, rid: int, vocab_size: int, tokenizer: Callable[[], Tokenizer | None], seed: int
) -> "array[int]":
    if line.prompt_token_ids is not None:
        return array("i", line.prompt_token_ids)
    if line.prompt is not None:
        return _encode(line.prompt, vocab_size, tokenizer())
    assert line.prompt_tokens is not None
    prompt = array("i")
    if line.prefix_group is not None:
        prompt = shared_prefix(line.prefix_tokens, vocab_size, seed, line.prefix_group)
    return prompt + random_ids(line.prompt_tokens - len(prompt), vocab_size, seed, rid)


def _encode(text: str, vocab_size: int, tokenizer: Tokenizer | None) -> "array[int]":
    if tokenizer is None:
        raise WorkloadError("the model has no tokenizer: give prompt_tokens or prompt_token_ids, not prompt")
    ids = tokenizer.encode(text).ids
    if not ids:
        raise WorkloadError("prompt gives no token: give a longer text")
    if max(ids) >= vocab_size:
        raise WorkloadError(f"prompt gives token id {max(ids)}: the model knows only {vocab_size}")
    return array("i", ids)


def _ids(rng: np.random.Generator, count: int, vocab_size: int) -> "array[int]":
    return array("i", rng.integers(vocab_size, size=count, dtype=np.int32).tobytes())
