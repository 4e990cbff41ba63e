"""One step of online softmax attention, shared by the Triton kernels.

Scores are kept in base 2, as the hardware's exponential wants them. The running maximum starts at LOWEST, a
large negative number: where all keys of a row are masked, the weights come out as 0 and never as NaN.
"""

# mypy: disable-error-code="untyped-decorator"

import triton
import triton.language as tl

__all__ = ["LOWEST", "finish", "step"]

LOWEST = tl.constexpr(-1e20)
LN_2 = tl.constexpr(0.6931471805599453)
# The interpreter holds bfloat16 as integers, and would multiply those.
INTERPRETED = tl.constexpr(triton.knobs.runtime.interpret)


@triton.jit
def _product(a: tl.tensor, b: tl.tensor, out: tl.tensor) -> tl.tensor:
    """out + a @ b in float32."""
    if INTERPRETED:
        a = a.to(tl.float32)
        b = b.to(tl.float32)
    return tl.dot(a, b, out, input_precision="ieee")


@triton.jit
def step(
    query: tl.tensor,
    key: tl.tensor,
    value: tl.tensor,
    visible: tl.tensor,
    out: tl.tensor,
    top: tl.tensor,
    total: tl.tensor,
    scale: tl.tensor,
    MASKED: tl.constexpr,
) -> tuple[tl.tensor, tl.tensor, tl.tensor]:
    """Take a block of keys and values into the running output, maximum and sum, all float32.

    `query` (m, d), `key` and `value` (n, d), `visible` (m, n), read only if MASKED; `out` (m, d), `top` and
    `total` (m,). After the last block the output still has to be divided by the sum (Milakov and
    Gimelshein, 2018).
    """
    scores = _product(query, tl.trans(key), None) * scale
    if MASKED:
        scores = tl.where(visible, scores, float("-inf"))
    new_top = tl.maximum(top, tl.max(scores, 1))
    weights = tl.exp2(scores - new_top[:, None])
    shrink = tl.exp2(top - new_top)
    out = _product(weights.to(value.dtype), value, out * shrink[:, None])
    return out, new_top, total * shrink + tl.sum(weights, 1)


@triton.jit
def finish(out: tl.tensor, top: tl.tensor, total: tl.tensor) -> tuple[tl.tensor, tl.tensor]:
    """Attention's output (m, d) and natural log-sum-exp (m,): 0 and -inf for a row that saw no key."""
    seen = tl.where(total > 0.0, total, 1.0)
    lse = tl.where(total > 0.0, (top + tl.log2(seen)) * LN_2, float("-inf"))
    return out / seen[:, None], lse
