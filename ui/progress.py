"""Progress bars of runs, drawn seldom so that they do not disturb what is measured."""

import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

from engine.observer import ForwardRecord
from engine.request import Request
from ui.words import plural, rate

__all__ = ["RunProgress", "SweepProgress"]

DRAW_EVERY_NS = 500_000_000


class _StepProgress(ABC):
    """A bar that `step` moves; silent unless the console is a terminal."""

    def __init__(self, console: Console, label: str, total: int) -> None:
        self._start_ns = time.monotonic_ns()
        self._drawn_ns = 0
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TaskProgressColumn(),
            TextColumn("{task.fields[words]}"),
            TimeElapsedColumn(),
            console=console,
            auto_refresh=False,
            transient=True,
            disable=not console.is_terminal,
        )
        self._task = self._bar.add_task(label, total=total, words="")

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._bar.stop()

    def step(self, record: ForwardRecord) -> None:
        """Take note of a forward."""
        self._count(record)
        now_ns = time.monotonic_ns()
        if now_ns - self._drawn_ns >= DRAW_EVERY_NS:
            self._drawn_ns = now_ns
            done, words = self._shown((now_ns - self._start_ns) / 1e9)
            self._bar.update(self._task, completed=done, words=words, refresh=True)

    @abstractmethod
    def _count(self, record: ForwardRecord) -> None:
        """Add a forward up."""

    @abstractmethod
    def _shown(self, elapsed_s: float) -> tuple[int, str]:
        """How much of the total is done, and words to it."""


class RunProgress(_StepProgress):
    """How many tokens of the workload are computed, and how fast."""

    def __init__(self, console: Console, label: str, requests: Sequence[Request]) -> None:
        super().__init__(console, label, sum(r.prompt_len + r.max_new_tokens for r in requests))
        self._requests = len(requests)
        self._finished = 0
        self._output_tokens = 0
        self._done_tokens = 0

    def _count(self, record: ForwardRecord) -> None:
        batch = record.batch
        self._done_tokens += len(batch.input_ids) + int(batch.cached_tokens.sum())
        self._output_tokens += int((record.token_index >= 0).sum())
        self._finished += sum(request.finished for request in batch.requests)

    def _shown(self, elapsed_s: float) -> tuple[int, str]:
        left = plural(self._requests - self._finished, "request")
        rates = f"{rate(self._done_tokens / elapsed_s)}, {rate(self._output_tokens / elapsed_s)} out"
        return self._done_tokens, f"{rates}, {left} left"


class SweepProgress(_StepProgress):
    """How far a sweep is: by its measured forwards, or by the seconds that it may take."""

    def __init__(
        self, console: Console, label: str, *, forwards: int | None = None, budget_s: float | None = None
    ) -> None:
        total = forwards if forwards is not None else round(budget_s or 0)
        super().__init__(console, label, total)
        self._by_time = forwards is None
        self._forwards = 0
        self._measured = 0

    def _count(self, record: ForwardRecord) -> None:
        batch = record.batch
        self._forwards += 1
        self._measured += batch.num_rows == 1 or not batch.num_extend_seqs

    def _shown(self, elapsed_s: float) -> tuple[int, str]:
        return round(elapsed_s) if self._by_time else self._measured, plural(self._forwards, "forward")
