"""Options of CUDA graphs: which forwards of a run on a GPU are replayed. They carry SGLang's names."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from typing import Any, TypeVar

import click

from engine.executors.graph_sizes import DEFAULT_GRAPHS, NO_GRAPHS, GraphLimits
from ui.errors import UserError

__all__ = ["GraphOptions", "graph_options"]

F = TypeVar("F", bound=Callable[..., Any])

MOST = 16384  # rows or tokens: the buffers of a large model for more of them take gigabytes


@dataclass(frozen=True, slots=True)
class GraphOptions:
    """What was given; None or False is not given."""

    cuda_graph_max_bs: int | None = None
    disable_cuda_graph: bool = False
    piecewise_cuda_graph_max_tokens: int | None = None
    disable_piecewise_cuda_graph: bool = False

    @classmethod
    def take(cls, options: dict[str, Any]) -> "GraphOptions":
        """Move these options out of a command's. Raises UserError for two that exclude each other."""
        taken = cls(**{field.name: options.pop(field.name) for field in fields(cls)})
        for switch, others in (
            ("disable_cuda_graph", ("cuda_graph_max_bs", "piecewise_cuda_graph_max_tokens")),
            ("disable_piecewise_cuda_graph", ("piecewise_cuda_graph_max_tokens",)),
        ):
            for other in others:
                if getattr(taken, switch) and getattr(taken, other) is not None:
                    raise UserError(
                        f"{_option(switch)} leaves nothing for {_option(other)} to limit: give one of them"
                    )
        return taken

    def require_unused(self) -> None:
        """Raise UserError if any was given: nothing is replayed in a simulated run."""
        for field in fields(self):
            value = getattr(self, field.name)
            if value is not field.default:
                shown = _option(field.name) if value is True else f"{_option(field.name)} {value}"
                raise UserError(f"{shown} is not for simulated runs: leave it out")

    def limits(self) -> GraphLimits:
        """What an executor is asked for."""
        if self.disable_cuda_graph:
            return NO_GRAPHS
        return GraphLimits(
            self.cuda_graph_max_bs or DEFAULT_GRAPHS.max_bs,
            0
            if self.disable_piecewise_cuda_graph
            else self.piecewise_cuda_graph_max_tokens or DEFAULT_GRAPHS.max_tokens,
        )

    def without_effect(self, runs: GraphLimits) -> Iterator[str]:
        """A line for each limit that was given and limits nothing, since an executor replays only `runs`."""
        for name, limit, what in (
            ("cuda_graph_max_bs", runs.max_bs, "decode forwards are replayed only on a GPU, not in float32"),
            ("piecewise_cuda_graph_max_tokens", runs.max_tokens, "forwards are replayed only on a GPU"),
        ):
            value = getattr(self, name)
            if value is not None and not limit:
                yield f"{_option(name)} {value} changes nothing here: {what}"


def graph_options() -> Callable[[F], F]:
    """--cuda-graph-max-bs, --piecewise-cuda-graph-max-tokens and what turns each off."""
    options = (
        click.option(
            "--cuda-graph-max-bs",
            type=click.IntRange(1, MOST),
            help=f"Decode rows of the largest CUDA graph.  [default: {DEFAULT_GRAPHS.max_bs}]",
        ),
        click.option("--disable-cuda-graph", is_flag=True, help="Replay no forward, in pieces neither."),
        click.option(
            "--piecewise-cuda-graph-max-tokens",
            type=click.IntRange(1, MOST),
            help="Tokens of the largest forward with prompts that is replayed in pieces between attentions.  "
            f"[default: {DEFAULT_GRAPHS.max_tokens}]",
        ),
        click.option("--disable-piecewise-cuda-graph", is_flag=True, help="Replay decode forwards alone."),
    )

    def decorate(function: F) -> F:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"
