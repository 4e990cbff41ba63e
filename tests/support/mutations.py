"""Breaks the engine on purpose: one function again, with one piece of its source replaced."""

import inspect
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from types import FunctionType
from typing import Any

import pytest


@dataclass(frozen=True)
class Mutation:
    """`old`, which occurs once in the function `name` of `owner`, becomes `new`."""

    what: str
    owner: Any  # a class or a module
    name: str
    old: str
    new: str

    def apply(self, patch: pytest.MonkeyPatch, *users: Any) -> None:
        """Put the broken function where the whole one was: in its owner and in modules that import it."""
        whole = inspect.getattr_static(self.owner, self.name)
        wrapped = isinstance(whole, property | staticmethod)
        broken: Any = self._broken(_function(whole))
        replacement = type(whole)(broken) if wrapped else broken
        for owner in (self.owner, *users):
            if hasattr(owner, self.name):
                patch.setattr(owner, self.name, replacement)

    def _broken(self, whole: FunctionType) -> Callable[..., Any]:
        lines = textwrap.dedent(inspect.getsource(whole)).splitlines(keepends=True)
        source = "".join(line for line in lines if not line.startswith("@"))
        assert source.count(self.old) == 1, f"{self.what}: {self.old!r} is not once in {self.name}"
        names: dict[str, Any] = {}
        code = compile(source.replace(self.old, self.new), f"<{self.what}>", "exec")
        exec(code, whole.__globals__, names)
        broken: Callable[..., Any] = names[self.name]
        return broken


def _function(whole: Any) -> FunctionType:
    function = whole.fget if isinstance(whole, property) else getattr(whole, "__func__", whole)
    assert isinstance(function, FunctionType)
    return function
