"""`chunkscope run`: record a run of a workload on a model."""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ui.options import model_options, output_option, policy_options, seed_option, threads_option
from ui.program import program

if TYPE_CHECKING:
    from engine.workload import Workload

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
@seed_option()
@threads_option()
@output_option()
def command(
    model: Path,
    load_format: str,
    device: str,
    dtype: str,
    workload_path: Path,
    seed: int,
    threads: int | None,
    output: Path,
    **policy: Any,
) -> None:
    """Record a run of a workload on a model.

    A workload line holds rid; arrival_s; prompt_tokens (a length), prompt (text) or prompt_token_ids; and, if
    wanted, max_new_tokens, ignore_eos, temperature, seed, stop_token_ids, prefix_group with prefix_tokens.
    Requests that arrive at 0 are all queued before the first forward.
    """
    from engine.config import EngineConfig
    from ui.paths import check_new_trace

    config = EngineConfig(**policy)
    check_new_trace(output)
    workload = _load_workload(model, load_format, workload_path, seed)

    from ui.loading import load
    from ui.progress import RunProgress
    from ui.recording import Session
    from ui.tables import narrator, say

    console = narrator()
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


def _load_workload(model: Path, load_format: str, path: Path, seed: int) -> "Workload":
    """Read the workload before any weight is, so that a wrong line shows at once."""
    from engine.models.checkpoint import open_checkpoint
    from engine.workload import load_workload

    checkpoint = open_checkpoint(model, load_format)
    return load_workload(
        path, vocab_size=checkpoint.shape.vocab_size, tokenizer=checkpoint.tokenizer, seed=seed
    )
