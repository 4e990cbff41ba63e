"""From buffered records to the trace's columns: what was told is copied, sums and costs are derived.

Nothing here runs once a row: a row is an element of columns from the engine on.
"""

from collections.abc import Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from engine.arithmetic import ForwardSums, activation_estimate_bytes, forward_cost
from engine.batch import Role
from engine.observer import Budgets, Event, ForwardRecord
from engine.request import Request
from engine.shapes import ModelShape
from traces.schema import TABLES, enum_code

__all__ = [
    "Columns",
    "Costing",
    "RequestVersion",
    "RowBlock",
    "event_columns",
    "forward_columns",
    "request_columns",
    "request_version",
]

Columns = dict[str, Any]  # by name: an array, a sequence that may hold None, or one value for every row

FORWARD_FIELDS = {
    "forward_id": "batch.forward_id",
    "step": "batch.forward_id",
    "mode": "batch.mode",
    "plan_start_ns": "plan_start_ns",
    "plan_end_ns": "plan_end_ns",
    "launch_start_ns": "launch_start_ns",
    "launch_end_ns": "launch_end_ns",
    "start_ns": "result.start_ns",
    "end_ns": "result.end_ns",
    "result_start_ns": "result_start_ns",
    "result_end_ns": "result_end_ns",
    "clock_error_ns": "result.clock_error_ns",
    "overlapped": "overlapped",
    "running_reqs": "plan.running_reqs",
    "absent_decode_reqs": "plan.absent_decode_reqs",
    "waiting_reqs": "plan.waiting_reqs",
    "pending_tokens": "plan.pending_tokens",
    "mixed_deducted_tokens": "plan.mixed_deducted_tokens",
    "new_token_ratio": "plan.new_token_ratio",
    "stop_reason": "plan.stop_reason",
    "blocked_rid": "plan.blocked_rid",
    "pages_total": "plan.pool.total",
    "pages_free": "plan.pool.free",
    "pages_evictable": "plan.pool.evictable",
    "pages_protected": "plan.pool.protected",
    "pages_private": "plan.pool.private",
    "evicted_pages": "plan.evicted_pages",
    "retracted_reqs": "plan.retracted_reqs",
    "chunked_rid": "plan.chunked_rid",
    "inflight_middle_chunks": "plan.inflight_middle_chunks",
    "memory_allocated_bytes": "result.memory_allocated_bytes",
    "memory_peak_bytes": "result.memory_peak_bytes",
}
ROW_FIELDS = {
    "rid": "batch.rids",
    "attempt": "batch.attempts",
    "role": "batch.roles",
    "prefix_len": "batch.prefix_lens",
    "extend_len": "batch.extend_lens",
    "cached_tokens": "batch.cached_tokens",
    "inflight_after_plan": "plan.inflight_after_plan",
    "inflight_after_result": "inflight_after_result",
    "private_pages": "plan.private_pages",
    "outcome": "outcomes",
    "token_index": "token_index",
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
    "ignore_eos": "sampling.ignore_eos",
}
BUDGETS = ("total", "current", "input", "chunk")
BUDGET_COLUMNS = [f"{budget}_budget_{edge}_tokens" for edge in ("start", "end") for budget in BUDGETS]
SUM_FIELDS = ForwardSums.__dataclass_fields__.keys()
GRAPH_NONE = enum_code("forwards", "graph", "NONE")

_forward_values = attrgetter(*FORWARD_FIELDS.values())
_row_values = attrgetter(*ROW_FIELDS.values())
_request_values = attrgetter(*REQUEST_FIELDS.values())
_budget_values = attrgetter(*BUDGETS)
_row_types = {name: TABLES["rows"].field(name).type for name in ROW_FIELDS}
_forward_types = {field.name: field.type.to_pandas_dtype() for field in TABLES["forwards"]}


class Costing(NamedTuple):
    """What FLOPs and bytes of a forward are counted for: a model and the element size of weights and KV."""

    shape: ModelShape
    element_bytes: int


class RowBlock:
    """The rows of some forwards, one after another, as one block of columns; every forward has rows."""

    def __init__(self, records: Sequence[ForwardRecord]) -> None:
        self._counts = np.array([record.batch.num_rows for record in records], dtype=np.int64)
        assert self._counts.all(), "a forward has rows"
        self._starts = np.cumsum(self._counts) - self._counts
        ids = np.array([record.batch.forward_id for record in records], dtype=np.uint32)
        page_sizes = np.array([record.batch.page_size for record in records], dtype=np.int32)
        self._forward_ids = np.repeat(ids, self._counts)
        self._page_sizes = np.repeat(page_sizes, self._counts)
        parts = zip(*map(_row_values, records), strict=True)
        self._told = {name: self._joined(name, part) for name, part in zip(ROW_FIELDS, parts, strict=True)}

    def columns(self) -> Columns:
        """The trace's `rows` columns but rank; `token_index` is null where a row emitted nothing."""
        seq_len = self._told["prefix_len"] + self._told["extend_len"]
        token_index = self._told["token_index"]
        return {
            **self._told,
            "forward_id": self._forward_ids,
            "seq_len": seq_len,
            "kv_pages": -(-seq_len // self._page_sizes),
            "token_index": pa.array(token_index, mask=token_index < 0),
        }

    def sums(self) -> dict[str, NDArray[np.int64]]:
        """(forwards,) sums over each forward's rows under the trace's names, and `rows_with_logits`."""
        prefix = self._told["prefix_len"].astype(np.int64)
        extend = self._told["extend_len"].astype(np.int64)
        role = self._told["role"]
        is_extend = role != Role.DECODE
        new = extend * is_extend
        extend_seqs = self._summed(is_extend)
        extend_tokens, prefix_tokens = self._summed(new), self._summed(prefix * is_extend)
        tokens = self._summed(extend)
        kv_tokens = self._summed(prefix) + tokens
        return {
            "num_extend_seqs": extend_seqs,
            "num_decode_seqs": self._counts - extend_seqs,
            "extend_tokens": extend_tokens,
            "decode_tokens": tokens - extend_tokens,
            "prefix_tokens": prefix_tokens,
            "kv_tokens": kv_tokens,
            "pairs_prefix": self._summed(new * prefix),
            "pairs_causal": self._summed(new * (extend + 1) >> 1),
            "pairs_decode": kv_tokens - prefix_tokens - extend_tokens,
            "rows_with_logits": self._counts - self._summed((role == Role.FIRST) | (role == Role.MIDDLE)),
        }

    def _summed(self, values: NDArray[Any]) -> NDArray[np.int64]:
        return np.add.reduceat(values, self._starts, dtype=np.int64)

    def _joined(self, name: str, parts: Sequence[NDArray[Any] | None]) -> Any:
        """A column out of its parts, null where a part is unknown; None where all are."""
        kind = _row_types[name]
        known = [part for part in parts if part is not None]
        if len(known) == len(parts):
            return np.concatenate(known).astype(kind.to_pandas_dtype(), copy=False)
        if not known:
            return None
        return pa.concat_arrays(
            [
                pa.nulls(count, kind) if part is None else pa.array(part.astype(kind.to_pandas_dtype()))
                for part, count in zip(parts, self._counts, strict=True)
            ]
        )


def forward_columns(
    records: Sequence[ForwardRecord], sums: Mapping[str, NDArray[np.int64]], costing: Costing | None
) -> Columns:
    """The trace's `forwards` columns but rank. Without `costing` FLOPs, bytes and activations are absent."""
    names = (*FORWARD_FIELDS, *BUDGET_COLUMNS)
    values = zip(*((*_forward_values(record), *_budgets(record)) for record in records), strict=True)
    told = {name: _packed(name, column) for name, column in zip(names, values, strict=True)}
    costs = _cost_columns(sums, costing) if costing else {}
    sums = {name: values for name, values in sums.items() if name != "rows_with_logits"}
    return {**told, **sums, **costs, "graph": GRAPH_NONE, "padded_rows": 0}


def _packed(name: str, values: tuple[Any, ...]) -> Any:
    """A column as an array, which Arrow takes faster than a sequence; None where all are unknown."""
    missing = values.count(None)
    if not missing:
        return np.array(values, dtype=_forward_types[name])
    return None if missing == len(values) else values


def _budgets(record: ForwardRecord) -> tuple[int | None, ...]:
    start, end = record.plan.budget_start, record.plan.budget_end
    return (*_four(start), *_four(end))


def _four(budgets: Budgets | None) -> tuple[int | None, ...]:
    return (None,) * len(BUDGETS) if budgets is None else _budget_values(budgets)


def _cost_columns(sums: Mapping[str, NDArray[np.int64]], costing: Costing) -> Columns:
    shape, size = costing
    columns = [sums[name].tolist() for name in SUM_FIELDS]
    all_sums = [ForwardSums(*values) for values in zip(*columns, strict=True)]
    costs = [forward_cost(shape, each, size, size) for each in all_sums]
    activations = [
        activation_estimate_bytes(shape, each.tokens, each.rows_with_logits, size) for each in all_sums
    ]
    names = costs[0].__dataclass_fields__.keys()
    return {
        **{name: np.array([getattr(cost, name) for cost in costs]) for name in names},
        "activation_est_bytes": np.array(activations),
    }


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
    return {
        **dict(zip(REQUEST_FIELDS, told, strict=True)),
        "prefix_hashes": [version.prefix_hashes for version in versions],
        "wants_logprobs": False,
        "has_embeds": False,
    }


def event_columns(events: Iterable[Event]) -> Columns:
    """The trace's `events` columns but rank."""
    return dict(zip(Event._fields, zip(*events, strict=True), strict=True))
