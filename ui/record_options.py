"""`--record kernels[:every=N]`: what a run records beyond its forwards."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import click

__all__ = ["KernelSampling", "record_option"]

F = TypeVar("F", bound=Callable[..., Any])

DEFAULT_EVERY = 50
_FORM = re.compile(r"kernels(?::every=([1-9][0-9]{0,8}))?")


@dataclass(frozen=True, slots=True)
class KernelSampling:
    """Kernels of the first and then every `every`-th forward."""

    every: int = DEFAULT_EVERY

    def __str__(self) -> str:
        return f"kernels:every={self.every}"


class RecordType(click.ParamType[KernelSampling]):
    """`kernels`, or `kernels:every=20`."""

    name = "record"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> KernelSampling:
        """The sampling, or a usage error."""
        if isinstance(value, KernelSampling):
            return value
        match = _FORM.fullmatch(value)
        if match is None:
            self.fail(f"{value!r} is not known: give kernels, or kernels:every=20.", param, ctx)
        return KernelSampling(int(match[1] or DEFAULT_EVERY))


def record_option() -> Callable[[F], F]:
    """--record."""
    return click.option(
        "--record",
        type=RecordType(),
        metavar="kernels[:every=N]",
        help=f"Kernels, or CPU operators, of every N-th forward ({DEFAULT_EVERY}), which slows these down.",
    )
