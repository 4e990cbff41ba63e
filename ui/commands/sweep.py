"""`chunkscope sweep`: measure forward time against tokens, prefixes and decode rows."""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ui.errors import UserError
from ui.gpu_options import GpuOptions, gpu_options
from ui.options import model_options, output_option, seed_option, threads_option
from ui.program import program
from ui.sweep_options import plan_options, planned

if TYPE_CHECKING:
    from rich.console import Console

    from profiler.sweep_plan import SweepPlan
    from ui.recording import Recording

__all__ = ["command"]


@click.command("sweep")
@model_options()
@plan_options()
@click.option("--resume", is_flag=True, help="Go on with the sweep in -o, which was broken off.")
@gpu_options()
@seed_option()
@threads_option()
@output_option()
def command(
    model: Path,
    load_format: str,
    device: str,
    dtype: str,
    executor: str,
    resume: bool,
    seed: int,
    threads: int | None,
    output: Path,
    **options: Any,
) -> None:
    """Measure forward time against tokens.

    Behind prefixes, too, and against decode rows. A forward holds one prompt, or decode rows alone. Sizes
    come several times in random orders, after a warm-up. --budget takes as many sizes as there is time for,
    and repeats most what is noisy or cheap.

    With --prefix and --decode ordinary forwards put KV into the prefix cache first; they have two rows or
    more, so that they are no points of a measured curve.

    With --executor simulated nothing is computed: a model of --gpu says how long forwards take.
    """
    from profiler.sweep import NUM_SIZES, SIMULATED_SIZES, Sweep
    from ui.sweeping import check_output, record, resumed_from
    from ui.tables import narrator, say

    gpu, simulated = GpuOptions.take(options), executor == "simulated"
    if simulated:
        _require_unused(device, threads)
    else:
        gpu.require_unused()
    if resume and output.is_symlink():
        output = output.resolve()  # it is moved while it is taken over, and not the link to it
    check_output(output, resume=resume)
    before = resumed_from(output) if resume else None
    plan = planned(options, simulated=simulated, before=before.plan if before else None)
    console = narrator()
    recording, vocab_size = (
        _simulated(console, model, gpu, dtype, plan)
        if simulated
        else _measured(
            console, plan, model, load_format=load_format, device=device, dtype=dtype, threads=threads
        )
    )
    run = Sweep(
        plan,
        vocab_size=vocab_size,
        seed=seed,
        num_sizes=SIMULATED_SIZES if simulated else NUM_SIZES,
        simulated=simulated,
        halfway=before,
    )
    if before is not None and run.complete:
        raise UserError(f"{output}: nothing is left to measure: give more --repeats or a longer --budget")
    for line in recording.assumptions():
        say(console, line)
    for line in record(console, recording, run, output, seed=seed, before=before):
        say(console, line)
    say(console, f"The trace is in {output}. Next: {program()} stats {shlex.quote(str(output))}")


def _measured(console: "Console", plan: "SweepPlan", model: Path, **options: Any) -> "tuple[Recording, int]":
    """A session on the device, and the model's vocabulary."""
    from ui.loading import load
    from ui.sweeping import session_of

    loaded = load(console, model, **options)
    return session_of(loaded, plan), loaded.shape.vocab_size


def _simulated(
    console: "Console", model: Path, gpu: GpuOptions, dtype: str, plan: "SweepPlan"
) -> "tuple[Recording, int]":
    """The same on simulated GPUs."""
    from engine.models.checkpoint import open_checkpoint
    from ui.simulating import simulated_device
    from ui.sweeping import simulated_session_of

    checkpoint = open_checkpoint(model, "dummy")
    session = simulated_session_of(simulated_device(checkpoint, gpu, dtype), plan)
    return session, checkpoint.shape.vocab_size


def _require_unused(device: str, threads: int | None) -> None:
    """Raise UserError for an option of a device that computes."""
    given = None if device == "auto" else device
    for option, value in (("--device", given), ("--threads", threads)):
        if value is not None:
            raise UserError(f"{option} {value} is not for simulated sweeps: leave it out")
