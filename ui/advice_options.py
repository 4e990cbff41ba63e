"""The options of `chunkscope advise`: durations as limits, and lists of chunk sizes."""

import math
import re
from collections.abc import Callable
from typing import Any, TypeVar

import click

__all__ = ["CHUNKS", "DURATION", "limit_options"]

F = TypeVar("F", bound=Callable[..., Any])

UNITS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "": 1.0}
LONGEST_S = 1e6
LARGEST_CHUNK = 2**31 - 1
NUMBER = re.compile(r"([0-9]{0,12}(?:\.[0-9]{0,12})?) *(us|ms|s|)", re.IGNORECASE)
SHOWN = 40  # characters of a bad value that a message repeats


class _Duration(click.ParamType[float]):
    """A duration like 200ms, 2s or 0.2, in seconds."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Seconds above 0; anything else is refused."""
        if isinstance(value, float):
            return value
        found = NUMBER.fullmatch(str(value).strip())
        number = found[1] if found else ""
        seconds = float(number) * UNITS[found[2].lower()] if found and number.strip(".") else math.nan
        if not 0 < seconds <= LONGEST_S:
            self.fail(f"{str(value)[:SHOWN]!r} is no duration: give one like 200ms, 2s or 0.2", param, ctx)
        return seconds


class _Chunks(click.ParamType[tuple[int, ...]]):
    """Chunk sizes like 512,1024, in tokens; -1, whole prompts, is always compared with and passed over."""

    name = "sizes"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[int, ...]:
        """The sizes, each once, ascending."""
        if isinstance(value, tuple):
            return value
        parts = [part.strip() for part in str(value).split(",")]
        if not all(re.fullmatch(r"[0-9]{1,10}|-1", part) for part in parts):
            self.fail(f"{str(value)[:SHOWN]!r} is no list of tokens: give sizes like 512,1024", param, ctx)
        sizes = {int(part) for part in parts} - {-1}
        if not all(1 <= size <= LARGEST_CHUNK for size in sizes):
            self.fail(f"{str(value)[:SHOWN]!r}: give sizes from 1 to {LARGEST_CHUNK}", param, ctx)
        return tuple(sorted(sizes))


DURATION, CHUNKS = _Duration(), _Chunks()


def limit_options() -> Callable[[F], F]:
    """--itl-max, --itl-p99, --ttft-p99, in seconds."""

    def decorate(function: F) -> F:
        for option in (
            click.option("--ttft-p99", type=DURATION, metavar="TIME", help="Of all times to first token."),
            click.option("--itl-p99", type=DURATION, metavar="TIME", help="Of all gaps between tokens."),
            click.option(
                "--itl-max", type=DURATION, metavar="TIME", help="No gap between two tokens may be longer."
            ),
        ):
            function = option(function)
        return function

    return decorate
