"""A recorded sweep of forward sizes, and what it found in words."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from engine.errors import ConfigError
from profiler.sentences import saturation_point
from profiler.summary import summarize
from profiler.sweep import sweep_config
from traces.reader import open_trace
from ui.progress import SweepProgress
from ui.recording import Session

if TYPE_CHECKING:
    from engine.models.loader import LoadedModel

__all__ = ["sweep", "sweep_for"]


def sweep(
    console: Console, loaded: "LoadedModel", sizes: Sequence[int], output: Path, *, repeats: int, seed: int
) -> str:
    """Record `repeats` forwards of each size; returns the saturation point in words.

    Raises ConfigError for a size beyond the model's context.
    """
    session = _session(loaded, sizes[-1])
    with SweepProgress(console, output.name, forwards=len(sizes) * repeats) as progress:
        session.record_sweep(sizes, output, repeats=repeats, seed=seed, on_step=progress.step)
    return saturation_point(summarize(open_trace(output))["saturation"])


def sweep_for(
    console: Console,
    loaded: "LoadedModel",
    tokens: tuple[int, int],
    output: Path,
    *,
    budget_s: float,
    seed: int,
) -> str:
    """Record forwards of sizes between both ends for `budget_s` seconds; returns and raises as `sweep`."""
    low, high = tokens
    session = _session(loaded, high)
    with SweepProgress(console, output.name, budget_s=budget_s) as progress:
        session.record_budget(low, high, output, budget_s=budget_s, seed=seed, on_step=progress.step)
    return saturation_point(summarize(open_trace(output))["saturation"])


def _session(loaded: "LoadedModel", largest: int) -> Session:
    context = loaded.shape.max_position_embeddings
    if largest > context:
        raise ConfigError(f"--tokens: {largest} is beyond the model's context of {context}: give less")
    return Session(loaded, sweep_config(largest))
