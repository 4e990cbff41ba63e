"""A recorded run: its trace says what the engine told, no more and no less."""

from collections.abc import Iterator
from typing import Any

import pytest

from engine.arithmetic import activation_estimate_bytes, forward_cost, forward_sums
from engine.batch import ForwardMode, Role
from engine.config import EngineConfig
from engine.observer import Event, EventKind, ForwardRecord
from engine.request import FinishReason, SamplingParams
from tests.support.recorded import TINY, Kept, record_run, rows_of
from tests.support.workloads import Arrival
from traces.reader import Trace
from traces.schema import TABLES


@pytest.fixture(scope="module", params=[False, True], ids=["overlapped", "plain"])
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Trace, Kept]:
    """A run in a pool too small for it: chunks, mixed forwards, hits, retractions, an abort."""
    config = EngineConfig(
        chunked_prefill_size=16,
        page_size=2,
        max_total_tokens=160,
        enable_mixed_chunk=True,
        schedule_conservativeness=0.01,
        max_running_requests=8,
        disable_overlap_schedule=request.param,
    ).resolve(max_total_tokens=160, context_length=1000)
    sampling = SamplingParams(max_new_tokens=40)
    todo = [
        Arrival(at * 3, tuple([7] * 20 + [at * 5 + i for i in range(10 * at)]), sampling) for at in range(5)
    ]
    todo.append(Arrival(2, (9,) * 70, sampling, abort_after=40))
    return record_run(tmp_path_factory.mktemp("run") / "t.chunkscope", config, todo)


def test_the_run_has_what_the_tests_below_need(run: tuple[Trace, Kept]) -> None:
    _, kept = run
    assert {record.batch.mode for record in kept.records} == set(ForwardMode)
    assert {role for record in kept.records for role in record.batch.roles.tolist()} == set(Role)
    assert any(record.plan.retracted_reqs for record in kept.records)
    reasons = {request.finish_reason for request in kept.requests.values()}
    assert reasons >= {FinishReason.LENGTH, FinishReason.ABORT}


def test_each_row_is_as_told(run: tuple[Trace, Kept]) -> None:
    trace, kept = run
    assert rows_of(trace, "rows") == [row for record in kept.records for row in told_rows(record)]


