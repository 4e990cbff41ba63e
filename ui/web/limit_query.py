"""Limits of the Saturation page as its address and its sliders write them: itl_max=110ms, decodes=6."""

import math
import re
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from profiler.price_rows import Limits
from profiler.wording import duration
from ui.web.tile_queries import BadQuery, whole

__all__ = [
    "DECODES",
    "LIMITS",
    "MOST_DECODES",
    "LimitStep",
    "Wanted",
    "read_wanted",
    "step_of",
    "steps",
    "words_of",
]

LIMITS = {"itl_max": "itl_max_s", "itl_p99": "itl_p99_s", "ttft_p99": "ttft_p99_s"}
"""The address's names of limits, and those of `profiler.price_rows.Limits`."""

DECODES = "decodes"
MOST_DECODES = 512

_DURATION = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,12})?)(us|ms|s)")
_UNITS = {"us": 1e-6, "ms": 1e-3, "s": 1.0}
_MOST_S = 1e6
_SHOWN = 40  # characters of a bad value that a message repeats
_E24 = (10, 11, 12, 13, 15, 16, 18, 20, 22, 24, 27, 30, 33, 36, 39, 43, 47, 51, 56, 62, 68, 75, 82, 91)
_DECADES = range(-3, 2)  # a slider goes from 1 ms to 100 s
_STEPS_S = (*(step / 10 * 10.0**decade for decade in _DECADES for step in _E24), 100.0)
_COUNTS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, MOST_DECODES)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a person accepts, and how many decodes are to ride along; None: as in the trace."""

    limits: Limits = field(default_factory=Limits)
    decodes: int | None = None


@dataclass(frozen=True, slots=True)
class LimitStep:
    """A stop of a slider: as the address has it, empty for none, and in words."""

    text: str
    words: str


def read_wanted(query: Mapping[str, str]) -> tuple[Wanted, list[BadQuery]]:
    """The limits that a query holds, and what is wrong with those that are none; these are left out."""
    wanted, wrong = Wanted(), []
    for key in (*LIMITS, DECODES):
        try:
            wanted = _with(wanted, key, query) if key in query else wanted
        except BadQuery as error:
            wrong.append(error)
    return wanted, wrong


def steps(key: str) -> list[LimitStep]:
    """The stops of a slider, ascending; that of decodes begins with the trace's own, others end with none."""
    if key == DECODES:
        return [LimitStep("", "as tried"), *(LimitStep(str(n), str(n)) for n in _COUNTS)]
    return [*(_limit_step(seconds) for seconds in _STEPS_S), LimitStep("", "none")]


def step_of(key: str, wanted: Wanted) -> int:
    """The stop nearest to what is wanted."""
    if key == DECODES:
        return 0 if wanted.decodes is None else 1 + _nearest(_COUNTS, wanted.decodes)
    seconds = getattr(wanted.limits, LIMITS[key])
    return len(_STEPS_S) if seconds is None else _nearest(_STEPS_S, seconds)


def words_of(key: str, wanted: Wanted) -> str:
    """What is wanted in words, exactly: it may lie between two stops."""
    value = wanted.decodes if key == DECODES else getattr(wanted.limits, LIMITS[key])
    if value is None:
        return steps(key)[step_of(key, wanted)].words
    return str(value) if key == DECODES else duration(value)


def _with(wanted: Wanted, key: str, query: Mapping[str, str]) -> Wanted:
    if key == DECODES:
        return replace(wanted, decodes=whole(query, key, least=1, most=MOST_DECODES))
    return replace(wanted, limits=replace(wanted.limits, **{LIMITS[key]: _seconds(key, query[key])}))


def _seconds(key: str, text: str) -> float:
    found = _DURATION.fullmatch(text)
    seconds = float(found[1]) * _UNITS[found[2]] if found else 0.0
    if not 0 < seconds <= _MOST_S:
        raise BadQuery(f"{key}={text[:_SHOWN]!r} is no duration: give one as in {key}=110ms or {key}=1.4s")
    return seconds


def _limit_step(seconds: float) -> LimitStep:
    text = f"{seconds:g}s" if seconds >= 1 else f"{seconds * 1e3:.3g}ms"
    return LimitStep(text, duration(seconds))


def _nearest(values: Sequence[float], value: float) -> int:
    """The index of the nearest value, by ratio."""
    right = min(max(bisect_left(values, value), 1), len(values) - 1)
    low, high = values[right - 1], values[right]
    return right if math.log(value / low) > math.log(high / value) else right - 1
