"""Requests that give their KV back before they have ended: for lack of memory, or to a more urgent one.

Their output is kept and prefilled again later, under the next attempt, so results still outstanding for the
old one change nothing.
"""

from collections.abc import Sequence

from engine.cache import KVCache
from engine.decode_memory import check_decode_mem, choose_kept, reset_for_retract
from engine.event_log import EventLog
from engine.observer import EventKind
from engine.request import FinishReason, Request
from engine.reserve import Reserve

__all__ = ["Retraction"]


class Retraction:
    """Takes KV away and remembers, for a round, from whom."""

    def __init__(self, cache: KVCache, reserve: Reserve, events: EventLog) -> None:
        self.retracted: list[Request] = []  # in order
        self.preempted: list[Request] = []
        self.aborted: list[Request] = []  # for lack of memory, alone in the pool
        self._cache = cache
        self._reserve = reserve
        self._events = events

    def start_round(self) -> None:
        """Forget the round before."""
        self.retracted, self.preempted, self.aborted = [], [], []

    def retract(
        self, running: Sequence[Request], chunked_req: Request | None
    ) -> tuple[list[Request], Request | None]:
        """Retract those with the least output until the others' next tokens fit; returns who stays.

        A parked half-done request gives way before the last decoding one is aborted.
        """
        kept = choose_kept(running)
        while len(kept) > 1:
            self._retract(kept.pop(), len(kept))
            if check_decode_mem(self._cache, kept):
                break
        if not check_decode_mem(self._cache, kept) and chunked_req is not None:
            self._retract(chunked_req, len(kept))
            chunked_req = None
        if not check_decode_mem(self._cache, kept):
            self._abort(kept.pop())
        return kept, chunked_req

    def preempt(self, running: Sequence[Request], victims: Sequence[Request], by: Request) -> list[Request]:
        """Take the victims' KV for `by`; returns who stays."""
        kept = list(running)
        for victim in sorted(victims, key=kept.index):  # in batch order, as SGLang
            kept.remove(victim)
            self._events.add(EventKind.PREEMPT, victim, tokens=victim.kv_len, detail=f"for request {by.rid}")
            self._reset(victim, len(kept))
        self.preempted += victims
        return kept

    def _retract(self, request: Request, remaining: int) -> None:
        self._events.add(EventKind.RETRACT, request, tokens=request.kv_len)
        self._reset(request, remaining)
        self.retracted.append(request)

    def _reset(self, request: Request, remaining: int) -> None:
        self._reserve.leave(request)
        reset_for_retract(self._cache, request, remaining)

    def _abort(self, request: Request) -> None:
        self._reserve.leave(request)
        self._cache.release(request, keep=False)
        request.finish_reason = FinishReason.ABORT
        request.abort_detail = "the KV pool cannot hold its next token"
        self.aborted.append(request)
