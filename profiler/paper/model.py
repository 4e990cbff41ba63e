"""`PaperModel`: a decoder as kinds of layers and how many there are of each."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from profiler.paper.attention import GroupedAttention
from profiler.paper.elements import ElementBytes
from profiler.paper.feed_forward import DenseFeedForward, Experts
from profiler.paper.latent import LatentAttention
from profiler.paper.layers import Matrix, Split
from profiler.paper.recurrent import LinearAttention

__all__ = ["Attention", "FeedForward", "Layer", "PaperModel", "kinds_of"]

Attention = GroupedAttention | LatentAttention | LinearAttention
FeedForward = DenseFeedForward | Experts


@dataclass(frozen=True, slots=True)
class Layer:
    """One kind of layer."""

    attention: Attention
    feed_forward: FeedForward
    num_norms: int = 2  # of the hidden size
    norm_bias: bool = False

    def split(self, to: Split) -> "Layer":
        """One device's part."""
        parts = self.attention.split(to), self.feed_forward.split(to)
        return replace(self, attention=parts[0], feed_forward=parts[1])

    def matrices(self, hidden: int) -> Iterator[Matrix]:
        """All that every token passes."""
        yield from self.attention.matrices(hidden)
        yield from self.feed_forward.matrices(hidden)

    def kept_params(self, hidden: int) -> int:
        """Elements that are 16 bits wide whatever the matrices are: norms, biases, routers."""
        norms = self.num_norms * hidden * (2 if self.norm_bias else 1)
        kept = sum(matrix.params for matrix in self.matrices(hidden) if matrix.kept)
        return norms + kept + self.attention.other_params(hidden) + self.feed_forward.other_params(hidden)

    def matrix_params(self, hidden: int) -> int:
        """Elements of the matrices that every token passes, without those kept wide."""
        return sum(matrix.params for matrix in self.matrices(hidden) if not matrix.kept)

    def elementwise(self, hidden: int) -> int:
        """Elements that a token moves between matrix products and attention; a norm adds the residual."""
        moved = 4 * hidden * self.num_norms
        return moved + self.attention.elementwise(hidden) + self.feed_forward.elementwise(hidden)


@dataclass(frozen=True, slots=True)
class PaperModel:
    """A decoder, or one device's part of it; sizes in elements."""

    name: str
    model_type: str  # as transformers calls its family
    hidden_size: int
    vocab_size: int
    max_position_embeddings: int
    layers: tuple[tuple[Layer, int], ...]  # kinds, and how many there are of each
    tied: bool = False  # the head is the embedding
    head_bias: bool = False
    norm_bias: bool = False
    quant_method: str | None = None  # how the checkpoint is quantised, by its own word
    not_counted: tuple[str, ...] = ()  # parts of the checkpoint that a plain forward does not run

    @property
    def num_layers(self) -> int:
        """Layers of all kinds."""
        return sum(count for _, count in self.layers)

    @property
    def head_params(self) -> int:
        """Elements of the output head's matrix, which is also the size of the embedding."""
        return self.vocab_size * self.hidden_size

    @property
    def matrix_params(self) -> int:
        """Elements of all layers' matrices that every token passes."""
        return sum(count * layer.matrix_params(self.hidden_size) for layer, count in self.layers)

    @property
    def expert_params(self) -> int:
        """Elements of all routed experts."""
        return sum(
            count * experts.num_experts * experts.expert_params(self.hidden_size)
            for _, experts, count in self.mixtures()
        )

    @property
    def kept_params(self) -> int:
        """Elements that are 16 bits wide whatever the matrices are; a tied head counts once."""
        hidden = self.hidden_size
        layers = sum(count * layer.kept_params(hidden) for layer, count in self.layers)
        head = self.head_params * (1 if self.tied else 2) + (self.vocab_size if self.head_bias else 0)
        return layers + head + hidden * (2 if self.norm_bias else 1)

    @property
    def num_params(self) -> int:
        """Elements of the whole model."""
        return self.matrix_params + self.expert_params + self.kept_params

    @property
    def active_params(self) -> int:
        """Elements that a single token's forward reads, embedding and head whole."""
        hidden, idle = self.hidden_size, 0
        for _, experts, count in self.mixtures():
            one = experts.expert_params(hidden) + experts.expert_biases(hidden)
            idle += count * (experts.num_experts - experts.per_token) * one
        return self.num_params - idle

    def mixtures(self) -> Iterator[tuple[Layer, Experts, int]]:
        """Kinds of layers that are mixtures of experts, and how many there are of each."""
        for layer, count in self.layers:
            if isinstance(layer.feed_forward, Experts):
                yield layer, layer.feed_forward, count

    def token_params(self) -> float:
        """Elements of matrices that a token passes in an average layer, its experts' included."""
        experts = sum(
            count * experts.per_token * experts.expert_params(self.hidden_size)
            for _, experts, count in self.mixtures()
        )
        return (self.matrix_params + experts) / self.num_layers

    def weight_bytes(self, size: ElementBytes) -> int:
        """Bytes of all weights."""
        kept = 2 * self.kept_params
        return round(size.matrices * self.matrix_params + size.experts * self.expert_params + kept)

    def split(self, tp: int) -> "PaperModel":
        """One of `tp` devices' part: heads, columns and vocabulary divided, norms and routers whole.

        The vocabulary is padded to a multiple. Raises ConfigError for what cannot be divided.
        """
        to = Split(tp, self.name)
        layers = tuple((layer.split(to), count) for layer, count in self.layers)
        return replace(self, layers=layers, vocab_size=-(-self.vocab_size // tp))


def kinds_of(layers: Iterable[Layer]) -> tuple[tuple[Layer, int], ...]:
    """Equal layers counted together, in the order in which the kinds first appear."""
    return tuple(Counter(layers).items())
