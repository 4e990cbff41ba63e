"""Feed-forward parts of a layer: dense, or a mixture of experts of which each token takes some."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

from profiler.paper.layers import Matrix, Split

__all__ = ["DenseFeedForward", "Experts"]


@dataclass(frozen=True, slots=True)
class DenseFeedForward:
    """Gate, up and down of `width` columns that every token passes."""

    width: int
    bias: bool = False

    def split(self, to: Split) -> "DenseFeedForward":
        """One device's columns."""
        return replace(self, width=to.of(self.width, "feed-forward columns"))

    def matrices(self, hidden: int) -> Iterator[Matrix]:
        """Of a layer."""
        yield Matrix("GATE_UP", hidden, 2 * self.width)
        yield Matrix("DOWN", self.width, hidden)

    def other_params(self, hidden: int) -> int:
        """Elements of biases."""
        return 2 * self.width + hidden if self.bias else 0

    def elementwise(self, hidden: int) -> int:
        """Elements that the activation moves for a token: gate, up and their product."""
        return 3 * self.width

    def alive(self, hidden: int) -> int:
        """Elements of a token alive at once: gate, up and their product."""
        return 3 * self.width


@dataclass(frozen=True, slots=True)
class Experts:
    """A mixture: a router picks `per_token` of `num_experts`; a shared part is taken by every token."""

    num_experts: int
    per_token: int
    width: int  # of one expert
    shared_width: int = 0  # of shared experts, or of a dense part beside the mixture
    shared_gate: bool = False  # a matrix of one column weighs the shared part
    bias: bool = False  # of experts and router
    extra_params: int = 0  # of the router beside its matrix

    def split(self, to: Split) -> "Experts":
        """One device's columns of every expert; the router is whole on each."""
        return replace(
            self,
            width=to.of(self.width, "columns of an expert"),
            shared_width=to.of(self.shared_width, "shared feed-forward columns"),
        )

    def matrices(self, hidden: int) -> Iterator[Matrix]:
        """What every token passes: router and shared part."""
        gate = 1 if self.shared_gate else 0
        yield Matrix("ROUTER", hidden, self.num_experts + gate, kept=True)
        if self.shared_width:
            yield from DenseFeedForward(self.shared_width).matrices(hidden)

    def other_params(self, hidden: int) -> int:
        """Elements of biases, and of the router beside its matrix."""
        router = self.num_experts if self.bias else 0
        return self.num_experts * self.expert_biases(hidden) + router + self.extra_params

    def expert_matrices(self, hidden: int) -> Iterator[Matrix]:
        """Of one expert."""
        yield Matrix("EXPERTS_UP", hidden, 2 * self.width)
        yield Matrix("EXPERTS_DOWN", self.width, hidden)

    def expert_params(self, hidden: int) -> int:
        """Elements of one expert's matrices."""
        return sum(matrix.params for matrix in self.expert_matrices(hidden))

    def expert_biases(self, hidden: int) -> int:
        """Elements of one expert's biases."""
        return 2 * self.width + hidden if self.bias else 0

    def coverage(self, tokens: float) -> float:
        """Experts of a layer that some of so many tokens take, on average, if all are as likely.

        E (1 - (1 - k / E) ^ T): each token leaves an expert out with probability 1 - k / E.
        """
        if self.per_token == self.num_experts:
            return float(self.num_experts) if tokens else 0.0
        return -self.num_experts * math.expm1(tokens * math.log1p(-self.per_token / self.num_experts))

    def elementwise(self, hidden: int) -> int:
        """Elements moved for a token: activations, scores of the router, and summing its experts' outputs."""
        columns = self.per_token * self.width + self.shared_width
        return 3 * columns + 2 * self.num_experts + (self.per_token + 1) * hidden

    def alive(self, hidden: int) -> int:
        """Elements of a token alive at once: each of its experts' gate, up, product and output."""
        return self.per_token * (3 * self.width + hidden) + 3 * self.shared_width
