"""`chunkscope sweep`: measure forward time against tokens."""

import shlex
from pathlib import Path

import click

from ui.options import model_options, output_option, seed_option, threads_option
from ui.program import program

__all__ = ["command"]


@click.command("sweep")
@model_options()
@click.option(
    "--tokens",
    default="8:1024",
    show_default=True,
    metavar="LOW:HIGH",
    help="Ten sizes between these, in geometric steps.",
)
@click.option("--repeats", type=click.IntRange(1, 1000), default=3, show_default=True)
@seed_option()
@threads_option()
@output_option()
def command(
    model: Path,
    load_format: str,
    device: str,
    dtype: str,
    tokens: str,
    repeats: int,
    seed: int,
    threads: int | None,
    output: Path,
) -> None:
    """Measure forward time against tokens.

    One prompt a forward, without prefix, each size several times in random order after a warm-up.
    """
    from profiler.sweep import sweep_sizes
    from ui.paths import check_new_trace

    sizes = sweep_sizes(tokens)
    check_new_trace(output)

    from ui.loading import load
    from ui.sweeping import sweep
    from ui.tables import narrator, say

    console = narrator()
    loaded = load(console, model, load_format=load_format, device=device, dtype=dtype, threads=threads)
    say(console, sweep(console, loaded, sizes, output, repeats=repeats, seed=seed))
    say(console, f"The trace is in {output}. Next: {program()} stats {shlex.quote(str(output))}")
