"""The six tables of a trace: columns in order, types, enum names.

Ids are uint32, times int64 nanoseconds since the run's start, enums uint8 whose names are a JSON list under
the field's metadata key "enum". Counts, budgets (which may be negative), FLOPs and bytes are int64; the two
long tables, `rows` and `pages`, hold counts as int32 (cast before multiplying) and the in-flight counters as
int8. Null is unknown, 0 is zero. Columns may be added within a major version, never changed.
"""

import json
from collections.abc import Mapping
from types import MappingProxyType

import pyarrow as pa

from traces.errors import TraceError

__all__ = ["SCHEMA_VERSION", "TABLES", "enum_code", "enum_names"]

SCHEMA_VERSION = "1.0"

_ID = pa.uint32()
_TIME = pa.int64()
_COUNT = pa.int64()
_SMALL_COUNT = pa.int32()
_FLAG = pa.bool_()
_TEXT = pa.string()


def _columns(names: str, kind: pa.DataType) -> list[pa.Field]:
    return [pa.field(name, kind) for name in names.split()]


def _enum(name: str, values: str) -> pa.Field:
    return pa.field(name, pa.uint8(), metadata={"enum": json.dumps(values.split())})


def _forwards() -> list[pa.Field]:
    return [
        *_columns("forward_id rank step", _ID),
        _enum("mode", "EXTEND DECODE MIXED"),
        *_columns("plan_start_ns plan_end_ns launch_start_ns launch_end_ns start_ns end_ns", _TIME),
        *_columns("result_start_ns result_end_ns clock_error_ns", _TIME),
        pa.field("overlapped", _FLAG),
        *_columns("num_extend_seqs num_decode_seqs extend_tokens decode_tokens", _COUNT),
        *_columns("prefix_tokens kv_tokens pairs_prefix pairs_causal pairs_decode", _COUNT),
        *_columns("flops_linear flops_attention_extend flops_attention_decode flops_head", _COUNT),
        *_columns("bytes_weights bytes_kv_read bytes_kv_write bytes_activation", _COUNT),
        *_columns("running_reqs absent_decode_reqs waiting_reqs pending_tokens", _COUNT),
        *(
            pa.field(f"{budget}_budget_{edge}_tokens", _COUNT)
            for budget in ("total", "current", "input", "chunk")
            for edge in ("start", "end")
        ),
        pa.field("mixed_deducted_tokens", _COUNT),
        pa.field("new_token_ratio", pa.float64()),
        _enum(
            "stop_reason",
            "QUEUE_EMPTY TOTAL CURRENT INPUT CHUNK ALIGN SLOTS MAX_REQUESTS BATCH_FULL INTERVAL ORDER",
        ),
        pa.field("blocked_rid", _ID),
        *_columns("pages_total pages_free pages_evictable pages_protected pages_private", _COUNT),
        *_columns("evicted_pages retracted_reqs", _COUNT),
        pa.field("chunked_rid", _ID),
        pa.field("inflight_middle_chunks", _COUNT),
        _enum("graph", "NONE FULL PIECEWISE"),
        *_columns("padded_rows memory_allocated_bytes memory_peak_bytes activation_est_bytes", _COUNT),
    ]


def _rows() -> list[pa.Field]:
    return [
        *_columns("forward_id rank rid attempt", _ID),
        _enum("role", "WHOLE FIRST MIDDLE LAST DECODE"),
        *_columns("prefix_len extend_len seq_len cached_tokens", _SMALL_COUNT),
        *_columns("inflight_after_plan inflight_after_result", pa.int8()),
        *_columns("kv_pages private_pages", _SMALL_COUNT),
        _enum("outcome", "EMITTED MIDDLE_DROPPED FINISHED_DROPPED ABORTED RETRACTED"),
        pa.field("token_index", _SMALL_COUNT),
    ]


def _requests() -> list[pa.Field]:
    return [
        pa.field("rid", _ID),
        pa.field("name", _TEXT),
        pa.field("rank", _ID),
        pa.field("peer_name", _TEXT),
        pa.field("arrival_ns", _TIME),
        *_columns("prompt_tokens max_new_tokens output_tokens cached_tokens", _COUNT),
        *_columns("first_scheduled_ns first_token_ns finish_ns", _TIME),
        _enum("finish_reason", "EOS STOP LENGTH ABORT"),
        *_columns("retractions priority", _COUNT),
        *_columns("ignore_eos wants_logprobs has_embeds", _FLAG),
        pa.field("prefix_hashes", pa.list_(pa.uint64())),
    ]


def _kernels() -> list[pa.Field]:
    return [
        *_columns("forward_id rank", _ID),
        _enum("op", "QKV ATTENTION_EXTEND ATTENTION_DECODE O GATE_UP DOWN HEAD NORM COPY COLLECTIVE OTHER"),
        pa.field("layer", _ID),
        pa.field("name", _TEXT),
        *_columns("stream correlation", _ID),
        *_columns("start_ns end_ns", _TIME),
        *_columns("tokens flops bytes", _COUNT),
    ]


def _events() -> list[pa.Field]:
    return [
        pa.field("t_ns", _TIME),
        *_columns("rank forward_id rid attempt", _ID),
        _enum(
            "kind",
            "ARRIVE ADMIT HIT TRUNCATE CHECKPOINT EVICT SIT_OUT DEFER PREEMPT RETRACT REQUEUE ABORT SEND_KV "
            "FINISH",
        ),
        *_columns("pages tokens bytes", _COUNT),
        *_columns("node peer_rid", _ID),
        pa.field("last", _FLAG),
        pa.field("detail", _TEXT),
    ]


def _pages() -> list[pa.Field]:
    return [
        *_columns("forward_id rank first_page", _ID),
        pa.field("num_pages", _SMALL_COUNT),
        _enum("owner", "FREE ROW TREE"),
        *_columns("rid node", _ID),
        *_columns("locked keyframe", _FLAG),
    ]


TABLES: Mapping[str, pa.Schema] = MappingProxyType(
    {
        "forwards": pa.schema(_forwards()),
        "rows": pa.schema(_rows()),
        "requests": pa.schema(_requests()),
        "kernels": pa.schema(_kernels()),
        "events": pa.schema(_events()),
        "pages": pa.schema(_pages()),
    }
)
"""Schema of each table, in the order in which tables are written and shown."""


def enum_names(table: str, column: str) -> tuple[str, ...]:
    """Names of an enum column's codes 0, 1, ...; TraceError if the column is no enum."""
    metadata = TABLES[table].field(column).metadata if column in TABLES[table].names else None
    if not metadata or b"enum" not in metadata:
        raise TraceError(f"{table}.{column} is no enum column")
    return tuple(json.loads(metadata[b"enum"]))


def enum_code(table: str, column: str, name: str) -> int:
    """Code of one name of an enum column; TraceError if it has no such name."""
    names = enum_names(table, column)
    if name not in names:
        raise TraceError(f"{table}.{column} has no {name!r}: give one of {', '.join(names)}")
    return names.index(name)
