"""Linear attention by the gated delta rule: a state of fixed size instead of keys and values.

Yang, Kautz and Hatamizadeh, "Gated Delta Networks", 2024 (arXiv 2412.06464), computed in blocks of 64 tokens
as in Yang et al., "Parallelizing Linear Transformers with the Delta Rule", 2024 (arXiv 2406.06484).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from profiler.paper.attention import AttentionSeconds
from profiler.paper.elements import ACTIVATION_BYTES, ElementBytes
from profiler.paper.layers import Matrix, Split
from profiler.paper.seen import Seen
from profiler.roofs import Roof

__all__ = ["BLOCK_TOKENS", "LinearAttention"]

BLOCK_TOKENS = 64
STATE_BYTES = 4  # an element of the state is float32


@dataclass(frozen=True, slots=True)
class LinearAttention:
    """Heads with a state of key by value each; key heads are shared by value heads."""

    num_key_heads: int
    num_value_heads: int
    key_head_dim: int
    value_head_dim: int
    conv_kernel: int
    window: None = None

    @property
    def key_size(self) -> int:
        """Elements of a token's keys, and of its queries."""
        return self.num_key_heads * self.key_head_dim

    @property
    def value_size(self) -> int:
        """Elements of a token's values, of its gate and of the output."""
        return self.num_value_heads * self.value_head_dim

    @property
    def conv_size(self) -> int:
        """Elements of a token that pass the short convolution: queries, keys and values."""
        return 2 * self.key_size + self.value_size

    @property
    def state_size(self) -> int:
        """Elements of a sequence's state in one layer."""
        return self.value_size * self.key_head_dim

    def split(self, to: Split) -> "LinearAttention":
        """One device's heads."""
        return replace(
            self,
            num_key_heads=to.of(self.num_key_heads, "linear key heads"),
            num_value_heads=to.of(self.num_value_heads, "linear value heads"),
        )

    def matrices(self, hidden: int) -> Iterator[Matrix]:
        """Projections of a layer: queries, keys, values and gate; decay and step of each head; output."""
        yield Matrix("QKV", hidden, self.conv_size + self.value_size)
        yield Matrix("QKV", hidden, 2 * self.num_value_heads, kept=True)
        yield Matrix("O", self.value_size, hidden)

    def other_params(self, hidden: int) -> int:
        """Elements of the convolution, of decay and step of each head, and of the norm of the output."""
        return self.conv_size * self.conv_kernel + 2 * self.num_value_heads + self.value_head_dim

    def elementwise(self, hidden: int) -> int:
        """Elements that the convolution and the gated norm move for a token."""
        return 2 * self.conv_size + 3 * self.value_size

    def alive(self) -> int:
        """Elements of a token alive at once: what the convolution reads and writes, gate and output."""
        return 2 * self.conv_size + 2 * self.value_size

    def token_bytes(self, size: ElementBytes) -> int:
        """None: nothing grows with the sequence."""
        return 0

    def state_bytes(self) -> int:
        """Bytes that a sequence keeps in one layer: the state, and tokens that the convolution sees again."""
        return self.state_size * STATE_BYTES + (self.conv_kernel - 1) * self.conv_size * ACTIVATION_BYTES

    def seconds(
        self, seen: Seen, layers: int, size: ElementBytes, roofs: Mapping[str, Roof]
    ) -> AttentionSeconds:
        """No rectangle: what came before is in the state, which each row reads and writes once."""
        key, value = self.key_head_dim, self.value_head_dim
        heads = self.num_value_heads * layers
        step_flops = 6 * heads * key * value  # of a token: what the state holds, its update, what is read
        block_flops = heads * BLOCK_TOKENS * (6 * key + 4 * value)  # of a token: within its block
        token_bytes = layers * (2 * self.key_size + 2 * self.value_size) * ACTIVATION_BYTES
        row_bytes = 2 * layers * self.state_size * STATE_BYTES
        return (
            0.0,
            roofs["ATTENTION_CAUSAL"].seconds(
                (step_flops + block_flops) * seen.extend_tokens,
                token_bytes * seen.extend_tokens + row_bytes * seen.extend_rows,
            ),
            roofs["ATTENTION_DECODE"].seconds(
                step_flops * seen.decode_tokens, (token_bytes + row_bytes) * seen.decode_tokens
            ),
        )
