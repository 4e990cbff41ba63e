"""Multi-head latent attention: one compressed vector a token instead of keys and values.

DeepSeek-AI, "DeepSeek-V2", 2024 (arXiv 2405.04434). The matrix that expands a latent to keys and values of
all heads can be multiplied into queries and outputs instead (absorbed): then attention reads latents alone,
at more FLOPs a pair. Decode rows are absorbed; new tokens of prompts are expanded; a prefix is read in
whichever of the two ways takes less time, and expanded anew by every chunk.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from profiler.paper.attention import AttentionSeconds
from profiler.paper.elements import ACTIVATION_BYTES, ElementBytes
from profiler.paper.layers import Matrix, Split
from profiler.paper.seen import Seen
from profiler.roofs import Roof

__all__ = ["LatentAttention"]


@dataclass(frozen=True, slots=True)
class LatentAttention:
    """Sizes in elements, under the configuration's names; each head has its own part without rotation."""

    num_heads: int
    q_lora_rank: int | None  # None: queries come of one matrix
    kv_lora_rank: int
    qk_nope_head_dim: int
    qk_rope_head_dim: int
    v_head_dim: int
    bias: bool = False
    window: None = None

    @property
    def qk_head_dim(self) -> int:
        """Elements of one head's query, rotated part included."""
        return self.qk_nope_head_dim + self.qk_rope_head_dim

    @property
    def latent_size(self) -> int:
        """Elements that a token keeps: the latent, and the rotated key that all heads share."""
        return self.kv_lora_rank + self.qk_rope_head_dim

    @property
    def expanded_size(self) -> int:
        """Elements of a token's keys and values without rotation, of all heads."""
        return self.num_heads * (self.qk_nope_head_dim + self.v_head_dim)

    def split(self, to: Split) -> "LatentAttention":
        """One device's heads; every device has the latents."""
        return replace(self, num_heads=to.of(self.num_heads, "heads"))

    def matrices(self, hidden: int) -> Iterator[Matrix]:
        """Projections of a layer; the last of QKV expands latents, or is absorbed at the same cost."""
        queries = self.num_heads * self.qk_head_dim
        if self.q_lora_rank is None:
            yield Matrix("QKV", hidden, queries)
        else:
            yield Matrix("QKV", hidden, self.q_lora_rank)
            yield Matrix("QKV", self.q_lora_rank, queries)
        yield Matrix("QKV", hidden, self.latent_size)
        yield Matrix("QKV", self.kv_lora_rank, self.expanded_size)
        yield Matrix("O", self.num_heads * self.v_head_dim, hidden)

    def other_params(self, hidden: int) -> int:
        """Elements of norms of the compressed vectors, and of biases."""
        biases = (self.q_lora_rank or 0) + self.latent_size + hidden if self.bias else 0
        return (self.q_lora_rank or 0) + self.kv_lora_rank + biases

    def elementwise(self, hidden: int) -> int:
        """Elements moved for a token by the norms, the rotation of q and k, and storing the latent."""
        norms = 2 * ((self.q_lora_rank or 0) + self.kv_lora_rank)
        return norms + 2 * self.num_heads * self.qk_rope_head_dim + 2 * self.latent_size

    def alive(self) -> int:
        """Elements of a token alive at once: compressed vectors, queries, keys, values and the output."""
        per_head = 2 * self.qk_head_dim + 2 * self.v_head_dim
        return (self.q_lora_rank or 0) + self.latent_size + self.num_heads * per_head

    def token_bytes(self, size: ElementBytes) -> int:
        """Bytes of the latent that a token keeps in one layer."""
        return self.latent_size * size.kv

    def state_bytes(self) -> int:
        """Bytes that a sequence keeps in one layer whatever its length."""
        return 0

    def seconds(
        self, seen: Seen, layers: int, size: ElementBytes, roofs: Mapping[str, Roof]
    ) -> AttentionSeconds:
        """Of the rectangle, with what its latents cost to expand or to absorb; the triangle; decode rows.

        Decode rows read latents that all heads share, so that their tiles are as full as a prefix's: they
        reach what ATTENTION_PREFIX does.
        """
        heads = self.num_heads * layers
        latent_bytes = self.token_bytes(size) * layers
        kv_bytes = heads * (self.qk_head_dim + self.v_head_dim) * ACTIVATION_BYTES  # expanded, of a token
        expanded_flops = 2 * heads * (self.qk_head_dim + self.v_head_dim)  # of a pair
        absorbed_flops = 2 * heads * (self.latent_size + self.kv_lora_rank)
        absorbed_bytes = heads * (self.latent_size + self.kv_lora_rank) * ACTIVATION_BYTES  # q and output
        tiles = roofs["ATTENTION_PREFIX"]
        expanded = self._project(seen.prefix_tokens, layers, size, roofs["GEMM"]) + tiles.seconds(
            expanded_flops * seen.pairs_prefix, kv_bytes * seen.prefix_tokens
        )
        absorbed = self._project(seen.extend_tokens, layers, size, roofs["GEMM"]) + tiles.seconds(
            absorbed_flops * seen.pairs_prefix, latent_bytes * seen.prefix_tokens
        )
        return (
            min(expanded, absorbed) if seen.prefix_tokens else 0.0,
            roofs["ATTENTION_CAUSAL"].seconds(
                expanded_flops * seen.pairs_causal, 2 * kv_bytes * seen.extend_tokens
            ),
            tiles.seconds(
                absorbed_flops * seen.pairs_decode,
                latent_bytes * seen.pairs_decode + absorbed_bytes * seen.decode_tokens,
            ),
        )

    def _project(self, tokens: float, layers: int, size: ElementBytes, roof: Roof) -> float:
        """Seconds of one more pass of so many tokens through the matrix that expands latents."""
        params = layers * self.kv_lora_rank * self.expanded_size
        moved = layers * (self.kv_lora_rank + self.expanded_size) * ACTIVATION_BYTES
        return roof.seconds(2 * params * tokens, params * size.matrices + moved * tokens)
