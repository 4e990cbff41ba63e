"""Options of a simulated run: which GPU, how many, and the numbers that its table lacks."""

from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, TypeVar

import click

from ui.errors import UserError

__all__ = ["EXECUTORS", "GpuOptions", "gpu_options"]

F = TypeVar("F", bound=Callable[..., Any])

EXECUTORS = ("device", "simulated")
PATH = click.Path(path_type=Path)


class Amount(click.FloatRange):
    """A number in a range; NaN is none."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The number, or a usage error."""
        number: float = super().convert(value, param, ctx)
        if number != number:
            self.fail(f"{value!r} is no number.", param, ctx)
        return number


PEAK = Amount(1e-6, 10**6)  # what is far from any device makes times that no trace can hold
COUNT = click.IntRange(1, 1024)


@dataclass(frozen=True, slots=True)
class GpuOptions:
    """What was given; None is not given."""

    gpu: str | None = None
    tp: int | None = None
    peak_tflops: float | None = None
    bandwidth: float | None = None
    link_bandwidth: float | None = None
    profile: Path | None = None
    profile_gpu: str | None = None
    host_overhead_us: float | None = None

    @classmethod
    def take(cls, options: dict[str, Any]) -> "GpuOptions":
        """Move these options out of a command's."""
        return cls(**{field.name: options.pop(field.name) for field in fields(cls)})

    def require_unused(self) -> None:
        """Raise UserError for an option that only a simulated run has."""
        for field in fields(self):
            if getattr(self, field.name) is not None:
                option = field.name.replace("_", "-")
                raise UserError(
                    f"--{option} is for simulated runs: add --executor simulated, or leave it out"
                )


def gpu_options() -> Callable[[F], F]:
    """--executor, --gpu and all that describes a simulated device."""
    options = (
        click.option(
            "--executor",
            type=click.Choice(EXECUTORS),
            default=EXECUTORS[0],
            show_default=True,
            help="simulated: no weights and no device; a cost model of --gpu says how long forwards take.",
        ),
        click.option("--gpu", metavar="NAME", help="The simulated GPU, by the beginning of its name: H200."),
        click.option("--tp", type=COUNT, help="GPUs that share each layer (tensor parallel).  [default: 1]"),
        click.option("--peak-tflops", type=PEAK, help="Dense TFLOP/s of the dtype, instead of the table's."),
        click.option("--bandwidth", type=PEAK, metavar="TB/S", help="Of the GPU's memory, likewise."),
        click.option("--link-bandwidth", type=PEAK, metavar="GB/S", help="Of a GPU to its peers, one way."),
        click.option("--profile", type=PATH, metavar="FILE.csv", help="Measured GEMM times of a layer."),
        click.option("--profile-gpu", metavar="NAME", help="Whose times to take from it.  [default: --gpu]"),
        click.option(
            "--host-overhead-us",
            type=Amount(0, 10**6),
            help="Host time to plan and launch a simulated forward.  [default: 0]",
        ),
    )

    def decorate(function: F) -> F:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate
