"""What kinds of attention and of feed-forward share: matrices, and their split among devices."""

from dataclasses import dataclass
from typing import NamedTuple

from engine.errors import ConfigError

__all__ = ["Matrix", "Split"]


class Matrix(NamedTuple):
    """A matrix of one layer; its operator is a name of `profiler.paper.cost`."""

    operator: str
    inputs: int
    outputs: int
    kept: bool = False  # 16 bits wide even where the layers' other matrices are narrower

    @property
    def params(self) -> int:
        """Its elements."""
        return self.inputs * self.outputs


@dataclass(frozen=True, slots=True)
class Split:
    """A number of devices that share each layer of the model called `name`."""

    tp: int
    name: str

    def of(self, size: int, what: str) -> int:
        """One device's part of `size`. Raises ConfigError if it is no whole number."""
        if size % self.tp:
            self._refuse(size, what)
        return size // self.tp

    def of_kv_heads(self, heads: int) -> int:
        """One device's KV heads: more devices than heads repeat them."""
        if heads % self.tp and self.tp % heads:
            self._refuse(heads, "KV heads")
        return max(1, heads // self.tp)

    def _refuse(self, size: int, what: str) -> None:
        raise ConfigError(
            f"--tp {self.tp}: {size} {what} of {self.name} cannot be divided by it: give another number"
        )
