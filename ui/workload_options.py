"""`--workload` and what picks from it, and the lines that say what a workload file turned out to be."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ui.words import plural, seconds

if TYPE_CHECKING:
    from engine.request import Request
    from engine.workload import Workload

__all__ = ["about_workload", "lowered_lines", "workload_lines", "workload_options"]

F = TypeVar("F", bound=Callable[..., Any])

LOWERED_SHOWN = 3
FORMATS = "JSON lines of Chunkscope, Mooncake or LLMServingSim, or a CSV table of Azure or Vidur."


def workload_options() -> Callable[[F], F]:
    """--workload as `workload_path`, --limit, --time-scale."""

    def decorate(function: F) -> F:
        for option in (
            click.option(
                "--time-scale",
                type=float,
                default=1.0,
                show_default=True,
                help="Multiplies arrivals: 0.5 doubles the rate.",
            ),
            click.option(
                "--limit", type=click.IntRange(1), metavar="N", help="Only the N requests that arrive first."
            ),
            click.option(
                "--workload",
                "workload_path",
                type=click.Path(path_type=Path),
                required=True,
                metavar="FILE",
                help=f"Requests, one a line; recognised by content: {FORMATS}",
            ),
        ):
            function = option(function)
        return function

    return decorate


def workload_lines(workload: "Workload", *, tokens_end_outputs: bool = True) -> Iterator[str]:
    """What was recognised, how much of it there is, and what could not be taken as the file has it.

    Without `tokens_end_outputs` every request gives all of its output tokens.
    """
    requests = workload.requests
    prompts = sum(r.prompt_len for r in requests)
    outputs = sum(r.max_new_tokens for r in requests)
    sooner = tokens_end_outputs and any(_may_end_sooner(r) for r in requests)
    most = "at most " if sooner else ""
    yield (
        f"{workload.title}: {plural(len(requests), 'request')} {_when(workload)}, "
        f"{plural(prompts, 'prompt token')}, {most}{plural(outputs, 'output token')}"
    )
    if not workload.timed:
        yield "The file has no arrival times: all requests arrive at the start"
    if workload.empty_prompts:
        lines = workload.empty_prompts
        yield f"Left out: {plural(len(lines), 'request')} without a prompt token, first on line {lines[0]}"
    if workload.empty_outputs:
        lines = workload.empty_outputs
        yield (
            f"{plural(len(lines), 'request')} without an output token, first on line {lines[0]}: "
            "asked for one, which any prefill samples"
        )


def lowered_lines(workload: "Workload", lowered: Sequence["Request"]) -> Iterator[str]:
    """Which requests get fewer output tokens than the file says, because no more fit."""
    for request in lowered[:LOWERED_SHOWN]:
        yield f"{workload.where(request)}: max_new_tokens lowered to {request.max_new_tokens}, which fits"
    if len(lowered) > LOWERED_SHOWN:
        yield f"The same for {plural(len(lowered) - LOWERED_SHOWN, 'request')} more"


def about_workload(workload: "Workload", *, limit: int | None, time_scale: float) -> Mapping[str, Any]:
    """What a trace's meta says of its workload."""
    return {
        "path": str(workload.path),
        "format": workload.title,
        "requests": len(workload.requests),
        "limit": limit,
        "time_scale": time_scale,
    }


def _may_end_sooner(request: "Request") -> bool:
    return bool(request.sampling.stop_token_ids) or not request.sampling.ignore_eos


def _when(workload: "Workload") -> str:
    arrivals_ns = [request.arrival_ns for request in workload.requests]
    first_ns, last_ns = min(arrivals_ns), max(arrivals_ns)
    if first_ns == last_ns:
        return "at once"
    return f"in {seconds((last_ns - first_ns) / 1e9)}"
