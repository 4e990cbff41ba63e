"""From what an engine told to the columns of `forwards`, `requests` and `events`: copied, not computed."""

from collections.abc import Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from engine.observer import Budgets, Event, ForwardRecord
from engine.request import Request
from profiler.costing import Costing
from profiler.row_block import Columns, Sums
from traces.schema import TABLES

__all__ = [
    "RequestVersion",
    "event_columns",
    "forward_columns",
    "request_columns",
    "request_version",
]

KNOWN_NUMBERS = {
    "plan_start_ns": "plan_start_ns",
    "plan_end_ns": "plan_end_ns",
    "launch_start_ns": "launch_start_ns",
    "launch_end_ns": "launch_end_ns",
    "start_ns": "result.start_ns",
    "end_ns": "result.end_ns",
    "result_start_ns": "result_start_ns",
    "result_end_ns": "result_end_ns",
    "running_reqs": "plan.running_reqs",
    "absent_decode_reqs": "plan.absent_decode_reqs",
    "waiting_reqs": "plan.waiting_reqs",
    "pending_tokens": "plan.pending_tokens",
    "pages_total": "plan.pool.total",
    "pages_free": "plan.pool.free",
    "pages_evictable": "plan.pool.evictable",
    "pages_protected": "plan.pool.protected",
    "pages_private": "plan.pool.private",
    "evicted_pages": "plan.evicted_pages",
    "retracted_reqs": "plan.retracted_reqs",
    "inflight_middle_chunks": "plan.inflight_middle_chunks",
    "padded_rows": "result.padded_rows",
}
"""Columns of int64 that every forward has, and where in its record they are."""

OTHER_FIELDS = {
    "forward_id": "batch.forward_id",
    "step": "batch.forward_id",
    "mode": "batch.mode",
    "clock_error_ns": "result.clock_error_ns",
    "overlapped": "overlapped",
    "mixed_deducted_tokens": "plan.mixed_deducted_tokens",
    "new_token_ratio": "plan.new_token_ratio",
    "stop_reason": "plan.stop_reason",
    "blocked_rid": "plan.blocked_rid",
    "chunked_rid": "plan.chunked_rid",
    "memory_allocated_bytes": "result.memory_allocated_bytes",
    "memory_peak_bytes": "result.memory_peak_bytes",
    "graph": "result.graph",
}
REQUEST_FIELDS = {
    "rid": "rid",
    "name": "name",
    "arrival_ns": "arrival_ns",
    "prompt_tokens": "prompt_len",
    "max_new_tokens": "max_new_tokens",
    "output_tokens": "output_len",
    "cached_tokens": "cached_tokens",
    "first_scheduled_ns": "first_scheduled_ns",
    "first_token_ns": "first_token_ns",
    "finish_ns": "finish_ns",
    "finish_reason": "finish_reason",
    "retractions": "retractions",
    "priority": "priority",
    "ignore_eos": "sampling.ignore_eos",
}
BUDGETS = ("total", "current", "input", "chunk")
BUDGET_COLUMNS = [f"{budget}_budget_{edge}_tokens" for edge in ("start", "end") for budget in BUDGETS]

_known_numbers = attrgetter(*KNOWN_NUMBERS.values())
_other_values = attrgetter(*OTHER_FIELDS.values())
_request_values = attrgetter(*REQUEST_FIELDS.values())
_budget_values = attrgetter(*BUDGETS)
_types = {table: {field.name: field.type for field in schema} for table, schema in TABLES.items()}


def forward_columns(records: Sequence[ForwardRecord], sums: Sums, costing: Costing | None) -> Columns:
    """The trace's `forwards` columns but rank. Without `costing` FLOPs, bytes and activations are absent."""
    told = np.array([_known_numbers(record) for record in records], dtype=np.int64)
    costs = costing.columns(sums) if costing else {}
    numbers = {**dict(zip(KNOWN_NUMBERS, told.T, strict=True)), **sums, **costs}
    del numbers["rows_with_logits"]
    others = zip(*((*_other_values(record), *_budgets(record)) for record in records), strict=True)
    names = (*OTHER_FIELDS, *BUDGET_COLUMNS)
    return {
        **_numbers(numbers),
        **{name: _typed("forwards", name, values) for name, values in zip(names, others, strict=True)},
    }


def _numbers(columns: Mapping[str, NDArray[np.int64]]) -> Columns:
    """Columns of int64 as slices of one array: for few rows, a third of the time of an array for each."""
    block = np.stack(list(columns.values()))
    whole, width = pa.array(block.reshape(-1)), block.shape[1]
    return {name: whole.slice(at * width, width) for at, name in enumerate(columns)}


def _typed(table: str, name: str, values: tuple[Any, ...]) -> Any:
    """A column of its table's type; None, which is null throughout, where all are unknown."""
    if values.count(None) == len(values):
        return None
    return pa.array(values, type=_types[table][name])


def _budgets(record: ForwardRecord) -> tuple[int | None, ...]:
    start, end = record.plan.budget_start, record.plan.budget_end
    return (*_four(start), *_four(end))


def _four(budgets: Budgets | None) -> tuple[int | None, ...]:
    return (None,) * len(BUDGETS) if budgets is None else _budget_values(budgets)


class RequestVersion(NamedTuple):
    """What a request's row says at one moment."""

    values: tuple[Any, ...]
    prefix_hashes: NDArray[np.uint64]


def request_version(request: Request, prefix_hashes: NDArray[np.uint64]) -> RequestVersion:
    """A request's fields as they are now."""
    return RequestVersion(_request_values(request), prefix_hashes)


def request_columns(versions: Sequence[RequestVersion]) -> Columns:
    """The trace's `requests` columns but rank. The engine knows neither log-probabilities nor embeddings."""
    told = zip(*(version.values for version in versions), strict=True)
    count = len(versions)
    return {
        **{name: _typed("requests", name, values) for name, values in zip(REQUEST_FIELDS, told, strict=True)},
        "prefix_hashes": [version.prefix_hashes for version in versions],
        "wants_logprobs": (False,) * count,
        "has_embeds": (False,) * count,
    }


def event_columns(events: Iterable[Event]) -> Columns:
    """The trace's `events` columns but rank."""
    told = zip(*events, strict=True)
    return {name: _typed("events", name, values) for name, values in zip(Event._fields, told, strict=True)}
