"""From buffered records to the trace's columns: what was told is copied, sums and costs are derived.

Nothing here runs once a row: a row is an element of columns from the engine on.
"""

from collections.abc import Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from engine.arithmetic import ForwardCost, ForwardSums, activation_estimate_bytes, forward_cost
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
    "Sums",
    "concatenated",
    "event_columns",
    "forward_columns",
    "request_columns",
    "request_version",
]

Sums = Mapping[str, NDArray[np.int64]]  # by name, (forwards,)
Columns = dict[str, Any]  # by name: an array, a sequence that may hold None, or one value for every row

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
SUM_FIELDS = tuple(ForwardSums.__dataclass_fields__)
COST_FIELDS = tuple(ForwardCost.__dataclass_fields__)
GRAPH_NONE = enum_code("forwards", "graph", "NONE")

_known_numbers = attrgetter(*KNOWN_NUMBERS.values())
_other_values = attrgetter(*OTHER_FIELDS.values())
_row_values = attrgetter(*ROW_FIELDS.values())
_request_values = attrgetter(*REQUEST_FIELDS.values())
_budget_values = attrgetter(*BUDGETS)
_cost_values = attrgetter(*COST_FIELDS)
_types = {table: {field.name: field.type for field in schema} for table, schema in TABLES.items()}
_row_dtypes = {name: _types["rows"][name].to_pandas_dtype() for name in ROW_FIELDS}


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
        columns = {
            **self._told,
            "forward_id": self._forward_ids,
            "seq_len": seq_len,
            "kv_pages": -(-seq_len // self._page_sizes),
            "token_index": pa.array(token_index, mask=token_index < 0),
        }
        return {
            name: pa.array(values) if isinstance(values, np.ndarray) else values
            for name, values in columns.items()
        }

    def sums(self) -> Sums:
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
        """A column out of its parts; an Arrow array with nulls where some are unknown, None where all are."""
        dtype = _row_dtypes[name]
        known = [part for part in parts if part is not None]
        if len(known) == len(parts):
            return np.concatenate(known).astype(dtype, copy=False)
        if not known:
            return None
        return pa.concat_arrays(
            [
                pa.nulls(count, _types["rows"][name]) if part is None else pa.array(part.astype(dtype))
                for part, count in zip(parts, self._counts.tolist(), strict=True)
            ]
        )


def concatenated(parts: Sequence[Sums]) -> Sums:
    """Sums of forwards one after another."""
    return parts[0] if len(parts) == 1 else {n: np.concatenate([part[n] for part in parts]) for n in parts[0]}


def forward_columns(records: Sequence[ForwardRecord], sums: Sums, costing: Costing | None) -> Columns:
    """The trace's `forwards` columns but rank. Without `costing` FLOPs, bytes and activations are absent."""
    count = len(records)
    told = np.array([_known_numbers(record) for record in records], dtype=np.int64)
    costs = _cost_columns(sums, costing) if costing else {}
    numbers = {
        **dict(zip(KNOWN_NUMBERS, told.T, strict=True)),
        **sums,
        **costs,
        "padded_rows": np.zeros(count),
    }
    del numbers["rows_with_logits"]
    others = zip(*((*_other_values(record), *_budgets(record)) for record in records), strict=True)
    names = (*OTHER_FIELDS, *BUDGET_COLUMNS)
    return {
        **_numbers(numbers),
        **{name: _typed("forwards", name, values) for name, values in zip(names, others, strict=True)},
        "graph": _typed("forwards", "graph", (GRAPH_NONE,) * count),
    }


def _numbers(columns: Mapping[str, NDArray[Any]]) -> Columns:
    """Columns of int64 as slices of one array: for few rows, a third of the time of an array for each."""
    block = np.stack(list(columns.values()), dtype=np.int64, casting="unsafe")
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


def _cost_columns(sums: Mapping[str, NDArray[np.int64]], costing: Costing) -> dict[str, NDArray[np.int64]]:
    shape, size = costing
    columns = [sums[name].tolist() for name in SUM_FIELDS]
    all_sums = [ForwardSums(*values) for values in zip(*columns, strict=True)]
    costs = [forward_cost(shape, each, size, size) for each in all_sums]
    activations = [
        activation_estimate_bytes(shape, each.tokens, each.rows_with_logits, size) for each in all_sums
    ]
    table = np.array(
        [(*_cost_values(cost), activation) for cost, activation in zip(costs, activations, strict=True)],
        dtype=np.int64,
    )
    return dict(zip((*COST_FIELDS, "activation_est_bytes"), table.T, strict=True))


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
