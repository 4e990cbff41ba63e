"""The fused operators against float64."""

import pytest
import torch

from engine.ops.protocol import Ops
from tests.gpu.references import TOLERANCE, poisoned_memory, relative_error

pytest.importorskip("triton", reason="Triton is not installed")

# The interpreter's numpy warns of lanes that are discarded.
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

DTYPES = [torch.bfloat16, torch.float16]
EPS = 1e-5
SIZES = [(tokens, size, dtype) for tokens in (1, 17, 512) for size in (576, 4096, 5000) for dtype in DTYPES]
FEW = [(3, 130, dtype) for dtype in DTYPES]

by_size = pytest.mark.shapes(("tokens", "size", "dtype"), SIZES, FEW)


@pytest.fixture
def ops() -> Ops:
    from engine.ops.triton_ops import TritonOps

    return TritonOps()


def _drawn(device: torch.device, dtype: torch.dtype, *size: int) -> torch.Tensor:
    return torch.randn(size, device=device).to(dtype)


def _normed(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    x = x.double()
    return x * (x.square().mean(dim=-1, keepdim=True) + EPS).rsqrt() * weight.double()


@by_size
def test_norms(ops: Ops, tokens: int, size: int, dtype: torch.dtype, device: torch.device) -> None:
    update, residual = (_drawn(device, dtype, tokens, size) for _ in range(2))
    weight = _drawn(device, dtype, size)
    with poisoned_memory():
        found = ops.rms_norm(residual, weight, EPS)
    assert relative_error(found, _normed(residual, weight)) < TOLERANCE[dtype]
    total = residual.double() + update.double()
    with poisoned_memory():
        found = ops.add_rms_norm(update, residual, weight, EPS)
    assert relative_error(residual, total) < TOLERANCE[dtype]
    assert relative_error(found, _normed(residual, weight)) < TOLERANCE[dtype]


@pytest.mark.shapes(("head_dim", "dtype"), [(d, t) for d in (64, 128) for t in DTYPES], [(64, DTYPES[0])])
def test_norms_of_heads(ops: Ops, head_dim: int, dtype: torch.dtype, device: torch.device) -> None:
    token = _drawn(device, dtype, 5, 10 * head_dim)
    heads = token[:, : 6 * head_dim].view(5, 6, head_dim)
    weight = _drawn(device, dtype, 6, head_dim)
    expected, others = _normed(heads, weight), token[:, 6 * head_dim :].clone()
    ops.rms_norm_heads_(heads, weight, EPS)
    assert relative_error(heads, expected) < TOLERANCE[dtype]
    assert torch.equal(token[:, 6 * head_dim :], others)


@by_size
def test_silu_and_mul(ops: Ops, tokens: int, size: int, dtype: torch.dtype, device: torch.device) -> None:
    gate_up = _drawn(device, dtype, tokens, 2 * size)
    gate, up = gate_up.double().chunk(2, dim=-1)
    with poisoned_memory():
        found = ops.silu_and_mul(gate_up)
    assert relative_error(found, gate * gate.sigmoid() * up) < TOLERANCE[dtype]


@pytest.mark.shapes(("rows", "vocab_size"), [(1, 32000), (7, 128256), (256, 151936)], [(2, 5000)])
def test_choices_of_tokens(ops: Ops, rows: int, vocab_size: int, device: torch.device) -> None:
    logits = _drawn(device, torch.bfloat16, rows, vocab_size)
    found = ops.argmax(logits)
    places = torch.arange(vocab_size, device=device)
    best = torch.where(logits == logits.amax(dim=-1, keepdim=True), places, vocab_size).amin(dim=-1)
    assert torch.equal(found, best)
    picked = torch.arange(rows, device=device)
    temperatures = torch.linspace(0.3, 1.5, rows, device=device)
    noise = torch.empty((rows, vocab_size), device=device).exponential_().log()
    chosen = ops.noisy_argmax(logits, picked, temperatures, noise)
    scores = logits.double() / temperatures.double().unsqueeze(1) - noise.double()
    # Scores are float32: another place may win that is as good to its last digits.
    lost = scores.amax(dim=-1) - scores.gather(1, chosen.unsqueeze(1)).squeeze(1)
    assert bool((lost < 1e-4).all())


@pytest.mark.shapes("vocab_size", [32000, 128256, 151936], [5000])
def test_a_logit_that_is_no_number_is_chosen_as_torch_chooses(
    ops: Ops, vocab_size: int, device: torch.device
) -> None:
    logits = _drawn(device, torch.bfloat16, 3, vocab_size)
    for row, place in enumerate((vocab_size // 2, 0, vocab_size - 1)):
        logits[row, place] = torch.nan
    found = ops.argmax(logits)
    assert found.tolist() == [vocab_size // 2, 0, vocab_size - 1]
    assert torch.equal(found, logits.argmax(dim=-1))
