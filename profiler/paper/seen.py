"""What attention sees of a forward: pairs and tokens, where it may look back on a window only.

A query in a window of w tokens sees itself and w - 1 tokens before it. So a row of n tokens behind p has
tri(p + n) - tri(p) pairs with tri(m) = sum over t = 1..m of min(t, w), of which tri(n) are its own triangle;
it reads min(p, w - 1) tokens of its prefix, and a decode row of s tokens has min(s, w) pairs.
"""

from dataclasses import dataclass

import numpy as np

from engine.arithmetic import ForwardSums
from engine.batch import ForwardBatch

__all__ = ["Seen", "in_batch", "in_sums"]


@dataclass(frozen=True, slots=True)
class Seen:
    """Sums over a forward's rows of what one kind of attention sees; names are those of `ForwardSums`."""

    extend_rows: float
    extend_tokens: int
    decode_tokens: int
    pairs_prefix: float
    pairs_causal: float
    pairs_decode: float
    prefix_tokens: float


def in_sums(sums: ForwardSums, window: int | None) -> Seen:
    """What a window lets see, told by a forward's sums alone.

    Extend rows are taken to be alike, and decode rows, too: so it is exact for one extend row, and a little
    too much for rows of very different lengths.
    """
    rows, length = _alike(sums)
    if window is None:
        return _whole(sums, rows)
    prefix = sums.prefix_tokens / rows if rows else 0.0
    decode = sums.pairs_decode / sums.decode_tokens if sums.decode_tokens else 0.0
    if max(prefix + length, decode) <= window:
        return _whole(sums, rows)
    triangle = _triangle(length, window)
    whole = _triangle(prefix + length, window) - _triangle(prefix, window)
    return Seen(
        extend_rows=rows,
        extend_tokens=sums.extend_tokens,
        decode_tokens=sums.decode_tokens,
        pairs_prefix=rows * (whole - triangle),
        pairs_causal=rows * triangle,
        pairs_decode=min(decode, window) * sums.decode_tokens,
        prefix_tokens=rows * min(prefix, window - 1),
    )


def in_batch(batch: ForwardBatch, sums: ForwardSums, window: int | None) -> Seen:
    """What a window lets see of each row of a planned forward, whose sums these are, exactly."""
    cut = batch.num_extend_seqs
    if window is None or int(batch.seq_lens.max()) <= window:
        return _whole(sums, cut)
    prefix_tokens = pairs_prefix = pairs_causal = 0.0
    for prefix, extend in zip(
        batch.prefix_lens[:cut].tolist(), batch.extend_lens[:cut].tolist(), strict=True
    ):
        triangle = _triangle(extend, window)
        pairs_prefix += _triangle(prefix + extend, window) - _triangle(prefix, window) - triangle
        pairs_causal += triangle
        prefix_tokens += min(prefix, window - 1)
    decode = np.minimum(batch.seq_lens[cut:], window)
    return Seen(
        extend_rows=cut,
        extend_tokens=sums.extend_tokens,
        decode_tokens=sums.decode_tokens,
        pairs_prefix=pairs_prefix,
        pairs_causal=pairs_causal,
        pairs_decode=int(decode.sum(dtype=np.int64)),
        prefix_tokens=prefix_tokens,
    )


def _alike(sums: ForwardSums) -> tuple[float, float]:
    """Extend rows and their length, had all the same: the triangles of r rows of n have r n (n + 1) / 2."""
    if not sums.extend_tokens:
        return 0.0, 0.0
    length = 2 * sums.pairs_causal / sums.extend_tokens - 1
    return sums.extend_tokens / length, length


def _whole(sums: ForwardSums, rows: float) -> Seen:
    return Seen(
        extend_rows=rows,
        extend_tokens=sums.extend_tokens,
        decode_tokens=sums.decode_tokens,
        pairs_prefix=sums.pairs_prefix,
        pairs_causal=sums.pairs_causal,
        pairs_decode=sums.pairs_decode,
        prefix_tokens=sums.prefix_tokens,
    )


def _triangle(tokens: float, window: int) -> float:
    """Sum over t = 1..tokens of min(t, window); whole for whole tokens."""
    inside = min(tokens, window)
    return inside * (inside + 1) / 2 + (tokens - inside) * window
