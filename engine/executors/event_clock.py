"""CUDA events on the host's clock, without ever waiting for one that is not awaited anyway."""

from dataclasses import dataclass
from typing import Any, Protocol

__all__ = ["ANCHOR_NS", "EventClock", "Sighting", "TimedEvent"]

ANCHOR_NS = 10_000_000_000


class TimedEvent(Protocol):
    """The part of `torch.cuda.Event` that is needed."""

    def elapsed_time(self, end_event: Any) -> float:
        """Milliseconds from this event to a later one; both have passed."""
        ...


@dataclass(frozen=True, slots=True)
class Sighting:
    """What the host's clock knows of a forward's events."""

    queued_ns: int  # before the first was put on the stream: it passed no earlier
    seen_ns: int  # the last had passed by then
    waited: bool  # and not long before, since the host was waiting for it


class EventClock:
    """Turns events into nanoseconds of the host's clock, which must never go back.

    Elapsed times are float32 milliseconds, too coarse over a long run, so each is measured from the event
    before. The two clocks drift apart. Every ten seconds the chain is tied to the host's clock again, by a
    forward that the host waited for; and no event is ever placed before it was queued or after it was seen.
    """

    def __init__(self, event: TimedEvent, now_ns: int) -> None:
        """`event` has just passed, at `now_ns`."""
        self._last = event
        self._last_ns = self._told_ns = self._anchored_ns = now_ns
        self._error_ns: int | None = None

    def interval(
        self, start: TimedEvent, end: TimedEvent, last: TimedEvent, sighting: Sighting
    ) -> tuple[int, int, int | None]:
        """Start, end and clock error of a forward, in nanoseconds; `last` was queued right after `end`.

        The error is the last correction of the chain, None before the first. Forwards must come in the order
        in which they ran. Their intervals do not overlap, even where a correction says that they did.
        """
        start_ns = self._last_ns + _elapsed_ns(self._last, start)
        end_ns = start_ns + _elapsed_ns(start, end)
        before_seen_ns = sighting.seen_ns - (end_ns + _elapsed_ns(end, last))
        shift_ns = self._shift(sighting, start_ns, before_seen_ns)
        self._last, self._last_ns = end, end_ns + shift_ns
        start_ns = max(start_ns + shift_ns, self._told_ns)
        self._told_ns = max(end_ns + shift_ns, start_ns)
        return start_ns, self._told_ns, self._error_ns

    def _shift(self, sighting: Sighting, start_ns: int, before_seen_ns: int) -> int:
        """How much later the chain must be."""
        if sighting.waited and sighting.seen_ns - self._anchored_ns >= ANCHOR_NS:
            self._anchored_ns = sighting.seen_ns
            self._error_ns = abs(before_seen_ns)
            return before_seen_ns
        shift_ns = min(max(0, sighting.queued_ns - start_ns), before_seen_ns)
        if shift_ns:
            self._error_ns = abs(shift_ns)
        return shift_ns


def _elapsed_ns(earlier: TimedEvent, later: TimedEvent) -> int:
    return round(earlier.elapsed_time(later) * 1e6)
