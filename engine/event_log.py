"""Notes the scheduler's decisions for observers; switched off it costs one test a call."""

from engine.clock import Clock
from engine.observer import Event, EventKind
from engine.request import Request

__all__ = ["EventLog"]


class EventLog:
    """Collects decisions between two calls of `take`."""

    def __init__(self, clock: Clock, enabled: bool = False) -> None:
        self.enabled = enabled
        self.forward_id: int | None = None  # the forward being planned or processed
        self._clock = clock
        self._events: list[Event] = []

    def add(
        self,
        kind: EventKind,
        request: Request | None = None,
        *,
        tokens: int | None = None,
        pages: int | None = None,
        detail: str | None = None,
        t_ns: int | None = None,
    ) -> None:
        """Note a decision, now unless `t_ns` says when."""
        if not self.enabled:
            return
        rid, attempt = (None, None) if request is None else (request.rid, request.attempt)
        when = self._clock.now_ns() if t_ns is None else t_ns
        self._events.append(
            Event(when, kind, self.forward_id, rid, attempt, pages=pages, tokens=tokens, detail=detail)
        )

    def take(self) -> list[Event]:
        """The decisions since the last call, oldest first."""
        events, self._events = self._events, []
        return events
