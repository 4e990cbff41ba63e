"""FLOPs and least bytes of a forward, in closed form from sums over its rows.

A *pair* is one query position attending to one key position. The pairs of an extend row of n tokens after
a prefix of p split into a rectangle, n * p, and a causal triangle, n (n + 1) / 2; a decode row has as many
pairs as its sequence has tokens.
"""

from dataclasses import dataclass

import numpy as np

from engine.batch import MIDDLE_ROLES, ForwardBatch
from engine.shapes import ModelShape

__all__ = [
    "ForwardCost",
    "ForwardSums",
    "activation_estimate_bytes",
    "forward_cost",
    "forward_sums",
    "kv_bytes_per_token",
]


@dataclass(frozen=True, slots=True)
class ForwardSums:
    """What a forward's cost depends on, beside the model: sums over its rows."""

    extend_tokens: int  # new tokens of extend rows
    decode_tokens: int  # decode rows, one token each
    rows_with_logits: int  # all rows but middle chunks
    pairs_prefix: int  # over extend rows, extend * prefix
    pairs_causal: int  # over extend rows, extend * (extend + 1) / 2
    pairs_decode: int  # over decode rows, sequence length
    prefix_tokens: int  # over extend rows, prefix
    kv_tokens: int  # over all rows, sequence length

    @property
    def tokens(self) -> int:
        """New tokens of all rows."""
        return self.extend_tokens + self.decode_tokens


@dataclass(frozen=True, slots=True)
class ForwardCost:
    """FLOPs, a multiply and an add counting two, and least bytes moved to and from device memory."""

    flops_linear: int
    flops_attention_extend: int
    flops_attention_decode: int
    flops_head: int
    bytes_weights: int
    bytes_kv_read: int
    bytes_kv_write: int
    bytes_activation: int


def forward_sums(batch: ForwardBatch) -> ForwardSums:
    """Sums over the rows of `batch`, exact for any length.

    Python integers row by row: for the few extend rows of a forward that is faster than arrays.
    """
    cut = batch.num_extend_seqs
    decode_tokens = batch.num_rows - cut
    pairs_decode = int(batch.prefix_lens[cut:].sum(dtype=np.int64)) + decode_tokens
    if not cut:
        return ForwardSums(0, decode_tokens, decode_tokens, 0, 0, pairs_decode, 0, pairs_decode)
    extend_tokens = prefix_tokens = pairs_prefix = pairs_causal = middle = 0
    rows = zip(
        batch.prefix_lens[:cut].tolist(),
        batch.extend_lens[:cut].tolist(),
        batch.roles[:cut].tolist(),
        strict=True,
    )
    for prefix, extend, role in rows:
        extend_tokens += extend
        prefix_tokens += prefix
        pairs_prefix += prefix * extend
        pairs_causal += extend * (extend + 1) // 2
        middle += role in MIDDLE_ROLES
    return ForwardSums(
        extend_tokens=extend_tokens,
        decode_tokens=decode_tokens,
        rows_with_logits=batch.num_rows - middle,
        pairs_prefix=pairs_prefix,
        pairs_causal=pairs_causal,
        pairs_decode=pairs_decode,
        prefix_tokens=prefix_tokens,
        kv_tokens=prefix_tokens + extend_tokens + pairs_decode,
    )


def forward_cost(
    shape: ModelShape,
    sums: ForwardSums,
    weight_bytes_per_param: int,
    kv_bytes_per_element: int,
) -> ForwardCost:
    """What one forward must compute and must move.

    FLOPs (Kaplan et al., "Scaling Laws for Neural Language Models", table 1; the same terms as SGLang's own
    estimator, which leaves the head out). Norms, rotary embedding, softmax and SiLU are not counted.

    - linear: 2 * tokens * elements of the layers' matrices (q, k, v, o, gate, up, down);
    - attention: 4 * heads * head_dim * layers * pairs, 2 for the scores and 2 for the weighted sum, with
      only the causal half of the triangle;
    - head: 2 * hidden * vocabulary * rows with logits.

    Least bytes, which no schedule of whole GEMMs goes below:

    - weights: every layer once, the final norm and the head once if any row has logits, and one embedding
      row a token; activations have the weights' element size;
    - KV read: the prefix of extend rows and, of decode rows, all but the new token, a row by itself even
      where rows share pages; KV of the forward's own tokens is taken to be still on chip;
    - KV write: the forward's own tokens;
    - activations: see `_activation_bytes`.
    """
    attention = 4 * shape.q_size * shape.num_layers
    kv_token_bytes = kv_bytes_per_token(shape, kv_bytes_per_element)
    params = shape.num_layers * shape.layer_params + sums.tokens * shape.hidden_size
    if sums.rows_with_logits:
        params += shape.head_params + shape.hidden_size
    return ForwardCost(
        flops_linear=2 * sums.tokens * shape.num_layers * shape.layer_gemm_params,
        flops_attention_extend=attention * (sums.pairs_prefix + sums.pairs_causal),
        flops_attention_decode=attention * sums.pairs_decode,
        flops_head=2 * shape.head_params * sums.rows_with_logits,
        bytes_weights=params * weight_bytes_per_param,
        bytes_kv_read=(sums.prefix_tokens + sums.pairs_decode - sums.decode_tokens) * kv_token_bytes,
        bytes_kv_write=sums.tokens * kv_token_bytes,
        bytes_activation=_activation_bytes(shape, sums, weight_bytes_per_param),
    )


def kv_bytes_per_token(shape: ModelShape, element_bytes: int) -> int:
    """Bytes of keys and values that one token holds over all layers."""
    return 2 * shape.num_layers * shape.kv_size * element_bytes


def activation_estimate_bytes(
    shape: ModelShape, tokens: int, rows_with_logits: int, element_bytes: int
) -> int:
    """Largest sum of activations alive at once in a forward that frees each when it is used up.

    The largest of three moments: attention (residual, normed input, q, k, v, output), the MLP (residual,
    normed input, gate, up, their product), and the head (residual, rows picked, logits in float32).
    Attention scores are never held whole and count nothing.
    """
    hidden = shape.hidden_size
    attention = tokens * (2 * hidden + 2 * shape.q_size + 2 * shape.kv_size) * element_bytes
    mlp = tokens * (2 * hidden + 3 * shape.intermediate_size) * element_bytes
    head = (tokens + rows_with_logits) * hidden * element_bytes + rows_with_logits * shape.vocab_size * 4
    return max(attention, mlp, head)


def _activation_bytes(shape: ModelShape, sums: ForwardSums, element_bytes: int) -> int:
    """Bytes that activations move if each GEMM reads its input and writes its output once.

    Counted per token and layer, in elements: qkv reads hidden and writes q (k and v are KV writes);
    attention reads q and writes as much; o reads that, reads and writes the residual; gate-up reads hidden
    and writes the product; down reads it, reads and writes the residual. Together 6 hidden + 4 q +
    2 intermediate. Besides, the embedding writes hidden a token, and the head reads hidden and writes the
    vocabulary a row with logits. Norms, rotary embedding, SiLU and the attention scores stay on chip.
    """
    per_layer = 6 * shape.hidden_size + 4 * shape.q_size + 2 * shape.intermediate_size
    body = sums.tokens * (shape.num_layers * per_layer + shape.hidden_size)
    head = sums.rows_with_logits * (shape.hidden_size + shape.vocab_size)
    return (body + head) * element_bytes
