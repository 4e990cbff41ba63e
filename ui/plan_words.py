"""What a plan rests on, in lines for the person who reads it: each with where its numbers are from."""

from collections.abc import Iterator

from profiler.cost_table import EFFICIENCIES, OVERHEADS
from profiler.paper.attention import GroupedAttention
from profiler.paper.elements import ElementBytes
from profiler.paper.feed_forward import DenseFeedForward
from profiler.paper.latent import LatentAttention
from profiler.paper.model import Layer
from profiler.paper.plan import PaperPlan
from ui.si_words import bandwidth, flop_rate
from ui.words import UNKNOWN, binary_bytes, count, plural

__all__ = ["basis"]


def basis(plan: PaperPlan) -> list[tuple[str, str]]:
    """A name and what is known of it, a line each; a line without a name continues the one above."""
    return [
        ("model", _model(plan)),
        *(("", line) for line in _layers(plan)),
        ("GPU", _device(plan)),
        *(("", note) for note in plan.device.notes),
        ("weights", _weights(plan)),
        ("KV", _kv(plan)),
        ("kept free", _kept_free(plan)),
        ("workload", _workload(plan)),
        ("assumed", f"shares of the peak FLOP/s and bytes/s: {'; '.join(_shares(plan))}"),
        *(("", line) for line in _assumed(plan)),
    ]


def _model(plan: PaperPlan) -> str:
    model = plan.model
    active = "" if model.active_params == model.num_params else f", {_billions(model.active_params)} active"
    without = f"; without {' and '.join(model.not_counted)}" if model.not_counted else ""
    return f"{model.name}: {model.model_type}, {_billions(model.num_params)} parameters{active}{without}"


def _layers(plan: PaperPlan) -> Iterator[str]:
    for layer, number in plan.model.layers:
        yield f"{plural(number, 'layer')}: {_attention(layer)}; {_feed_forward(layer)}"


def _attention(layer: Layer) -> str:
    attention = layer.attention
    if isinstance(attention, GroupedAttention):
        window = "" if attention.window is None else f", a window of {count(attention.window)} tokens"
        return f"{attention.num_heads} heads, {attention.num_kv_heads} of KV, of {attention.head_dim}{window}"
    if isinstance(attention, LatentAttention):
        return f"{attention.num_heads} heads on a latent of {count(attention.latent_size)}"
    heads, key, value = attention.num_value_heads, attention.key_head_dim, attention.value_head_dim
    return f"linear attention, {heads} heads with a state of {key} × {value}"


def _feed_forward(layer: Layer) -> str:
    part = layer.feed_forward
    if isinstance(part, DenseFeedForward):
        return f"{count(part.width)} columns"
    shared = f" beside {count(part.shared_width)} shared" if part.shared_width else ""
    return f"{part.per_token} of {part.num_experts} experts of {count(part.width)} columns{shared}"


def _device(plan: PaperPlan) -> str:
    device, peaks = plan.device, plan.device.peaks
    link = f", link {bandwidth(peaks.link_bytes_per_s)}" if device.tp > 1 else ""
    narrow = f", fp8 {flop_rate(device.gemm_flops_per_s)}" if device.size.dtype == "fp8" else ""
    given = any(value is not None for value in (device.given.tflops, device.given.bandwidth_tb_s))
    source = "data sheet, where not given" if given else "data sheet"
    return (
        f"{device.label}: bf16 {flop_rate(peaks.flops_per_s)}{narrow}, memory "
        f"{binary_bytes(peaks.memory_bytes)} at {bandwidth(peaks.bytes_per_s)}{link} ({source})"
    )


def _weights(plan: PaperPlan) -> str:
    memory, size = plan.memory, plan.device.size
    each = " on each GPU" if plan.device.tp > 1 else ""
    return f"{binary_bytes(memory.weight_bytes)}{each}: {_types(size)}"


def _types(size: ElementBytes) -> str:
    if size.experts not in (1, 2):
        return f"experts in MXFP4, {size.experts * 8:g} bits each, multiplied as bf16; all else in bf16"
    if size.matrices == 1:
        return "the layers' matrices in fp8; embedding, head, norms and routers in bf16"
    return "bf16"


def _kv(plan: PaperPlan) -> str:
    memory = plan.memory
    name = "fp8" if plan.device.size.kv == 1 else "bf16"
    text = f"{count(memory.kv_token_bytes)} bytes a token in {name}"
    if memory.full_token_bytes != memory.kv_token_bytes:
        text += f", {count(memory.full_token_bytes)} beyond all windows"
    if memory.state_bytes:
        text += f", and {binary_bytes(memory.state_bytes)} of state a request"
    request = f"a request of {count(memory.request_tokens)} tokens {binary_bytes(memory.request_bytes)}"
    return f"{text}; {request}"


def _kept_free(plan: PaperPlan) -> str:
    memory = plan.memory
    sizes = dict.fromkeys((plan.start.options.chunk_tokens, plan.sglang_chunk))
    parts = [
        f"{binary_bytes(memory.kept_free_bytes(size))} at chunks of {count(size)}, which leaves "
        f"{plural(memory.requests(size), 'request')}"
        for size in sizes
    ]
    return f"as SGLang does, {'; '.join(parts)}"


def _workload(plan: PaperPlan) -> str:
    return (
        f"while 6 requests decode, a prompt of {count(plan.prompt_tokens)} tokens comes; through the real "
        "scheduler on a virtual clock"
    )


def _shares(plan: PaperPlan) -> Iterator[str]:
    for kind, efficiency in EFFICIENCIES.items():
        if kind != "COLLECTIVE" or plan.device.tp > 1:
            compute = UNKNOWN if efficiency.compute is None else f"{efficiency.compute:g}"
            yield f"{kind} {compute} and {efficiency.memory:g}"


def _assumed(plan: PaperPlan) -> Iterator[str]:
    profile = plan.device.profile
    if profile is not None:
        group, shares = profile.group, profile.shares
        yield (
            f"GEMMs of the layers by {profile.path} instead: {group.gpu}, {group.model}, tp {group.tp}, "
            f"{plural(len(shares), 'size')} with {min(shares):.2g} to {max(shares):.2g} of the peak, "
            "measured in 16 bits"
        )
    yield f"{OVERHEADS.layer_ns / 1e3:g} us a layer and {OVERHEADS.forward_ns / 1e3:g} us a forward"
    if any(True for _ in plan.model.mixtures()):
        yield "every expert as likely as any other"


def _billions(params: int) -> str:
    return f"{params / 1e9:,.3g} B" if params < 1e12 else f"{params / 1e12:,.3g} T"
