"""`chunkscope run`: record a run of a workload on a model, on a device or simulated."""

import shlex
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ui.errors import UserError
from ui.gpu_options import GpuOptions, gpu_options
from ui.graph_options import GraphOptions, graph_options
from ui.options import model_options, output_option, policy_options, seed_option, threads_option
from ui.program import program
from ui.record_options import KernelSampling, record_option
from ui.workload_options import about_workload, lowered_lines, workload_lines, workload_options

if TYPE_CHECKING:
    from ui.recording import Recording

__all__ = ["command"]


@click.command("run")
@model_options()
@workload_options()
@policy_options()
@click.option("--context-length", type=int, help="Tokens a request may have in all.  [default: the model's]")
@graph_options()
@gpu_options()
@seed_option()
@threads_option()
@record_option()
@output_option()
def command(
    model: Path,
    load_format: str,
    device: str,
    dtype: str,
    workload_path: Path,
    limit: int | None,
    time_scale: float,
    executor: str,
    seed: int,
    threads: int | None,
    record: KernelSampling | None,
    output: Path,
    **options: Any,
) -> None:
    """Record a run of a workload on a model.

    A workload line of Chunkscope holds rid; arrival_s; prompt_tokens (a length), prompt (text) or
    prompt_token_ids; and, if wanted, max_new_tokens, ignore_eos, temperature, seed, stop_token_ids, priority,
    prefix_group with prefix_tokens. Requests that arrive at 0 are all queued before the first forward.

    Requests of recorded traces are as long as recorded and ignore EOS. Where two of Mooncake share a hash id,
    their prompts share 512 tokens.

    With --executor simulated nothing is computed: the same engine runs on a virtual clock, a model of --gpu
    says how long its forwards take, and every request gives all of its max_new_tokens.
    """
    from engine.config import EngineConfig
    from engine.models.checkpoint import open_checkpoint
    from engine.workload import load_workload
    from ui.paths import check_new_trace
    from ui.progress import RunProgress
    from ui.tables import narrator, say

    gpu = GpuOptions.take(options)
    graphs = GraphOptions.take(options)
    config = EngineConfig(**options, random_seed=seed)
    simulated = executor == "simulated"
    if simulated:
        _require_unused(device, threads, record)
        graphs.require_unused()
    else:
        gpu.require_unused()
    check_new_trace(output)
    checkpoint = open_checkpoint(model, "dummy" if simulated else load_format)
    workload = load_workload(  # before any weight is read, so that a wrong line shows at once
        workload_path,
        vocab_size=checkpoint.shape.vocab_size,
        tokenizer=checkpoint.tokenizer,
        seed=seed,
        limit=limit,
        time_scale=time_scale,
    )
    console = narrator()
    session: Recording
    if simulated:
        from ui.simulating import SimulatedSession, simulated_device

        session = SimulatedSession(simulated_device(checkpoint, gpu, dtype), config)
    else:
        from ui.loading import load
        from ui.recording import Session

        loaded = load(console, model, load_format=load_format, device=device, dtype=dtype, threads=threads)
        session = Session(loaded, config, record, graphs)
    lowered = session.check(workload.requests, workload.where)
    lines = chain(
        _policy_lines(config.schedule_policy, session.config.schedule_policy),
        session.assumptions(),
        workload_lines(workload, tokens_end_outputs=not session.simulated),
        lowered_lines(workload, lowered),
    )
    for line in lines:
        say(console, line)
    about = about_workload(workload, limit=limit, time_scale=time_scale)
    with RunProgress(console, output.name, workload.requests) as progress:
        session.record_run(workload.requests, output, seed=seed, workload=about, on_step=progress.step)
    say(console, f"The trace is in {output}. Next: {program()} stats {shlex.quote(str(output))}")


def _policy_lines(asked: str, runs: str) -> Iterator[str]:
    """Say so where another policy runs than the one asked for."""
    if runs != asked:
        yield f"--schedule-policy {asked} asks the prefix cache, which is off: {runs} runs"


def _require_unused(device: str, threads: int | None, record: KernelSampling | None) -> None:
    """Raise UserError for an option of a device that computes."""
    given = None if device == "auto" else device
    for option, value in (("--device", given), ("--threads", threads), ("--record", record)):
        if value is not None:
            raise UserError(f"{option} {value} is not for simulated runs: leave it out")
