"""The demo from end to end: probe, three recorded runs, a sweep, one table and what it means."""

import time
from array import array
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from zlib import crc32

from rich.console import Console

from engine.workload import random_ids
from profiler.summary import summarize
from profiler.sweep import sweep_sizes
from traces.reader import open_trace
from ui.demo.policies import NAMES, Policy, policies
from ui.demo.probe import measure_speed
from ui.demo.prompts import make_requests, take_prompts
from ui.demo.report import explain
from ui.demo.sizing import Sizes, choose_sizes
from ui.paths import SUFFIX
from ui.progress import RunProgress
from ui.recording import Session
from ui.sweeping import sweep
from ui.tables import reporter, say
from ui.words import count, seconds

if TYPE_CHECKING:
    from engine.models.loader import LoadedModel

__all__ = ["run_demo", "trace_paths"]

SWEEP = "sweep"
POLICY_BUDGET_S = 20.0
SWEEP_TOKENS = (8, 1024)
SWEEP_REPEATS = 3
POOL_SLACK = 1.25  # admission reserves more than is used in the end


def trace_paths(folder: Path) -> dict[str, Path]:
    """Where the demo's traces go, by name."""
    return {name: folder / f"{name}{SUFFIX}" for name in (*NAMES, SWEEP)}


def run_demo(console: Console, loaded: "LoadedModel", folder: Path) -> None:
    """Record the four traces in `folder` and print what they say; progress goes to `console`."""
    paths = trace_paths(folder)
    context = loaded.shape.max_position_embeddings
    with console.status("probing how fast this machine is"):
        sizes = choose_sizes(measure_speed(loaded), context, POLICY_BUDGET_S)
    say(console, _described(sizes))
    prompts = _prompts(loaded, sizes)
    for policy in policies(sizes.chunk_tokens, round(sizes.total_tokens * POOL_SLACK)):
        start = time.monotonic()
        _record(console, loaded, policy, sizes, prompts, paths[policy.name])
        say(console, f"{policy.name:<8} {policy.words}: {seconds(time.monotonic() - start)}")
    start = time.monotonic()
    low, high = SWEEP_TOKENS
    sweep_range = sweep_sizes(f"{low}:{min(high, context)}")
    sweep(console, loaded, sweep_range, paths[SWEEP], repeats=SWEEP_REPEATS, seed=0)
    say(
        console,
        f"{SWEEP:<8} forwards of {low} to {sweep_range[-1]} tokens: {seconds(time.monotonic() - start)}",
    )
    summaries = {name: summarize(open_trace(path)) for name, path in paths.items()}
    explain(reporter(), [summaries[name] for name in NAMES], summaries[SWEEP])


def _record(
    console: Console,
    loaded: "LoadedModel",
    policy: Policy,
    sizes: Sizes,
    prompts: Sequence["array[int]"],
    output: Path,
) -> None:
    session = Session(loaded, policy.config)
    requests = make_requests(sizes.arrivals, prompts)
    session.check(requests, lambda request: f"the demo's {request.name}")
    with RunProgress(console, policy.name, requests) as progress:
        session.record_run(requests, output, workload={"demo": policy.name}, on_step=progress.step)


def _prompts(loaded: "LoadedModel", sizes: Sizes) -> list["array[int]"]:
    """Real text where the model has a tokenizer, else random token ids in its place."""
    lengths = [arrival.prompt_tokens for arrival in sizes.arrivals]
    tokenizer = loaded.checkpoint.tokenizer()
    if tokenizer is not None:
        return take_prompts(lengths, lambda text: tokenizer.encode(text).ids)
    vocab_size = loaded.shape.vocab_size
    return take_prompts(lengths, lambda text: random_ids(len(text), vocab_size, 0, crc32(text.encode())))


def _described(sizes: Sizes) -> str:
    longs = [a for a in sizes.arrivals if a.name.startswith("long")]
    decoders = sum(a.name.startswith("decode") for a in sizes.arrivals)
    comes = " and ".join(
        f"a prompt of {count(a.prompt_tokens)} tokens comes at {seconds(a.arrival_s)}" for a in longs
    )
    return f"{decoders} requests decode; {comes}, short ones between. Chunks are {sizes.chunk_tokens} tokens."
