import json

import pyarrow as pa
import pytest

from traces.errors import TraceError
from traces.schema import SCHEMA_VERSION, TABLES, enum_code, enum_names

COLUMNS = {
    "forwards": """forward_id rank step mode plan_start_ns plan_end_ns launch_start_ns launch_end_ns start_ns
        end_ns result_start_ns result_end_ns clock_error_ns overlapped num_extend_seqs
        num_decode_seqs extend_tokens decode_tokens prefix_tokens kv_tokens pairs_prefix
        pairs_causal pairs_decode flops_linear flops_attention_extend flops_attention_decode
        flops_head bytes_weights bytes_kv_read bytes_kv_write bytes_activation running_reqs
        absent_decode_reqs waiting_reqs pending_tokens total_budget_start_tokens
        total_budget_end_tokens current_budget_start_tokens current_budget_end_tokens
        input_budget_start_tokens input_budget_end_tokens chunk_budget_start_tokens
        chunk_budget_end_tokens mixed_deducted_tokens new_token_ratio stop_reason blocked_rid
        pages_total pages_free pages_evictable pages_protected pages_private evicted_pages
        retracted_reqs chunked_rid inflight_middle_chunks graph padded_rows memory_allocated_bytes
        memory_peak_bytes activation_est_bytes""",
    "rows": """forward_id rank rid attempt role prefix_len extend_len seq_len cached_tokens
        inflight_after_plan inflight_after_result kv_pages private_pages outcome token_index""",
    "requests": """rid name rank peer_name arrival_ns prompt_tokens max_new_tokens output_tokens cached_tokens
        first_scheduled_ns first_token_ns finish_ns finish_reason retractions priority ignore_eos
        wants_logprobs has_embeds prefix_hashes""",
    "kernels": "forward_id rank op layer name stream correlation start_ns end_ns tokens flops bytes",
    "events": "t_ns rank forward_id rid attempt kind pages tokens bytes node peer_rid last detail",
    "pages": "forward_id rank first_page num_pages owner rid node locked keyframe",
}
ENUMS = {
    ("forwards", "mode"): "EXTEND DECODE MIXED",
    ("forwards", "stop_reason"): (
        "QUEUE_EMPTY TOTAL CURRENT INPUT CHUNK ALIGN SLOTS MAX_REQUESTS BATCH_FULL INTERVAL ORDER"
    ),
    ("forwards", "graph"): "NONE FULL PIECEWISE",
    ("rows", "role"): "WHOLE FIRST MIDDLE LAST DECODE",
    ("rows", "outcome"): "EMITTED MIDDLE_DROPPED FINISHED_DROPPED ABORTED RETRACTED",
    ("requests", "finish_reason"): "EOS STOP LENGTH ABORT",
    ("kernels", "op"): "QKV ATTENTION_EXTEND ATTENTION_DECODE O GATE_UP DOWN HEAD NORM COPY COLLECTIVE OTHER",
    ("events", "kind"): (
        "ARRIVE ADMIT HIT TRUNCATE CHECKPOINT EVICT SIT_OUT DEFER PREEMPT RETRACT REQUEUE ABORT SEND_KV "
        "FINISH"
    ),
    ("pages", "owner"): "FREE ROW TREE",
}
ALL_FIELDS = [(table, field) for table, schema in TABLES.items() for field in schema]


def test_tables_and_columns_are_those_of_the_contract() -> None:
    assert {table: schema.names for table, schema in TABLES.items()} == {
        table: columns.split() for table, columns in COLUMNS.items()
    }


def test_enums_carry_their_names_in_order() -> None:
    found = {(table, field.name): field.metadata for table, field in ALL_FIELDS if field.metadata}
    assert {key: json.loads(metadata[b"enum"]) for key, metadata in found.items()} == {
        key: names.split() for key, names in ENUMS.items()
    }
    assert {key: " ".join(enum_names(*key)) for key in ENUMS} == ENUMS


@pytest.mark.parametrize(("table", "field"), ALL_FIELDS, ids=lambda part: getattr(part, "name", part))
def test_types_follow_the_conventions(table: str, field: pa.Field) -> None:
    if field.metadata:
        assert field.type == pa.uint8()
    elif field.name.endswith("_ns"):
        assert field.type == pa.int64()
    elif field.name.endswith(("_id", "rid")) or field.name in ("rank", "attempt", "node", "first_page"):
        assert field.type == pa.uint32()
    elif pa.types.is_string(field.type):
        assert field.name in ("name", "peer_name", "detail")
    assert field.nullable
    assert not pa.types.is_dictionary(field.type)


def test_budgets_may_be_negative() -> None:
    budgets = [field.type for field in TABLES["forwards"] if "budget" in field.name]
    assert budgets == [pa.int64()] * 8


def test_enum_code_is_the_place_of_the_name() -> None:
    assert [enum_code("rows", "role", name) for name in enum_names("rows", "role")] == [0, 1, 2, 3, 4]
    with pytest.raises(TraceError, match=r"rows.role has no 'NONE': give one of WHOLE, FIRST"):
        enum_code("rows", "role", "NONE")
    with pytest.raises(TraceError, match=r"rows.rid is no enum"):
        enum_names("rows", "rid")


def test_version_has_a_major_and_a_minor_number() -> None:
    assert SCHEMA_VERSION == "1.0"
