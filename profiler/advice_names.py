"""How sentences about advice name limits, options, tokens and the saturation point."""

import math

from profiler.advice import Advice
from profiler.price_rows import Options
from profiler.wording import count, tokens

__all__ = [
    "LIMIT_WORDS",
    "limit_words",
    "margin_words",
    "option_words",
    "point_words",
    "span_words",
]

LIMIT_WORDS = {"itl_max_s": "ITL max", "itl_p99_s": "ITL p99", "ttft_p99_s": "TTFT p99"}
"""Names of the fields of `Limits` in tables and sentences."""

LIMIT_DIGITS = 6  # a person's own number is repeated, not rounded


def option_words(options: Options) -> str:
    """Short enough for a table: whole, 512 prefill first, 512 mixed, 512 interval 1."""
    if options.chunk_tokens is None:
        return "whole prompts"
    policy = (
        "mixed" if options.mixed else f"interval {options.interval}" if options.interval else "prefill first"
    )
    return f"{count(options.chunk_tokens)} {policy}"


def limit_words(seconds: float) -> str:
    """A limit as it was given, without zeros behind: 36 s, 200 ms, 0.1 ms."""
    value, unit = (seconds, "s") if seconds >= 1 else (seconds * 1e3, "ms")
    decimals = max(0, LIMIT_DIGITS - 1 - math.floor(math.log10(value)))
    said = f"{value:,.{decimals}f}"
    return f"{said.rstrip('0').rstrip('.') if '.' in said else said} {unit}"


def margin_words(margin: float) -> str:
    """Behind a number that was raised; nothing if it was not."""
    return f" with a margin of {margin * 100:.0f} %" if margin else ""


def span_words(advice: Advice) -> str:
    """The point in tokens, with its interval unless that is the point alone."""
    point = advice.point
    span = "" if point.low == point.high else f" [{count(point.low)}, {count(point.high)}]"
    return f"{tokens(point.tokens)}{span}"


def point_words(advice: Advice) -> str:
    """The point, and by what, unless the run's own forwards gave it."""
    together = f" of all {advice.num_traces} runs together" if advice.num_traces > 1 else ""
    if advice.point.by_points:
        by = f" by the forwards{together}" if together else ""
    elif advice.basis.model is None:
        by = " by the run's own cost model"
    else:
        by = f" by the cost model fitted to the forwards{together or ' of the run'}"
    return f"{span_words(advice)}{by}"
