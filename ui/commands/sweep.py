"""`chunkscope sweep`: measure forward time against tokens."""

import re
import shlex
from pathlib import Path
from typing import Any

import click

from ui.errors import UserError
from ui.options import model_options, output_option, seed_option, threads_option
from ui.program import program

__all__ = ["command"]

_SECONDS = re.compile(r"([0-9]{1,7}(?:\.[0-9]{1,6})?)s?", re.ASCII)


class Seconds(click.ParamType[float]):
    """A length of time: 90, or 90s."""

    name = "seconds"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Seconds above 0, or a usage error."""
        match = _SECONDS.fullmatch(value) if isinstance(value, str) else None
        if match is None or not (seconds := float(match[1])):
            self.fail(f"{value!r} is no number of seconds: give 90, or 90s.", param, ctx)
        return seconds


@click.command("sweep")
@model_options()
@click.option(
    "--tokens",
    default="8:1024",
    show_default=True,
    metavar="LOW:HIGH",
    help="Ten sizes between these, both included, in geometric steps.",
)
@click.option("--repeats", type=click.IntRange(1, 1000), help="Forwards of each size.  [default: 3]")
@click.option(
    "--budget",
    type=Seconds(),
    metavar="SECONDS",
    help="Measure for so long instead, in up to 24 sizes; ends sooner when all are known to 1 %.",
)
@seed_option()
@threads_option()
@output_option()
def command(
    model: Path,
    load_format: str,
    device: str,
    dtype: str,
    tokens: str,
    repeats: int | None,
    budget: float | None,
    seed: int,
    threads: int | None,
    output: Path,
) -> None:
    """Measure forward time against tokens.

    One prompt a forward, without prefix, each size several times in random order after a warm-up.
    """
    from profiler.sweep import sweep_sizes
    from profiler.sweep_cases import parse_range
    from ui.paths import check_new_trace

    ends = parse_range(tokens, "--tokens", "tokens")
    if budget is not None and repeats is not None:
        raise UserError("--repeats and --budget both say when to stop: give one of them")
    check_new_trace(output)

    from ui.loading import load
    from ui.sweeping import sweep, sweep_for
    from ui.tables import narrator, say

    console = narrator()
    loaded = load(console, model, load_format=load_format, device=device, dtype=dtype, threads=threads)
    if budget is None:
        found = sweep(console, loaded, sweep_sizes(tokens), output, repeats=repeats or 3, seed=seed)
    else:
        found = sweep_for(console, loaded, ends, output, budget_s=budget, seed=seed)
    say(console, found)
    say(console, f"The trace is in {output}. Next: {program()} stats {shlex.quote(str(output))}")
