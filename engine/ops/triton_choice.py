"""Triton kernels that choose a token: the best place of each piece of a row, then the best piece.

A piece reads its logits once, in their own type. Scores of a piece are taken from its own largest logit, as
in an online softmax, and shifted to the row's when pieces meet: a tiny temperature then sends all but the
best to -inf instead of overflowing.
"""

# mypy: disable-error-code="untyped-decorator"

import triton
import triton.language as tl

__all__ = ["best_of_pieces_kernel", "best_of_row_kernel"]


@triton.jit
def best_of_pieces_kernel(
    tops_ptr: tl.tensor,
    scores_ptr: tl.tensor,
    places_ptr: tl.tensor,
    logits_ptr: tl.tensor,
    rows_ptr: tl.tensor,
    temperatures_ptr: tl.tensor,
    noise_ptr: tl.tensor,
    vocab_size: int,
    logits_stride: int,
    noise_stride: int,
    NOISY: tl.constexpr,
    BLOCK: tl.constexpr,
) -> None:
    """Of BLOCK logits of row i: the largest, the best score and its place, into (rows, pieces) each.

    With NOISY, row i takes the logits of row `rows[i]` and scores (logit - largest) / temperature - noise;
    else the logit is the score. NaN counts as the largest number, and of equals the first is taken, so that
    a place is always one of the row and never of the padding behind it.
    """
    i, piece = tl.program_id(0), tl.program_id(1)
    row = tl.load(rows_ptr + i) if NOISY else i
    columns = piece * BLOCK + tl.arange(0, BLOCK)
    inside = columns < vocab_size
    x = tl.load(logits_ptr + row.to(tl.int64) * logits_stride + columns, mask=inside, other=float("-inf"))
    x = x.to(tl.float32)
    x = tl.where(x == x, x, float("inf"))
    out = i * tl.num_programs(1) + piece
    if NOISY:
        top = tl.max(x)
        noise = tl.load(noise_ptr + i.to(tl.int64) * noise_stride + columns, mask=inside, other=0.0)
        # Not inf - inf where the largest is infinite.
        below = tl.where(x == top, 0.0, (x - top) / tl.load(temperatures_ptr + i))
        x = tl.where(inside, below - noise, float("-inf"))
        tl.store(tops_ptr + out, top)
    score, place = tl.max(x, axis=0, return_indices=True)
    tl.store(scores_ptr + out, score)
    tl.store(places_ptr + out, piece * BLOCK + place)


@triton.jit
def best_of_row_kernel(
    out_ptr: tl.tensor,
    tops_ptr: tl.tensor,
    scores_ptr: tl.tensor,
    places_ptr: tl.tensor,
    temperatures_ptr: tl.tensor,
    num_pieces: int,
    NOISY: tl.constexpr,
    BLOCK: tl.constexpr,
) -> None:
    """The place of the best of row i's at most BLOCK pieces, into int64 `out`."""
    i = tl.program_id(0)
    pieces = tl.arange(0, BLOCK)
    inside = pieces < num_pieces
    found = i * num_pieces + pieces
    scores = tl.load(scores_ptr + found, mask=inside, other=float("-inf"))
    if NOISY:
        tops = tl.load(tops_ptr + found, mask=inside, other=float("-inf"))
        top = tl.max(tops)
        scores += tl.where(tops == top, 0.0, (tops - top) / tl.load(temperatures_ptr + i))
    best = tl.argmax(scores, axis=0)
    tl.store(out_ptr + i, tl.load(places_ptr + i * num_pieces + best).to(tl.int64))
