"""A run's progress bar on the terminal, drawn seldom so that it does not disturb what is measured."""

import time
from collections.abc import Sequence

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

from engine.observer import ForwardRecord
from engine.request import Request
from ui.words import count, rate

__all__ = ["RunProgress"]

DRAW_EVERY_NS = 500_000_000


class RunProgress:
    """Counts forwards by `step` and shows tokens/s; silent unless the console is a terminal."""

    def __init__(self, console: Console, label: str, requests: Sequence[Request]) -> None:
        self._requests = requests
        self._finished = 0
        self._output = 0
        self._computed = 0
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
        total = sum(r.prompt_len + r.sampling.max_new_tokens for r in requests)
        self._task = self._bar.add_task(label, total=total, words="")

    def __enter__(self) -> "RunProgress":
        self._bar.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._bar.stop()

    def step(self, record: ForwardRecord) -> None:
        """Take note of a forward."""
        batch = record.batch
        self._computed += len(batch.input_ids) + int(batch.cached_tokens.sum())
        self._output += int((record.token_index >= 0).sum())
        self._finished += sum(request.finished for request in batch.requests)
        now_ns = time.monotonic_ns()
        if now_ns - self._drawn_ns >= DRAW_EVERY_NS:
            self._drawn_ns = now_ns
            self._draw(now_ns)

    def _draw(self, now_ns: int) -> None:
        elapsed_s = (now_ns - self._start_ns) / 1e9
        words = (
            f"{count(self._finished)} of {count(len(self._requests))} requests, "
            f"{rate(self._computed / elapsed_s)}, {rate(self._output / elapsed_s)} out"
        )
        self._bar.update(self._task, completed=self._computed, words=words, refresh=True)
