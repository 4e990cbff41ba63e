"""The attention kernels on ragged batches, against float64."""

import pytest
import torch

from benchmarks.gpu.batches import Paged, make_batch
from engine.kv_tensors import KVTensors
from engine.shapes import ModelShape
from tests.gpu.references import TOLERANCE, attention_of, poisoned_memory, relative_error
from tests.support.ragged import attention_shape

pytest.importorskip("triton", reason="Triton is not installed")

pytestmark = pytest.mark.filterwarnings(
    "ignore::RuntimeWarning"
)  # the interpreter's numpy, of discarded lanes

HEADS = [(32, 8), (8, 8), (14, 2), (16, 1)]
HEAD_DIMS = [64, 80, 96, 128, 256]
BF16, FP16 = torch.bfloat16, torch.float16
ROWS = {
    "no prefix": ([(0, 1), (0, 7), (0, 129), (0, 1000)], 0),
    "prefixes": ([(1, 1), (63, 65), (512, 300), (2047, 17), (33, 1)], 0),
    "decode": ([(0, 1), (9, 1), (500, 1), (4095, 1), (64, 1)], 5),
    "mixed": ([(0, 40), (700, 129), (31, 1), (1000, 1), (0, 1)], 3),
}
KINDS = [  # each is compiled anew, which takes seconds
    *((HEADS[0], dim, BF16, 16) for dim in HEAD_DIMS),
    *((HEADS[0], dim, FP16, 16) for dim in (64, 128, 256)),
    *((heads, dim, BF16, 16) for heads in HEADS[1:] for dim in (64, 128)),
    *((HEADS[0], 128, BF16, page_size) for page_size in (1, 7, 64, 128)),
]
FULL = [(*kind, rows) for kind in KINDS for rows in ROWS]
ROWS["small"] = ([(0, 3), (17, 5), (8, 1), (20, 1)], 2)
QUICK = [((4, 2), 16, BF16, 4, "small")]


def _paged(shape: ModelShape, rows: str, page_size: int, dtype: torch.dtype, device: torch.device) -> Paged:
    row_list, decodes = ROWS[rows]
    return make_batch(shape, row_list, decodes, layers=2, page_size=page_size, dtype=dtype, device=device)


def _backend(shape: ModelShape, kv: KVTensors):  # type: ignore[no-untyped-def]  # loads Triton
    from engine.attention.triton_paged import TritonPagedAttention

    return TritonPagedAttention(shape, kv)


@pytest.mark.shapes(("heads", "head_dim", "dtype", "page_size", "rows"), FULL, QUICK)
def test_each_token_attends_to_its_sequence(
    heads: tuple[int, int],
    head_dim: int,
    dtype: torch.dtype,
    page_size: int,
    rows: str,
    device: torch.device,
) -> None:
    shape = attention_shape(*heads, head_dim)
    paged = _paged(shape, rows, page_size, dtype, device)
    plan = _backend(shape, paged.kv).plan(paged.batch)
    for layer in range(2):
        with poisoned_memory():
            found = plan.attend(layer, paged.qkv[layer])
        assert found.dtype == dtype
        assert relative_error(found, attention_of(paged, shape, layer)) < TOLERANCE[dtype]


@pytest.mark.shapes(("head_dim", "page_size"), [(64, 16), (96, 1), (128, 64)], [(64, 16)])
def test_new_tokens_are_rotated_and_stored(head_dim: int, page_size: int, device: torch.device) -> None:
    shape = attention_shape(8, 2, head_dim)
    rows = "mixed" if device.type == "cuda" else "small"
    paged = _paged(shape, rows, page_size, BF16, device)
    tokens = len(paged.qkv[0])
    qkv = torch.randn((tokens, shape.q_size + 2 * shape.kv_size), device=device).to(BF16)
    angles = torch.rand((tokens, head_dim // 2), device=device) * 6
    rotations = torch.polar(torch.ones_like(angles), angles)
    rotated = shape.q_size + shape.kv_size
    pairs = torch.view_as_complex(qkv[:, :rotated].double().reshape(tokens, -1, head_dim // 2, 2))
    expected = torch.view_as_real(pairs * rotations.to(torch.complex128).unsqueeze(1)).reshape(tokens, -1)
    values = qkv[:, rotated:].clone()
    other_layer = paged.kv.gather(0, *_all_pages(paged.kv))
    plan = _backend(shape, paged.kv).plan(paged.batch)
    plan.store(1, qkv, rotations)
    assert relative_error(qkv[:, :rotated], expected) < TOLERANCE[BF16]
    assert torch.equal(qkv[:, rotated:], values)
    stored = paged.kv.gather(1, *_all_pages(paged.kv)).view(-1, 2 * shape.kv_size)
    assert torch.equal(stored[_slots(paged, device)], qkv[:, shape.q_size :])
    assert torch.equal(paged.kv.gather(0, *_all_pages(paged.kv)), other_layer)


def _all_pages(kv: KVTensors) -> tuple[torch.Tensor, torch.Tensor]:
    count = kv.nbytes // (2 * kv.page_size * kv.token_bytes)
    return torch.arange(count, device=kv.device), kv.workspace(count)


def _slots(paged: Paged, device: torch.device) -> torch.Tensor:
    """Where each new token must lie."""
    size = paged.batch.page_size
    slots = [
        pages[position // size] * size + position % size
        for pages, prefix, extend in zip(
            paged.batch.pages,
            paged.batch.prefix_lens.tolist(),
            paged.batch.extend_lens.tolist(),
            strict=True,
        )
        for position in range(prefix, prefix + extend)
    ]
    return torch.tensor(slots, device=device)
