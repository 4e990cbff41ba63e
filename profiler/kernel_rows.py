"""From a window's kernels to rows of `kernels`: on the run's clock, with FLOPs and bytes beside them."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from engine.operator_costs import OperatorWork
from engine.operators import Operator
from profiler.kernel_profile import ProfiledKernel

__all__ = ["kernel_columns", "placed"]

Costs = Mapping[tuple[Operator, int | None], OperatorWork]


def placed(
    kernels: Sequence[ProfiledKernel], anchor_ns: int, start_ns: int, end_ns: int
) -> list[ProfiledKernel]:
    """The kernels with their times on the run's clock, within their forward's device interval.

    `anchor_ns` is the moment from which the kernels' times are told. The profiler's clock and the forward's
    events may differ a little: kernels that would lie outside [start_ns, end_ns] are all moved by the same,
    as little as brings them in. What still reaches out is cut off, and of two kernels at once the earlier one
    has the time: so durations sum to no more than the forward's.
    """
    if not kernels:
        return []
    first = anchor_ns + kernels[0].start_ns
    last = anchor_ns + max(kernel.end_ns for kernel in kernels)
    shift = anchor_ns + max(min(0, end_ns - last), start_ns - first)
    return list(_cut(kernels, shift, start_ns, end_ns))


def _cut(
    kernels: Sequence[ProfiledKernel], shift: int, start_ns: int, end_ns: int
) -> Iterator[ProfiledKernel]:
    free_ns = start_ns
    for kernel in kernels:
        begun, ended = max(kernel.start_ns + shift, free_ns), min(kernel.end_ns + shift, end_ns)
        if begun < ended:
            free_ns = ended
            yield kernel._replace(start_ns=begun, end_ns=ended)


def kernel_columns(forward_id: int, kernels: Sequence[ProfiledKernel], costs: Costs | None) -> dict[str, Any]:
    """The trace's `kernels` columns but rank, None where all is unknown.

    FLOPs and bytes are those of an operator's call. They stand in the row of its longest kernel: what each of
    several kernels has of them is unknown. Without `costs`, or for what they do not tell of, all is unknown.
    """
    longest: dict[tuple[Operator, int | None], int] = {}
    for at, kernel in enumerate(kernels):
        key = (kernel.operator, kernel.layer)
        best = longest.setdefault(key, at)
        if kernel.end_ns - kernel.start_ns > kernels[best].end_ns - kernels[best].start_ns:
            longest[key] = at
    works = [(costs or {}).get((kernel.operator, kernel.layer)) for kernel in kernels]
    main = set(longest.values())
    columns: dict[str, list[Any]] = {
        "op": [kernel.operator.value for kernel in kernels],
        "layer": [kernel.layer for kernel in kernels],
        "name": [kernel.name for kernel in kernels],
        "stream": [kernel.stream for kernel in kernels],
        "correlation": [kernel.correlation for kernel in kernels],
        "start_ns": [kernel.start_ns for kernel in kernels],
        "end_ns": [kernel.end_ns for kernel in kernels],
        "tokens": [work and work.tokens for work in works],
        "flops": [work.flops if work and at in main else None for at, work in enumerate(works)],
        "bytes": [work.bytes if work and at in main else None for at, work in enumerate(works)],
    }
    known = {name: None if values.count(None) == len(values) else values for name, values in columns.items()}
    return {"forward_id": forward_id, **known}
