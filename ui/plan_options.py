"""Options of `chunkscope plan`: the model, the devices, and what replaces their data sheet."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from profiler.paper.elements import DTYPES, KV_DTYPES
from ui.gpu_options import COUNT, PEAK

__all__ = ["plan_options"]

F = TypeVar("F", bound=Callable[..., Any])
PATH = click.Path(path_type=Path)


def plan_options() -> Callable[[F], F]:
    """--model and --gpu, the types of weights and KV, and the numbers that the data sheet lacks."""
    options = (
        click.option(
            "--model", type=PATH, required=True, metavar="CONFIG.json|DIR", help="A decoder's configuration."
        ),
        click.option("--gpu", required=True, metavar="NAME", help="By the beginning of its name: H200."),
        click.option("--tp", type=COUNT, default=1, show_default=True, help="GPUs that share each layer."),
        click.option(
            "--dtype",
            type=click.Choice(DTYPES),
            default=DTYPES[0],
            show_default=True,
            help="Of the layers' weights and their multiplication; auto: as the checkpoint has them.",
        ),
        click.option(
            "--kv-cache-dtype", type=click.Choice(KV_DTYPES), default=KV_DTYPES[0], show_default=True
        ),
        click.option(
            "--page-size",
            type=click.IntRange(1, 4096),
            default=1,
            show_default=True,
            help="Tokens a KV page holds.",
        ),
        click.option("--peak-tflops", type=PEAK, help="Dense TFLOP/s of the dtype, instead of the table's."),
        click.option("--bandwidth", type=PEAK, metavar="TB/S", help="Of the GPU's memory, likewise."),
        click.option("--link-bandwidth", type=PEAK, metavar="GB/S", help="Of a GPU to its peers, one way."),
        click.option("--profile", type=PATH, metavar="FILE.csv", help="Measured GEMM times of a layer."),
        click.option("--profile-gpu", metavar="NAME", help="Whose times to take from it.  [default: --gpu]"),
    )

    def decorate(function: F) -> F:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate
