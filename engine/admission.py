"""`PrefillAdder`: which requests' tokens the next prefill forward takes. One object lives for one round.

The rules are SGLang 0.5.23's; docs/architecture.md lists where this engine deviates.
"""

from collections.abc import Sequence
from enum import Enum
from itertools import chain

from engine.batch import StopReason
from engine.cache import KVCache
from engine.cache.allocator import ceil_page, floor_page
from engine.config import EngineConfig
from engine.drain import DrainSimulation
from engine.observer import Budgets
from engine.priority import PriorityRules
from engine.request import Request
from engine.reserve import CLIP_MAX_NEW_TOKENS, Reserve

__all__ = ["AddResult", "PrefillAdder"]


class AddResult(Enum):
    """Whether admission goes on after a candidate."""

    CONTINUE = "continue"
    NO_TOKEN = "no token"  # memory ran out: later candidates will not fit either
    OTHER = "other"  # this forward is full


class PrefillAdder:
    """Admits under four budgets, in tokens, each first lowered by the decode rows of a mixed forward:

    total    free and evictable tokens, less what running requests should still need ("will it ever fit")
    current  free and evictable tokens ("does it fit now")
    input    `max_prefill_tokens`; only a test for stopping, it cuts nothing while chunking is on
    chunk    `chunked_prefill_size`, or None when chunking is off

    An admitted extent is charged in whole pages, plus one page of slack on the two memory budgets.
    """

    def __init__(
        self,
        config: EngineConfig,
        cache: KVCache,
        running: Sequence[Request],
        reserve: Reserve,
        new_token_ratio: float,
        mixed_decode_tokens: int = 0,
    ) -> None:
        """`reserve` holds what `running` are still expected to need."""
        self.admitted: list[Request] = []
        self.chunked_req: Request | None = None  # the request cut in this round
        self.stop_reason = StopReason.QUEUE_EMPTY
        self._config = config
        self._cache = cache
        self._running = running
        self._ratio = new_token_ratio
        self._reserve = reserve
        self._drain = DrainSimulation(new_token_ratio)
        self._page = cache.page_size
        self._input = config.max_prefill_tokens - mixed_decode_tokens
        chunk = config.chunk_tokens
        self._chunk = None if chunk is None else chunk - mixed_decode_tokens
        self._total_offset = mixed_decode_tokens + self._reserve.tokens(new_token_ratio)
        self._current_offset = mixed_decode_tokens

    @property
    def rem_total_tokens(self) -> float:
        """Read live: locking a prefix lowers it at once."""
        return self._cache.obtainable_tokens - self._total_offset

    @property
    def rem_current_tokens(self) -> int:
        """Read live: locking a prefix lowers it at once."""
        return self._cache.obtainable_tokens - self._current_offset

    @property
    def rem_input_tokens(self) -> int:
        """May fall below 0: the first request of a round is admitted whatever its length."""
        return self._input

    @property
    def rem_chunk_tokens(self) -> int | None:
        """None when chunking is off."""
        return self._chunk

    def budgets(self) -> Budgets:
        """The four budgets now; the total is truncated to whole tokens."""
        return Budgets(int(self.rem_total_tokens), self.rem_current_tokens, self._input, self._chunk)

    def state(self) -> AddResult:
        """Whether a next candidate may be tried; says why not in `stop_reason`."""
        if self.rem_total_tokens <= 0:
            return self._stop(StopReason.TOTAL)
        if self.rem_current_tokens <= 0:
            return self._stop(StopReason.CURRENT)
        if self._input <= 0:
            return self._stop(StopReason.INPUT)
        if self._chunk is not None and self._chunk <= 0:
            return self._stop(StopReason.CHUNK)
        return AddResult.CONTINUE

    def add_chunked(self, request: Request) -> bool:
        """Continue the half-done request; False when no token of it can be placed in this round.

        No admission test, no new match, no alignment: it must progress, or it never gives back its KV.
        """
        assert self._chunk is not None
        chunk = max(self._chunk, self._page)  # many decode rows in a mixed forward may have used it up
        limit = min(chunk, int(self.rem_total_tokens))
        if limit <= 0:
            limit = min(chunk, self._obtainable_for(request))
        if limit <= 0:
            self._stop(StopReason.CURRENT)
            return False
        remaining = len(request.tokens) - request.prefix_len
        extend = min(remaining, limit)
        reserve = min(request.max_new_tokens, CLIP_MAX_NEW_TOKENS) if extend == remaining else 0
        self._commit(request, extend, reserve)
        if extend < remaining:
            self.chunked_req = request
        return True

    def add(self, request: Request) -> AddResult:
        """Try a waiting request whose prefix was matched; admits it whole, cut, or not at all."""
        most = self._config.prefill_max_requests
        if most is not None and len(self.admitted) >= most:
            return self._stop(StopReason.MAX_REQUESTS)
        if request.node is not None:
            self._cache.tree.lock(request.node)  # a prefix in use is no longer evictable
        verdict = self._place_by_drain(request) if self._drains(request) else self._place(request)
        if verdict is not None:
            if request.node is not None:
                self._cache.tree.unlock(request.node)
            return verdict
        return self.state()

    def preempt_for(self, request: Request, rules: PriorityRules) -> list[Request]:
        """Running requests that give way so that `request`, whose prefix was matched, can be tried.

        Their reservations are taken off the total budget at once; empty when that does not make the room.
        """
        extend = len(request.tokens) - request.prefix_len
        need = extend + min(request.max_new_tokens, CLIP_MAX_NEW_TOKENS) - self.rem_total_tokens
        victims = rules.victims(request, self._running, need, self._reserved)
        self._total_offset -= sum(map(self._reserved, victims))
        return victims

    def _drains(self, request: Request) -> bool:
        """Whether a simulation decides. With output to prefill again it may ask a page more than at arrival,
        and alone would wait for ever for it, so then it does not.
        """
        alone = not self._running and not self.admitted
        by_rule = self._config.disable_radix_cache and request.sampling.ignore_eos
        return by_rule and not (alone and request.output_len)

    def _place(self, request: Request) -> AddResult | None:
        """Commit the request and return None, or say why it does not fit."""
        extend = len(request.tokens) - request.prefix_len
        reserve = min(max(request.max_new_tokens - request.output_len, 0), CLIP_MAX_NEW_TOKENS)
        if extend + reserve + self._page >= self.rem_total_tokens:
            return self._stop(StopReason.TOTAL)
        paged = ceil_page(extend, self._page)
        if self._chunk is None:
            if self.admitted and paged >= self._input:
                return self._stop(StopReason.INPUT)
        elif paged > self._chunk:
            return self._cut(request)
        self._commit(request, extend, min(request.max_new_tokens, CLIP_MAX_NEW_TOKENS))
        return None

    def _place_by_drain(self, request: Request) -> AddResult | None:
        """As `_place`, for a request that ignores EOS while nothing is cached; it cuts between pages too."""
        extend = len(request.tokens)
        paged = ceil_page(extend, self._page) + self._page
        free = self.rem_current_tokens - paged
        if free < 0:
            return self._stop(StopReason.CURRENT)
        if paged > self.rem_total_tokens:
            return self._stop(StopReason.TOTAL)
        if not self._drain.fits(request, chain(self._running, self.admitted), free):
            return self._stop(StopReason.TOTAL)
        if self._chunk is None or extend <= self._chunk:
            self._commit(request, extend, min(request.max_new_tokens, CLIP_MAX_NEW_TOKENS))
        elif self._chunk <= 0:
            return self._stop(StopReason.CHUNK)
        else:
            return self._commit_cut(request, self._chunk)
        return None

    def _cut(self, request: Request) -> AddResult | None:
        """Admit the first chunk: its absolute end lies on a page, and no decode space is reserved."""
        assert self._chunk is not None
        length = floor_page(self._chunk, self._page)
        align = self._config.truncation_align_size
        if align is not None:
            length = length // align * align
        end = floor_page(request.prefix_len + length, self._page)
        if end <= request.prefix_len:
            return self._stop(StopReason.ALIGN)
        return self._commit_cut(request, end - request.prefix_len)

    def _commit_cut(self, request: Request, extend: int) -> AddResult | None:
        """Admit a first chunk, unless another request is half-done already: there is never a second."""
        if self.chunked_req is not None:
            return self._stop(StopReason.ORDER)
        self._commit(request, extend, 0)
        self.chunked_req = request
        return None

    def _commit(self, request: Request, extend: int, reserve: int) -> None:
        request.extend_end = request.prefix_len + extend
        self.admitted.append(request)
        paged = ceil_page(extend, self._page)
        self._total_offset += paged + self._page + reserve
        self._current_offset += paged + self._page
        self._input -= paged
        if self._chunk is not None:
            self._chunk -= paged

    def _reserved(self, request: Request) -> float:
        return self._reserve.of(request, self._ratio)

    def _obtainable_for(self, request: Request) -> int:
        """Tokens that the request could take at once: all obtainable pages and the rest of its open page."""
        return self._cache.obtainable_tokens + ceil_page(request.kv_len, self._page) - request.kv_len

    def _stop(self, reason: StopReason) -> AddResult:
        self.stop_reason = reason
        memory = reason in (StopReason.TOTAL, StopReason.CURRENT)
        return AddResult.NO_TOKEN if memory else AddResult.OTHER
