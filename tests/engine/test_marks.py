"""Marks: nothing unless watched, then ranges that follow one another."""

import time

import pytest
import torch

from engine.marks import mark, marks_watched
from engine.operators import Operator


class Ranges:
    """Stands for record_function: notes what is opened and closed."""

    def __init__(self, log: list[str]) -> None:
        self._log = log

    def __call__(self, name: str) -> "Ranges":
        self._name = name
        return self

    def __enter__(self) -> None:
        self._log.append(self._name)

    def __exit__(self, *args: object) -> None:
        self._log.append("end")


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    log: list[str] = []
    monkeypatch.setattr(torch.profiler, "record_function", Ranges(log))
    return log


def test_unwatched_marks_do_nothing(log: list[str]) -> None:
    mark(Operator.QKV, 3)
    with marks_watched():
        pass
    mark(Operator.HEAD)
    assert log == []


def test_each_mark_ends_the_one_before_and_the_last_ends_with_the_watch(log: list[str]) -> None:
    with marks_watched():
        mark(Operator.QKV, 3)
        mark(Operator.HEAD)
    assert log == ["chunkscope:QKV:3", "end", "chunkscope:HEAD:", "end"]


def test_a_failed_forward_leaves_no_range_open(log: list[str]) -> None:
    with pytest.raises(MemoryError):
        fail()
    mark(Operator.QKV, 1)
    assert log == ["chunkscope:DOWN:0", "end"]


def fail() -> None:
    with marks_watched():
        mark(Operator.DOWN, 0)
        raise MemoryError


def test_unwatched_marks_are_cheap() -> None:
    """A forward of 32 layers has some 300: together they must stay far below a millisecond."""
    best = min(_time_300() for _ in range(20))
    assert best < 300e-6


def _time_300() -> float:
    start = time.perf_counter()
    for layer in range(300):
        mark(Operator.QKV, layer)
    return time.perf_counter() - start