def told_rows(record: ForwardRecord) -> Iterator[dict[str, Any]]:
    batch, plan = record.batch, record.plan
    assert plan.inflight_after_plan is not None
    assert plan.private_pages is not None
    for i in range(batch.num_rows):
        seq_len = int(batch.prefix_lens[i] + batch.extend_lens[i])
        yield {
            "forward_id": batch.forward_id,
            "rank": 0,
            "rid": batch.requests[i].rid,
            "attempt": batch.attempts[i],
            "role": batch.roles[i],
            "prefix_len": batch.prefix_lens[i],
            "extend_len": batch.extend_lens[i],
            "seq_len": seq_len,
            "cached_tokens": batch.cached_tokens[i],
            "inflight_after_plan": plan.inflight_after_plan[i],
            "inflight_after_result": record.inflight_after_result[i],
            "kv_pages": -(-seq_len // batch.page_size),
            "private_pages": plan.private_pages[i],
            "outcome": record.outcomes[i],
            "token_index": None if record.token_index[i] < 0 else record.token_index[i],
        }


def test_each_forward_is_as_told(run: tuple[Trace, Kept]) -> None:
    trace, kept = run
    forwards = rows_of(trace, "forwards")
    assert len(forwards) == len(kept.records)
    for found, record in zip(forwards, kept.records, strict=True):
        expected = told_forward(record)
        assert {name: found[name] for name in expected} == expected
        derived = {"flops_linear", "flops_attention_extend", "flops_attention_decode", "flops_head"}
        derived |= {"bytes_weights", "bytes_kv_read", "bytes_kv_write", "bytes_activation"}
        assert found.keys() - expected.keys() == derived | {"activation_est_bytes"}


def told_forward(record: ForwardRecord) -> dict[str, Any]:
    batch, plan, result, pool = record.batch, record.plan, record.result, record.plan.pool
    sums = forward_sums(batch)
    budgets = {
        f"{name}_budget_{edge}_tokens": None if budget is None else getattr(budget, name)
        for edge, budget in (("start", plan.budget_start), ("end", plan.budget_end))
        for name in ("total", "current", "input", "chunk")
    }
    return {
        "forward_id": batch.forward_id,
        "rank": 0,
        "step": batch.forward_id,
        "mode": batch.mode,
        "plan_start_ns": record.plan_start_ns,
        "plan_end_ns": record.plan_end_ns,
        "launch_start_ns": record.launch_start_ns,
        "launch_end_ns": record.launch_end_ns,
        "start_ns": result.start_ns,
        "end_ns": result.end_ns,
        "result_start_ns": record.result_start_ns,
        "result_end_ns": record.result_end_ns,
        "clock_error_ns": None,
        "overlapped": record.overlapped,
        "num_extend_seqs": batch.num_extend_seqs,
        "num_decode_seqs": batch.num_rows - batch.num_extend_seqs,
        "extend_tokens": sums.extend_tokens,
        "decode_tokens": sums.decode_tokens,
        "prefix_tokens": sums.prefix_tokens,
        "kv_tokens": sums.kv_tokens,
        "pairs_prefix": sums.pairs_prefix,
        "pairs_causal": sums.pairs_causal,
        "pairs_decode": sums.pairs_decode,
        "running_reqs": plan.running_reqs,
        "absent_decode_reqs": plan.absent_decode_reqs,
        "waiting_reqs": plan.waiting_reqs,
        "pending_tokens": plan.pending_tokens,
        **budgets,
        "mixed_deducted_tokens": plan.mixed_deducted_tokens,
        "new_token_ratio": plan.new_token_ratio,
        "stop_reason": plan.stop_reason,
        "blocked_rid": plan.blocked_rid,
        "pages_total": pool.total,
        "pages_free": pool.free,
        "pages_evictable": pool.evictable,
        "pages_protected": pool.protected,
        "pages_private": pool.private,
        "evicted_pages": plan.evicted_pages,
        "retracted_reqs": plan.retracted_reqs,
        "chunked_rid": plan.chunked_rid,
        "inflight_middle_chunks": plan.inflight_middle_chunks,
        "graph": 0,
        "padded_rows": 0,
        "memory_allocated_bytes": None,
        "memory_peak_bytes": None,
    }


def test_each_forward_costs_what_the_closed_forms_say(run: tuple[Trace, Kept]) -> None:
    trace, kept = run
    for found, record in zip(rows_of(trace, "forwards"), kept.records, strict=True):
        sums = forward_sums(record.batch)
        cost = forward_cost(TINY, sums, 2, 2)
        assert all(found[name] == getattr(cost, name) for name in cost.__dataclass_fields__)
        assert found["activation_est_bytes"] == activation_estimate_bytes(
            TINY, sums.tokens, sums.rows_with_logits, 2
        )


def test_each_request_is_as_it_ended(run: tuple[Trace, Kept]) -> None:
    trace, kept = run
    requests = rows_of(trace, "requests")
    assert [row["rid"] for row in requests] == sorted(kept.requests)
    for row in requests:
        request = kept.requests[row["rid"]]
        assert (row["name"], row["prompt_tokens"]) == (request.name, request.prompt_len)
        assert (row["output_tokens"], row["finish_reason"]) == (request.output_len, request.finish_reason)
        assert (row["cached_tokens"], row["retractions"]) == (request.cached_tokens, request.retractions)
        assert (row["arrival_ns"], row["finish_ns"]) == (request.arrival_ns, request.finish_ns)
        assert (row["first_scheduled_ns"], row["first_token_ns"]) == (
            request.first_scheduled_ns,
            request.first_token_ns,
        )
        assert (row["max_new_tokens"], row["ignore_eos"]) == (request.max_new_tokens, False)
        assert (row["priority"], row["peer_name"], row["wants_logprobs"]) == (0, None, False)
        assert len(row["prefix_hashes"]) == request.prompt_len // 64


def event_time(event: tuple[Any, ...]) -> int:
    assert isinstance(event[0], int)
    return event[0]


def test_each_event_is_as_told(run: tuple[Trace, Kept]) -> None:
    trace, kept = run
    names = Event._fields
    found = [tuple(row[name] for name in names) for row in rows_of(trace, "events")]
    assert found == sorted((tuple(event) for event in kept.events), key=event_time)
    assert {EventKind.HIT, EventKind.RETRACT, EventKind.ABORT} <= {event.kind for event in kept.events}


def test_extents_add_up_to_the_pages_told(run: tuple[Trace, Kept]) -> None:
    trace, kept = run
    told: dict[int, tuple[int, int | None, int | None, bool]] = {}
    found = dict(told)
    extents = iter(rows_of(trace, "pages"))
    extent = next(extents, None)
    for record in kept.records:
        for change in record.page_changes:
            rids = [None] * len(change.pages) if change.rids is None else change.rids.tolist()
            for page, rid in zip(change.pages, rids, strict=True):
                told[page] = (int(change.owner), rid, change.node, change.locked)
        while extent is not None and extent["forward_id"] == record.batch.forward_id:
            pages = range(extent["first_page"], extent["first_page"] + extent["num_pages"])
            state = tuple(extent[name] for name in ("owner", "rid", "node", "locked"))
            found |= dict.fromkeys(pages, state)
            extent = next(extents, None)
        assert {page: found[page] for page in told} == told
    assert extent is None


def test_meta_says_where_each_column_is_from(run: tuple[Trace, Kept]) -> None:
    states = run[0].meta["columns"]
    assert {table: set(columns) for table, columns in states.items()} == {
        table: set(schema.names) for table, schema in TABLES.items()
    }
    forwards = states["forwards"]
    assert (forwards["start_ns"], forwards["flops_head"]) == ("measured", "derived")
    assert forwards["memory_peak_bytes"] == "missing"
    assert states["rows"]["private_pages"] == states["rows"]["inflight_after_plan"] == "measured"
    assert set(states["kernels"].values()) == {"missing"}
    assert set(states["pages"].values()) == {"measured"}


def test_meta_says_how_the_pool_was_left(run: tuple[Trace, Kept]) -> None:
    trace, _ = run
    pool = trace.meta["pool_at_end"]
    assert (pool["total"], pool["protected"], pool["private"]) == (80, 0, 0)
    assert pool["free"] + pool["evictable"] == 80
