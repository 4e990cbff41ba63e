"""A plan as one JSON-safe document."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from profiler.paper.model import Layer
from profiler.paper.plan import PaperPlan
from profiler.paper.words import answer, reasons

__all__ = ["document"]


def document(plan: PaperPlan) -> dict[str, Any]:
    """What `plan --json` prints; docs/metrics.md defines every key. Unknown is None, times are seconds."""
    device, options = plan.device, plan.start.options
    return {
        "provenance": "derived from the data sheet",
        "answer": answer(plan),
        "reasons": reasons(plan),
        "recommended": {**asdict(options), "arguments": list(options.arguments())},
        "sglang_chunk_tokens": plan.sglang_chunk,
        "point": asdict(plan.point),
        "model": _model(plan),
        "device": {
            "name": device.card.name,
            "tp": device.tp,
            "peaks": asdict(device.peaks),
            "gemm_flops_per_s": device.gemm_flops_per_s,
            "given": {name: value for name, value in asdict(device.given).items() if value is not None},
            **device.card.provenance(),
        },
        "element_bytes": asdict(device.size),
        "memory": _memory(plan),
        "cost_model": device.cost_model().describe(),
        "workload": {"longest_prompt_tokens": plan.prompt_tokens},
        "rows": [
            {**asdict(row), "requests": plan.memory.requests(row.options.chunk_tokens)} for row in plan.rows
        ],
    }


def _model(plan: PaperPlan) -> dict[str, Any]:
    model = plan.model
    return {
        "name": model.name,
        "model_type": model.model_type,
        "num_params": model.num_params,
        "active_params": model.active_params,
        "hidden_size": model.hidden_size,
        "vocab_size": model.vocab_size,
        "max_position_embeddings": model.max_position_embeddings,
        "quant_method": model.quant_method,
        "layers": [{"layers": count, **_layer(layer)} for layer, count in model.layers],
        "not_counted": list(model.not_counted),
    }


def _layer(layer: Layer) -> Mapping[str, Any]:
    """One kind of layer: the kinds of its parts, and their sizes."""
    parts = {"attention": layer.attention, "feed_forward": layer.feed_forward}
    return {name: {"kind": type(part).__name__, **asdict(part)} for name, part in parts.items()}


def _memory(plan: PaperPlan) -> dict[str, Any]:
    memory, chunk = plan.memory, plan.start.options.chunk_tokens
    return {
        "memory_bytes": memory.memory_bytes,
        "weight_bytes": memory.weight_bytes,
        "kept_free_bytes": memory.kept_free_bytes(chunk),
        "kv_token_bytes": memory.kv_token_bytes,
        "full_token_bytes": memory.full_token_bytes,
        "state_bytes": memory.state_bytes,
        "request_tokens": memory.request_tokens,
        "request_bytes": memory.request_bytes,
        "requests": memory.requests(chunk),
    }
