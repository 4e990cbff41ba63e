"""A Triton kernel that merges attention over two disjoint sets of keys."""

# mypy: disable-error-code="untyped-decorator"

import torch
import triton
import triton.language as tl

from engine.attention.triton_softmax import LOWEST

__all__ = ["merge_states", "merge_states_kernel"]

STATES_PER_PROGRAM = 16


@triton.jit(do_not_specialize=["num_states"])
def merge_states_kernel(
    out_a: tl.tensor,
    lse_a: tl.tensor,
    out_b: tl.tensor,
    lse_b: tl.tensor,
    out: tl.tensor,
    lse: tl.tensor,
    num_states: tl.tensor,
    HEAD_DIM: tl.constexpr,
    BLOCK_D: tl.constexpr,
    BLOCK_S: tl.constexpr,
) -> None:
    """One program: BLOCK_S states, a state being one head of one token."""
    state = tl.program_id(0).to(tl.int64) * BLOCK_S + tl.arange(0, BLOCK_S)
    dim = tl.arange(0, BLOCK_D)[None, :]
    exists = state < num_states
    a = tl.load(lse_a + state, mask=exists, other=float("-inf"))
    b = tl.load(lse_b + state, mask=exists, other=float("-inf"))
    top = tl.maximum(tl.maximum(a, b), LOWEST)
    weight_a = tl.exp(a - top)
    weight_b = tl.exp(b - top)
    total = weight_a + weight_b
    seen = tl.where(total > 0.0, total, 1.0)

    place = state[:, None] * HEAD_DIM + dim
    inside = exists[:, None] & (dim < HEAD_DIM)
    part_a = tl.load(out_a + place, mask=inside, other=0.0).to(tl.float32)
    part_b = tl.load(out_b + place, mask=inside, other=0.0).to(tl.float32)
    result = (part_a * weight_a[:, None] + part_b * weight_b[:, None]) / seen[:, None]
    tl.store(out + place, result.to(out.dtype.element_ty), mask=inside)
    tl.store(lse + state, tl.where(total > 0.0, top + tl.log(seen), float("-inf")), mask=exists)


def merge_states(
    out_a: torch.Tensor,
    lse_a: torch.Tensor,
    out_b: torch.Tensor,
    lse_b: torch.Tensor,
    out: torch.Tensor,
    lse: torch.Tensor,
) -> None:
    """Write attention over both key sets to `out` and `lse`, from the outputs and log-sum-exps over each.

    o = (w_a o_a + w_b o_b) / (w_a + w_b) with w = exp(lse - max lse), and lse = max lse + log(w_a + w_b). A
    set of no keys has lse -inf and any finite output; two such merge to 0 and -inf. Outputs are (tokens,
    heads, head_dim), log-sum-exps (tokens, heads) float32, all contiguous.
    """
    head_dim = out.shape[-1]
    num_states = lse.numel()
    merge_states_kernel[(triton.cdiv(num_states, STATES_PER_PROGRAM),)](
        out_a,
        lse_a,
        out_b,
        lse_b,
        out,
        lse,
        num_states,
        HEAD_DIM=head_dim,
        BLOCK_D=triton.next_power_of_2(head_dim),
        BLOCK_S=STATES_PER_PROGRAM,
        num_warps=4,
    )
