"""A request and its cursor `[prefix_len, extend_end)`."""

from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import TYPE_CHECKING

import numpy as np

from engine.errors import WorkloadError
from engine.lazy_prompt import LazyPrompt

if TYPE_CHECKING:
    from engine.cache.radix import Node

__all__ = ["FinishReason", "Request", "SamplingParams"]


class FinishReason(IntEnum):
    """Why a request ended; the order is that of the trace's enum."""

    EOS = 0
    STOP = 1
    LENGTH = 2
    ABORT = 3


@dataclass(frozen=True, slots=True)
class SamplingParams:
    """How a request's tokens are chosen and when it stops."""

    max_new_tokens: int = 128
    temperature: float = 0.0  # 0 is greedy
    seed: int = 0
    stop_token_ids: frozenset[int] = frozenset()
    ignore_eos: bool = False


@dataclass(slots=True, eq=False)
class Request:
    """One prompt on its way through the engine.

    `rid` is a dense integer, `name` the user's own id. Fields below the blank line are the scheduler's.
    """

    rid: int
    name: str
    prompt_token_ids: Sequence[int]
    sampling: SamplingParams = field(default_factory=SamplingParams)
    arrival_ns: int = 0
    priority: int = 0  # whether a larger or a smaller value is more urgent is the engine's option

    prompt_len: int = field(init=False)  # in tokens
    max_new_tokens: int = field(init=False)  # clipped at arrival so that the request fits an empty pool
    tokens: "array[int]" = field(init=False)  # prompt and output so far; a lazy prompt's come with `begin`
    matched_pages: "array[int]" = field(init=False)  # cached prefix found by the last match, until admission
    prefix_len: int = 0  # tokens whose KV is computed
    extend_end: int = 0  # end of the extent planned last
    inflight_middle_chunks: int = 0  # middle chunks planned and not yet processed
    attempt: int = 0  # grows at each retraction; results of older attempts change nothing
    row: int | None = None  # row in the request table while it holds KV
    kv_len: int = 0  # tokens the row has KV slots for
    protected_len: int = 0  # leading tokens of the row that lie in the tree, locked by this request
    node: "Node | None" = None  # deepest tree node this request locks
    cached_tokens: int = 0  # prefix tokens taken from the tree and not computed by itself
    computed_len: int = 0  # tokens it has computed or been credited with; never credited twice
    kept_tokens: int = 0  # output tokens kept at the last retraction and prefilled again
    retractions: int = 0
    first_scheduled_ns: int | None = None
    first_token_ns: int | None = None
    finish_ns: int | None = None
    finish_reason: FinishReason | None = None
    abort_detail: str = ""

    def __post_init__(self) -> None:
        self.prompt_len = len(self.prompt_token_ids)
        self.tokens = array("i")
        if not isinstance(self.prompt_token_ids, LazyPrompt):
            self.begin()
        self.matched_pages = array("i")
        self.max_new_tokens = self.sampling.max_new_tokens

    def begin(self) -> None:
        """Make the prompt's tokens, unless they are there. WorkloadError for what is no token id."""
        if not self.tokens:
            try:
                self.tokens = array("i", self.prompt_token_ids)
            except (OverflowError, TypeError) as error:
                raise WorkloadError(
                    f"request {self.name!r}: its prompt is no list of token ids: {error}"
                ) from None
            if self.tokens and (least := int(np.frombuffer(self.tokens, dtype=np.int32).min())) < 0:
                raise WorkloadError(f"request {self.name!r}: token id {least} is below 0")

    def fresh(self) -> "Request":
        """The same request before anything happened to it."""
        return Request(
            self.rid, self.name, self.prompt_token_ids, self.sampling, self.arrival_ns, self.priority
        )

    @property
    def output_len(self) -> int:
        """Output tokens so far."""
        return len(self.tokens) - self.prompt_len

    @property
    def output_ids(self) -> list[int]:
        """Output token ids so far."""
        return list(self.tokens[self.prompt_len :])

    @property
    def ends_with_next_token(self) -> bool:
        """Whether a forward in flight samples the token that makes it as long as it may become."""
        return len(self.tokens) == self.kv_len and self.output_len + 1 >= self.max_new_tokens

    @property
    def finished(self) -> bool:
        """Whether it ended, for any reason."""
        return self.finish_reason is not None
