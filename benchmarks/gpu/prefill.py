"""Forwards of one whole prompt each, through the engine: throughput against tokens, and without graphs."""

from statistics import median
from typing import Any

from benchmarks.gpu.deadline import Deadline
from benchmarks.gpu.server import Kept, load
from benchmarks.gpu.setting import Setting
from engine.arithmetic import forward_cost, forward_sums
from engine.clock import MonotonicClock
from engine.engine import Engine
from engine.executors.device import DeviceExecutor
from engine.executors.graph_sizes import DEFAULT_GRAPHS, NO_GRAPHS, GraphLimits
from engine.models.loader import LoadedModel
from engine.observer import EngineObserver, ForwardRecord
from profiler.sweep import run_sweep, sweep_config

__all__ = ["measure_prefill"]


def measure_prefill(setting: Setting, deadline: Deadline) -> list[dict[str, Any]]:
    """Throughput by the device's time for a forward; small ones a second time with nothing replayed."""
    loaded = load(setting)
    usual = _Prefills(setting, loaded, setting.prefill_tokens[-1], DEFAULT_GRAPHS)
    plain = _Prefills(setting, loaded, DEFAULT_GRAPHS.max_tokens, NO_GRAPHS)
    points = []
    for tokens in deadline.within(setting.prefill_tokens):
        point = _point(loaded, tokens, usual.run(tokens))
        if tokens <= DEFAULT_GRAPHS.max_tokens:
            point["without_graphs"] = _times(plain.run(tokens))
        points.append(point)
    return points


class _Prefills:
    """An executor for prompts of up to so many tokens, whose graphs stay from one size to the next."""

    def __init__(self, setting: Setting, loaded: LoadedModel, largest: int, graphs: GraphLimits) -> None:
        self._config = sweep_config(largest, setting.page_size)
        self._clock = MonotonicClock()
        self._executor = DeviceExecutor(loaded, self._config, self._clock, graphs=graphs)
        self._vocab_size = loaded.shape.vocab_size
        self._repeats = setting.prefill_repeats

    def run(self, tokens: int) -> list[ForwardRecord]:
        """The counted forwards of this size; others go ahead unseen."""
        kept = Kept()
        run_sweep(
            self._build, kept, [tokens], vocab_size=self._vocab_size, repeats=self._repeats, seed=tokens
        )
        return kept.records

    def _build(self, observer: EngineObserver | None) -> Engine:
        return Engine(self._config, self._executor, clock=self._clock, observer=observer)


def _point(loaded: LoadedModel, tokens: int, records: list[ForwardRecord]) -> dict[str, Any]:
    size = loaded.dtype.itemsize
    cost = forward_cost(loaded.shape, forward_sums(records[0].batch), size, size)
    flops = cost.flops_linear + cost.flops_attention_extend + cost.flops_head
    times = _times(records)
    peaks = [
        r.result.memory_peak_bytes - r.result.memory_allocated_bytes
        for r in records
        if r.result.memory_peak_bytes is not None and r.result.memory_allocated_bytes is not None
    ]
    return {
        "tokens": tokens,
        "forwards": len(records),
        "graph": records[0].result.graph.name,
        "padded_rows": records[0].result.padded_rows,
        **times,
        "tokens_per_s": tokens / times["device_ns"] * 1e9,
        "flops_per_s": flops / times["device_ns"] * 1e9,
        "activation_peak_bytes": max(peaks, default=None),
    }


def _times(records: list[ForwardRecord]) -> dict[str, float]:
    """Medians: of the device's interval, and from the plan to the processed result."""
    return {
        "device_ns": median(r.result.end_ns - r.result.start_ns for r in records),
        "step_ns": median(r.result_end_ns - r.plan_start_ns for r in records),
    }
