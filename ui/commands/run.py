"""`chunkscope run`: record a run of a workload on a model."""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ui.errors import UserError
from ui.gpu_options import GpuOptions, gpu_options
from ui.options import model_options, output_option, policy_options, seed_option, threads_option
from ui.program import program

if TYPE_CHECKING:
    from rich.console import Console

    from engine.config import EngineConfig
    from engine.models.checkpoint import Checkpoint
    from engine.workload import Workload
    from ui.recording import Recording

__all__ = ["command"]


@click.command("run")
@model_options()
@click.option(
    "--workload",
    "workload_path",
    type=click.Path(path_type=Path),
    required=True,
    metavar="FILE.jsonl",
    help='Requests, one a line: {"rid": "a", "prompt_tokens": 1000, "max_new_tokens": 64}',
)
@policy_options()
@click.option("--context-length", type=int, help="Tokens a request may have in all.  [default: the model's]")
@gpu_options()
@seed_option()
@threads_option()
@output_option()
def command(
    model: Path,
    load_format: str,
    device: str,
    dtype: str,
    workload_path: Path,
    executor: str,
    seed: int,
    threads: int | None,
    output: Path,
    **options: Any,
) -> None:
    """Record a run of a workload on a model.

    A workload line holds rid; arrival_s; prompt_tokens (a length), prompt (text) or prompt_token_ids; and, if
    wanted, max_new_tokens, ignore_eos, temperature, seed, stop_token_ids, prefix_group with prefix_tokens.
    Requests that arrive at 0 are all queued before the first forward.

    With --executor simulated nothing is computed: the same engine runs on a virtual clock, a model of --gpu
    says how long its forwards take, and every request gives all of its max_new_tokens.
    """
    from engine.config import EngineConfig
    from engine.models.checkpoint import open_checkpoint
    from ui.paths import check_new_trace
    from ui.progress import RunProgress
    from ui.tables import narrator, say

    gpu = GpuOptions.take(options)
    config = EngineConfig(**options)
    simulated = executor == "simulated"
    if simulated:
        _require_unused(device, threads)
    else:
        gpu.require_unused()
    check_new_trace(output)
    checkpoint = open_checkpoint(model, "dummy" if simulated else load_format)
    console = narrator()
    session: Recording
    if simulated:
        session = _simulated_session(console, checkpoint, gpu, dtype, config)
        workload = _load_workload(checkpoint, workload_path, seed)
    else:
        # The workload before any weight, so that a wrong line shows at once.
        workload = _load_workload(checkpoint, workload_path, seed)
        from ui.loading import load
        from ui.recording import Session

        loaded = load(console, model, load_format=load_format, device=device, dtype=dtype, threads=threads)
        session = Session(loaded, config)
    for request in session.check(workload.requests, workload.where):
        say(
            console,
            f"{workload.where(request)}: max_new_tokens lowered to {request.max_new_tokens}, which fits",
        )
    about = {"path": str(workload_path), "requests": len(workload.requests)}
    with RunProgress(console, output.name, workload.requests) as progress:
        session.record_run(workload.requests, output, seed=seed, workload=about, on_step=progress.step)
    say(console, f"The trace is in {output}. Next: {program()} stats {shlex.quote(str(output))}")


def _load_workload(checkpoint: "Checkpoint", path: Path, seed: int) -> "Workload":
    from engine.workload import load_workload

    return load_workload(
        path, vocab_size=checkpoint.shape.vocab_size, tokenizer=checkpoint.tokenizer, seed=seed
    )


def _simulated_session(
    console: "Console", checkpoint: "Checkpoint", gpu: GpuOptions, dtype: str, config: "EngineConfig"
) -> "Recording":
    """A session on the simulated GPU, after saying what is assumed of it."""
    from ui.simulating import SimulatedSession, simulated_device
    from ui.tables import say

    session = SimulatedSession(simulated_device(checkpoint, gpu, dtype), config)
    for line in session.assumptions():
        say(console, line)
    return session


def _require_unused(device: str, threads: int | None) -> None:
    """Raise UserError for an option of a device that computes."""
    for option, value in (("--device", None if device == "auto" else device), ("--threads", threads)):
        if value is not None:
            raise UserError(f"{option} {value} is not for simulated runs: leave it out")
