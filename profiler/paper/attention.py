"""Attention with a key and a value for every token: grouped heads, with or without a sliding window."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from profiler.paper.elements import ACTIVATION_BYTES, ElementBytes
from profiler.paper.layers import Matrix, Split
from profiler.paper.seen import Seen
from profiler.roofs import Roof

__all__ = ["AttentionSeconds", "GroupedAttention"]

AttentionSeconds = tuple[float, float, float]
"""Seconds of the rectangle behind prefixes, of the triangle of new tokens, and of decode rows."""


@dataclass(frozen=True, slots=True)
class GroupedAttention:
    """Query heads that share keys and values; sizes in elements, as `engine.shapes.ModelShape` has them."""

    num_heads: int
    num_kv_heads: int
    head_dim: int
    window: int | None = None  # tokens that a query sees, itself included; None is all
    qkv_bias: bool = False
    o_bias: bool = False
    qk_norm: bool = False
    gated: bool = False  # the output passes a gate as wide as the queries, out of the same projection
    value_is_key: bool = False  # one projection gives both, which then differ by norm and rotation
    sinks: bool = False  # a learned score for each head that no key has

    @property
    def q_size(self) -> int:
        """Elements of a token's queries, and of the output."""
        return self.num_heads * self.head_dim

    @property
    def kv_size(self) -> int:
        """Elements of a token's keys, and of its values."""
        return self.num_kv_heads * self.head_dim

    def split(self, to: Split) -> "GroupedAttention":
        """One device's heads."""
        heads = to.of(self.num_heads, "heads")
        return replace(self, num_heads=heads, num_kv_heads=to.of_kv_heads(self.num_kv_heads))

    def matrices(self, hidden: int) -> Iterator[Matrix]:
        """Projections of a layer."""
        queries = 2 * self.q_size if self.gated else self.q_size
        values = 0 if self.value_is_key else self.kv_size
        yield Matrix("QKV", hidden, queries + self.kv_size + values)
        yield Matrix("O", self.q_size, hidden)

    def other_params(self, hidden: int) -> int:
        """Elements of biases, norms of heads, and sinks."""
        qkv = sum(m.outputs for m in self.matrices(hidden) if m.operator == "QKV") if self.qkv_bias else 0
        norms = 2 * self.head_dim if self.qk_norm else 0
        return qkv + (hidden if self.o_bias else 0) + norms + (self.num_heads if self.sinks else 0)

    def elementwise(self, hidden: int) -> int:
        """Elements that rotation, norms of heads and the gate move for a token, as in `profiler.cost`."""
        norms = 2 * (self.q_size + self.kv_size) if self.qk_norm else 0
        gate = 3 * self.q_size if self.gated else 0
        return 2 * self.q_size + 4 * self.kv_size + norms + gate

    def alive(self) -> int:
        """Elements of a token alive at once while attention runs."""
        return (3 if self.gated else 2) * self.q_size + 2 * self.kv_size

    def token_bytes(self, size: ElementBytes) -> int:
        """Bytes of keys and values that a token keeps in one layer."""
        return 2 * self.kv_size * size.kv

    def state_bytes(self) -> int:
        """Bytes that a sequence keeps in one layer whatever its length."""
        return 0

    def seconds(
        self, seen: Seen, layers: int, size: ElementBytes, roofs: Mapping[str, Roof]
    ) -> AttentionSeconds:
        """As `RooflineCost` has them, of what the window lets see."""
        pair_flops = 4 * self.q_size * layers
        kv_bytes = self.token_bytes(size) * layers
        q_bytes = self.q_size * layers * ACTIVATION_BYTES
        return (
            roofs["ATTENTION_PREFIX"].seconds(pair_flops * seen.pairs_prefix, kv_bytes * seen.prefix_tokens),
            roofs["ATTENTION_CAUSAL"].seconds(
                pair_flops * seen.pairs_causal, (2 * q_bytes + kv_bytes) * seen.extend_tokens
            ),
            roofs["ATTENTION_DECODE"].seconds(
                pair_flops * seen.pairs_decode,
                kv_bytes * seen.pairs_decode + 2 * q_bytes * seen.decode_tokens,
            ),
        )
