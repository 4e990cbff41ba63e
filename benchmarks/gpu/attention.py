"""Extend and decode attention over pages against torch's over dense tensors, kernel by kernel."""

from collections.abc import Callable
from typing import Any

import torch

from benchmarks.gpu.batches import Paged, make_batch
from benchmarks.gpu.deadline import Deadline
from benchmarks.gpu.sdpa import BACKENDS, NotThere, decode_calls, extend_calls
from benchmarks.gpu.setting import DecodePoint, ExtendPoint, Setting
from benchmarks.gpu.timing import beyond_cache, time_calls
from engine.attention.protocol import AttentionBackend
from engine.kv_tensors import KVTensors
from engine.models.json_file import read_json_object
from engine.shapes import ModelShape

__all__ = ["measure_decode", "measure_extend"]

Calls = list[Callable[[], torch.Tensor]]
COPIES = 4  # of a point's keys and values that must fit: in pages, in order, dense, and room to spare


@torch.inference_mode()
def measure_extend(setting: Setting, deadline: Deadline) -> list[dict[str, Any]]:
    """For each point TFLOP/s of ours and of each backend, null with a reason where there is none."""
    return [_extend_point(setting, point) for point in deadline.within(setting.extend)]


@torch.inference_mode()
def measure_decode(setting: Setting, deadline: Deadline) -> list[dict[str, Any]]:
    """For each point GB/s of keys and values read, by ours and by each backend."""
    return [_decode_point(setting, point) for point in deadline.within(setting.decode)]


def _extend_point(setting: Setting, point: ExtendPoint) -> dict[str, Any]:
    shape = _shape(setting)
    prefix = point.seq_len - point.chunk
    pairs = point.sequences * (point.chunk * prefix + point.chunk * (point.chunk + 1) // 2)
    flops = 4 * shape.q_size * pairs
    told: dict[str, Any] = {
        "sequences": point.sequences,
        "seq_len": point.seq_len,
        "chunk": point.chunk,
        "flops": flops,
    }
    paged = _paged(setting, shape, [(prefix, point.chunk)] * point.sequences, 0)
    if paged is None:
        return told | {"left_out": "its keys and values do not fit in memory"}
    return told | _compare(setting, shape, paged, extend_calls, "flops_per_s", flops)


def _decode_point(setting: Setting, point: DecodePoint) -> dict[str, Any]:
    shape = _shape(setting)
    lens = [point.seq_len] * point.rows
    if point.ragged:
        lens = torch.linspace(1, 2 * point.seq_len, point.rows).long().tolist()
    kv_bytes = sum(lens) * 2 * shape.kv_size * getattr(torch, setting.dtype).itemsize
    told: dict[str, Any] = {
        "rows": point.rows,
        "seq_len": point.seq_len,
        "ragged": point.ragged,
        "kv_bytes": kv_bytes,
    }
    paged = _paged(setting, shape, [(length - 1, 1) for length in lens], point.rows)
    if paged is None:
        return told | {"left_out": "its keys and values do not fit in memory"}
    calls = None if point.ragged else decode_calls
    return told | _compare(setting, shape, paged, calls, "bytes_per_s", kv_bytes)


def _compare(
    setting: Setting,
    shape: ModelShape,
    paged: Paged,
    dense: Callable[[Paged, ModelShape, str], Calls] | None,
    unit: str,
    amount: float,
) -> dict[str, Any]:
    """Rates of ours and of the backends, and how far ours lies from each: |ours - theirs| / |theirs|."""
    device = torch.device(setting.device)
    plan = backend_for(setting, shape, paged.kv).plan(paged.batch)
    ours: Calls = [lambda i=i, qkv=qkv: plan.attend(i, qkv) for i, qkv in enumerate(paged.qkv)]  # type: ignore[misc]
    timed = time_calls(ours, device, setting.repeats)
    told: dict[str, Any] = {"ours": {unit: timed.rate(amount), "median_ns": timed.median_ns}}
    for name in BACKENDS:
        try:
            if dense is None:
                raise NotThere("takes no batch of rows of different lengths")
            theirs = dense(paged, shape, name)
        except NotThere as reason:
            told[name] = {unit: None, "reason": str(reason)}
            continue
        error = _distance(ours[0](), theirs[0](), shape)
        timed = time_calls(theirs, device, setting.repeats)
        told[name] = {unit: timed.rate(amount), "median_ns": timed.median_ns, "relative_error_of_ours": error}
    return told


def backend_for(setting: Setting, shape: ModelShape, kv: KVTensors) -> AttentionBackend:
    """The attention that is measured: Triton's on a GPU. Its interpreter on a CPU tells nothing of speed."""
    if setting.on_gpu:
        from engine.attention.triton_paged import TritonPagedAttention

        return TritonPagedAttention(shape, kv)
    from engine.attention.torch_paged import TorchPagedAttention

    return TorchPagedAttention(shape, kv)


def _distance(ours: torch.Tensor, theirs: torch.Tensor, shape: ModelShape) -> float:
    """`theirs` (rows, heads, tokens, head_dim), or heads of a group as tokens of one head."""
    rows = len(theirs)
    tokens = len(ours) // rows
    if theirs.shape[2] == tokens and theirs.shape[1] == shape.num_heads:
        theirs = theirs.transpose(1, 2)
    reference = theirs.reshape(len(ours), -1).double()
    return float((ours.double() - reference).norm() / reference.norm())


def _paged(setting: Setting, shape: ModelShape, rows: list[tuple[int, int]], decodes: int) -> Paged | None:
    device, dtype = torch.device(setting.device), getattr(torch, setting.dtype)
    layer_bytes = sum(prefix + extend for prefix, extend in rows) * 2 * shape.kv_size * dtype.itemsize
    layers = beyond_cache(layer_bytes, device)
    if setting.on_gpu:
        torch.cuda.empty_cache()  # what the point before has left
        if layers * layer_bytes * COPIES > torch.cuda.mem_get_info()[0]:
            return None
    size = setting.page_size
    return make_batch(shape, rows, decodes, layers=layers, page_size=size, dtype=dtype, device=device)


def _shape(setting: Setting) -> ModelShape:
    return ModelShape.from_hf_config(read_json_object(setting.model), str(setting.model))
