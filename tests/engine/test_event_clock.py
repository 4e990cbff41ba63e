"""Events on the host's clock: bounds, anchors, and no drift from the time at which someone asked."""

from dataclasses import dataclass

import pytest

from engine.executors.event_clock import ANCHOR_NS, EventClock, Sighting

MS = 1_000_000


@dataclass
class Event:
    """An event that passed at a time of the device's clock; elapsed times are coarse, as CUDA's are."""

    device_ns: int

    def elapsed_time(self, end_event: "Event") -> float:
        return (end_event.device_ns - self.device_ns) / 1e6


class Device:
    """A device whose clock runs `rate` times as fast as the host's, and the events of its forwards."""

    def __init__(self, rate: float = 1.0) -> None:
        self.rate = rate
        self.times = EventClock(self._event(0), 0)

    def _event(self, true_ns: float) -> Event:
        return Event(round(true_ns * self.rate) + 123_456_789)

    def forward(
        self, start_ns: int, end_ns: int, *, queued_ns: int, seen_ns: int, waited: bool
    ) -> tuple[int, int, int | None]:
        """A forward that truly ran from `start_ns` to `end_ns`, its ids copied a microsecond later."""
        start, end, last = (self._event(t) for t in (start_ns, end_ns, end_ns + 1000))
        return self.times.interval(start, end, last, Sighting(queued_ns, seen_ns, waited))


def test_intervals_follow_the_device() -> None:
    device = Device()
    for first_ns in (2 * MS, 9 * MS, 40 * MS):
        told = device.forward(
            first_ns, first_ns + MS, queued_ns=first_ns - MS, seen_ns=first_ns + 3 * MS, waited=False
        )
        assert told == (first_ns, first_ns + MS, None)


def test_a_late_look_moves_nothing() -> None:
    device = Device()
    period_ns = 20 * MS
    for i in range(1, 2 * ANCHOR_NS // period_ns):
        start_ns = i * period_ns
        told = device.forward(
            start_ns, start_ns + 5 * MS, queued_ns=start_ns - MS, seen_ns=start_ns + 19 * MS, waited=False
        )
        assert told == (start_ns, start_ns + 5 * MS, None)


@pytest.mark.parametrize("rate", [1 - 2e-5, 1 + 2e-5])
@pytest.mark.parametrize("idle", [False, True], ids=["busy", "idle"])
def test_a_clock_that_runs_otherwise_is_held_to_the_hosts(rate: float, idle: bool) -> None:
    """20 ppm for 100 s are 2 ms. Idle: queued just before it starts, seen late. Busy: seen as it ends."""
    device = Device(rate)
    last_end_ns = 0
    for i in range(1, 2000):
        start_ns, end_ns = i * 50 * MS, i * 50 * MS + 10 * MS
        bounds = (
            {"queued_ns": start_ns - 5_000, "seen_ns": end_ns + 30 * MS}
            if idle and rate < 1
            else {"queued_ns": start_ns - 40 * MS, "seen_ns": end_ns + 9_000}
        )
        start, end, _ = device.forward(start_ns, end_ns, waited=not idle, **bounds)
        assert abs(start - start_ns) < 250_000
        assert abs(end - end_ns) < 250_000
        assert last_end_ns <= start <= end
        last_end_ns = end


def test_the_error_is_that_of_the_last_anchor() -> None:
    device = Device(1 + 1e-5)  # a hundredth of a millisecond a second
    start_ns = ANCHOR_NS + MS
    told = device.forward(start_ns, start_ns + MS, queued_ns=MS, seen_ns=start_ns + MS + 1000, waited=True)
    assert told[2] is not None
    assert abs(told[2] - 1e-5 * start_ns) < 1000
    assert abs(told[0] - start_ns) < 100
    next_ns = start_ns + 5 * MS
    again = device.forward(next_ns, next_ns + MS, queued_ns=start_ns, seen_ns=next_ns + 4 * MS, waited=False)
    assert again[2] == told[2]


def test_no_forward_starts_before_the_one_before_has_ended() -> None:
    """The device's clock is fast: the anchor moves the chain back, behind an end already told."""
    device = Device(1 + 1e-4)
    ends: list[int] = []
    for start_ns in (ANCHOR_NS - 2 * MS, ANCHOR_NS, ANCHOR_NS + 2 * MS):
        last = start_ns == ANCHOR_NS
        end_ns = start_ns + 2 * MS - 100
        start, end, _ = device.forward(
            start_ns, end_ns, queued_ns=0, seen_ns=end_ns + (1000 if last else 5 * MS), waited=last
        )
        assert not ends or start >= ends[-1]
        assert end >= start
        ends.append(end)
    assert ends[-1] == pytest.approx(ANCHOR_NS + 4 * MS, abs=2000)
