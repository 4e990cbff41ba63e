"""What was measured, set beside what is wanted of it."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

__all__ = ["SIDES", "Phases", "first_reach", "points_of", "result_of", "targets"]

Phases = Mapping[str, Mapping[str, Any]]

SIDES = ("flash", "cudnn")  # torch's backends
SATURATED = 0.95  # of the most throughput: the first point that reaches it is where prefill is judged
LONG_TOKENS = 8192  # of a sequence, from which extend attention is judged
STREAMED_BYTES = 1 << 28  # of keys and values, from which decode attention is judged
AT_LEAST = {
    "extend attention against torch's best, the least at 8K and above": 0.7,
    "decode attention against the copy's bandwidth, the least where 256 MiB are read": 0.8,
    "prefill at first_reach against the best GEMM": 0.65,
}
AT_MOST = {"recording, share of a decode step": 0.005}


def targets(phases: Phases) -> list[dict[str, Any]]:
    """Each wanted ratio and the one found; null where what it takes was not measured."""
    wanted = [(name, "least", ratio) for name, ratio in AT_LEAST.items()]
    wanted += [(name, "most", ratio) for name, ratio in AT_MOST.items()]
    return [
        {"name": name, "at": at, "wanted": ratio, "found": found, "met": _met(at, ratio, found)}
        for (name, at, ratio), found in zip(wanted, _found(phases), strict=True)
    ]


def first_reach(points: Sequence[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """The first point, by tokens, whose throughput is at least 0.95 of the most that was measured."""
    most = max((point["tokens_per_s"] for point in points), default=0.0)
    return next((point for point in points if point["tokens_per_s"] >= SATURATED * most), None)


def result_of(phases: Phases, name: str) -> Any:
    """What a phase returned; None if it failed or was not run."""
    return phases.get(name, {}).get("result")


def points_of(phases: Phases, name: str) -> Any:
    """What a phase measured, point by point; nothing if it failed or was not run."""
    return (result_of(phases, name) or {}).get("points", ())


def _found(phases: Phases) -> Iterator[float | None]:
    """In the order of what is wanted."""
    ceilings = result_of(phases, "ceilings")
    yield _least(
        point["ours"]["flops_per_s"] / best
        for point in points_of(phases, "extend")
        for best in [max((point[side]["flops_per_s"] or 0.0 for side in SIDES if side in point), default=0.0)]
        if best and point["seq_len"] >= LONG_TOKENS
    )
    yield _least(
        point["ours"]["bytes_per_s"] / ceilings["copy_bytes_per_s"]
        for point in points_of(phases, "decode")
        if ceilings and "ours" in point and point["kv_bytes"] >= STREAMED_BYTES
    )
    reach = first_reach(points_of(phases, "prefill"))
    yield reach["flops_per_s"] / ceilings["gemm_flops_per_s"] if reach and ceilings else None
    recorder = points_of(phases, "recorder")
    yield recorder["overhead"]["step_ns"] if recorder else None


def _least(ratios: Iterable[float]) -> float | None:
    return min(ratios, default=None)


def _met(at: str, wanted: float, found: float | None) -> bool | None:
    if found is None:
        return None
    return found >= wanted if at == "least" else found <= wanted
