"""Rounds between prefills: D stands for a round that may only decode, E for one that prefills."""

import pytest

from engine.prefill_interval import PrefillInterval


def _rounds(interval: PrefillInterval, running: list[int], waiting: bool = True) -> str:
    out = ""
    for count in running:
        deferred = interval.defers(count)
        if not deferred and waiting:
            interval.arm()
        out += "D" if deferred else "E"
    return out


@pytest.mark.parametrize(("rounds", "seen"), [(0, "EEEEEEE"), (1, "EDEDEDE"), (2, "EDDEDDE"), (5, "EDDDDDE")])
def test_prefills_come_after_the_interval(rounds: int, seen: str) -> None:
    assert _rounds(PrefillInterval(rounds, 0), [4] * 7) == seen


def test_a_decode_round_arms_nothing() -> None:
    interval = PrefillInterval(2, 0)
    assert _rounds(interval, [4] * 5, waiting=False) == "EEEEE"


def test_few_running_requests_defer_nothing() -> None:
    assert _rounds(PrefillInterval(2, 4), [3, 3, 3]) == "EEE"
    assert _rounds(PrefillInterval(2, 4), [4, 4, 3, 4, 4, 4]) == "EDEDDE"


def test_nothing_is_deferred_when_nothing_runs() -> None:
    # SGLang stays idle for two rounds after each prefill here.
    assert _rounds(PrefillInterval(2, 0), [0, 0, 0]) == "EEE"
    assert _rounds(PrefillInterval(2, 0), [0, 1, 1, 1, 1, 0, 0]) == "EDDEDEE"
