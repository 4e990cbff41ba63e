"""A recorded sweep of forwards, on a device or simulated, and what it found in words."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from engine.arithmetic import kv_bytes_per_token
from engine.config import EngineConfig
from engine.errors import ConfigError
from engine.observer import ForwardRecord
from profiler.cost import MAX_TIME_S
from profiler.sentences import saturation_point
from profiler.summary import summarize
from profiler.sweep import Sweep
from profiler.sweep_continued import set_aside, whole_trace
from profiler.sweep_halfway import Halfway, halfway
from profiler.sweep_plan import SweepPlan
from profiler.sweep_words import sweep_words
from traces.reader import open_trace
from ui.errors import Interrupted, UserError
from ui.paths import check_new_trace
from ui.progress import SweepProgress
from ui.recording import Recording, Session

if TYPE_CHECKING:
    from engine.models.loader import LoadedModel
    from engine.shapes import ModelShape
    from ui.simulating import SimulatedDevice, SimulatedSession

__all__ = ["check_output", "record", "resumed_from", "session_of", "simulated_session_of", "sweep"]

USABLE = 0.9  # of the free memory, for the KV pool: activations need the rest


def sweep(
    console: Console, loaded: "LoadedModel", sizes: Sequence[int], output: Path, *, repeats: int, seed: int
) -> str:
    """Record `repeats` forwards of each size; returns the saturation point in words.

    Raises ConfigError for a size beyond the model's context.
    """
    plan = SweepPlan((sizes[0], sizes[-1]), repeats=repeats)
    run = Sweep(plan, vocab_size=loaded.shape.vocab_size, seed=seed, num_sizes=len(sizes))
    record(console, session_of(loaded, plan), run, output, seed=seed)
    return saturation_point(summarize(open_trace(output))["saturation"])


def record(
    console: Console,
    recording: Recording,
    run: Sweep,
    output: Path,
    *,
    seed: int,
    before: Halfway | None = None,
) -> Iterator[str]:
    """Record the sweep behind what it had recorded `before`; returns what it found, in lines."""
    budget_s = None if run.plan.budget_s is None else run.left_s
    with SweepProgress(console, output.name, forwards=run.open_forwards, budget_s=budget_s) as progress:

        def step(record: ForwardRecord) -> None:
            progress.step(record)
            if record.result.end_ns > MAX_TIME_S * 10**9:  # only simulated ones come so far
                raise ConfigError(
                    f"the sweep takes more than {MAX_TIME_S:.0e} s of simulated time, which is the most: "
                    f"give higher peaks, or smaller forwards; what was recorded is in {output}"
                )

        try:
            recording.record_sweep(run, output, seed=seed, before=before, on_step=step)
        except Interrupted as stop:
            raise Interrupted(f"{stop}; --resume goes on with it") from None
    return sweep_words(open_trace(output), run)


def session_of(loaded: "LoadedModel", plan: SweepPlan) -> Session:
    """The session that can run the plan on its device. ConfigError where model or memory do not allow it."""
    from engine.models.memory import free_bytes

    context = _seen_context(loaded.shape, plan)
    fitting = USABLE * free_bytes(loaded.device) / kv_bytes_per_token(loaded.shape, loaded.dtype.itemsize)
    config = _with_pool(plan, int(fitting), str(loaded.device))
    return Session(loaded, replace(config, context_length=context))


def simulated_session_of(device: "SimulatedDevice", plan: SweepPlan) -> "SimulatedSession":
    """The same on simulated GPUs."""
    from ui.simulating import SimulatedSession

    context = _seen_context(device.checkpoint.shape, plan)
    config = _with_pool(plan, _fitting(device, plan), device.label)
    return SimulatedSession(device, replace(config, context_length=context))


def check_output(output: Path, *, resume: bool) -> None:
    """Raise UserError unless a new trace can be made at `output`, or there is one to resume."""
    aside = set_aside(output)
    if not resume:
        check_new_trace(output)
        if aside.exists():
            raise UserError(f"{aside} waits for its --resume: add that, or remove it first")
    elif not whole_trace(output).exists():
        raise UserError(f"{output}: there is no such trace to go on with: leave out --resume")


def resumed_from(output: Path) -> Halfway:
    """What was recorded of a sweep. UserError while a process still writes it."""
    trace = open_trace(whole_trace(output))
    if trace.live:
        raise UserError(f"{trace.path}: still being written: try again when that has ended")
    return halfway(trace)


def _seen_context(shape: "ModelShape", plan: SweepPlan) -> int:
    """Tokens that a request may have: the model's context, or its sliding window, beyond which none is seen.

    ConfigError where the plan needs more.
    """
    context, window = shape.max_position_embeddings, shape.sliding_window
    plan.check(context)
    if window is None or window >= context:
        return context
    plan.check(window, "sliding window")
    return window


def _fitting(device: "SimulatedDevice", plan: SweepPlan) -> int:
    """KV tokens that fit. ConfigError where none does, naming the option where smaller forwards would do."""
    config = plan.config()
    try:
        return device.fitting_tokens(config)
    except ConfigError as error:
        device.fitting_tokens(replace(config, max_prefill_tokens=1))
        option = "--batch" if plan.most_rows > plan.setup_tokens else "--tokens"
        raise ConfigError(f"{error}, or less {option}") from None


def _with_pool(plan: SweepPlan, fitting: int, where: str) -> EngineConfig:
    """The plan's engine options with the pool that it needs. ConfigError where that does not fit."""
    pool = plan.pool_tokens
    if pool <= fitting:
        return replace(plan.config(), max_total_tokens=pool)
    what = f"--tokens: {plan.largest}"
    if plan.most_rows * plan.kv_tokens > max(plan.prefixes):
        what = f"--batch: {plan.most_rows} rows of {plan.kv_tokens} KV tokens"
    elif plan.needs_stock:
        what = f"--prefix {max(plan.prefixes)}"
    raise ConfigError(f"{what}: {pool} KV tokens are needed and {fitting} fit on {where}: give less")
