"""The time to first token, kind by kind, on traces made by hand."""

from typing import Any

import pytest

from engine.arithmetic import ForwardSums
from engine.batch import ForwardMode, Role, StopReason
from engine.observer import EventKind
from profiler.culprits import Culprit
from profiler.ledger.ttft import ttft_ledger
from profiler.ledger.ttft_parts import BlockedBehind, TtftCost, TtftKind, TtftLedger
from profiler.ledger.ttft_source import TtftSource
from profiler.ledger.ttft_totals import sum_ttft, ttft_totals
from tests.support.traces import MemoryTrace, Record, decode_row, event, extend_row, request

EXTEND, DECODE, MIXED = ForwardMode.EXTEND, ForwardMode.DECODE, ForwardMode.MIXED
OTHER, ME, THIRD = range(3)


def forward(
    forward_id: int, at_ns: int, device_ns: int, mode: ForwardMode, why: StopReason | None = None, **more: Any
) -> dict[str, Any]:
    """A round of the plain loop: planning takes 4 ns, launching 2, then the device, then the result 3."""
    end_ns = at_ns + 6 + device_ns
    return {
        "forward_id": forward_id,
        "rank": 0,
        "mode": mode.value,
        "plan_start_ns": at_ns,
        "plan_end_ns": at_ns + 4,
        "launch_start_ns": at_ns + 4,
        "launch_end_ns": at_ns + 6,
        "start_ns": at_ns + 6,
        "end_ns": end_ns,
        "result_start_ns": end_ns,
        "result_end_ns": end_ns + 3,
        "stop_reason": None if why is None else why.value,
        **more,
    }


def trace(
    forwards: list[dict[str, Any]], rows: list[Record], arrival_ns: int = 0, events: tuple[Record, ...] = ()
) -> MemoryTrace:
    """ "me" arrives at `arrival_ns`, the two others at 0."""
    requests = [request(OTHER, name="other"), request(ME, arrival_ns, "me"), request(THIRD, name="third")]
    return MemoryTrace({"forwards": forwards, "rows": rows, "requests": requests, "events": events})


def ledger(made: MemoryTrace, rid: int = ME) -> TtftLedger:
    found = ttft_ledger(made, rid)
    assert found is not None
    assert sum(part.part_ns for part in found.parts) == found.ttft_ns
    return found


def lines(found: TtftLedger) -> list[tuple[str, int, int | None, str | None]]:
    """kind, time, forward and whom it is charged to."""
    return [
        (part.kind.name, part.part_ns, part.forward_id, part.chunk.name if part.chunk else None)
        for part in found.parts
    ]


def test_alone_it_pays_for_its_own_chunk_and_the_host() -> None:
    made = trace([forward(0, 10, 100, EXTEND, StopReason.QUEUE_EMPTY)], [extend_row(0, ME, 5, 0)], 10)
    assert lines(ledger(made)) == [
        ("OWN_CHUNKS", 100, 0, None),
        ("PLAN", 4, None, None),
        ("LAUNCH", 2, None, None),
        ("RESULT", 3, None, None),
    ]


def test_before_the_first_round_it_is_queued_for_what_the_device_is_at() -> None:
    forwards = [
        forward(0, 0, 100, EXTEND, StopReason.QUEUE_EMPTY),
        forward(1, 120, 10, EXTEND, StopReason.QUEUE_EMPTY),
    ]
    rows = [extend_row(0, OTHER, 30, 0), extend_row(0, THIRD, 10, 0), extend_row(1, ME, 5, 0)]
    assert lines(ledger(trace(forwards, rows, 26))) == [
        ("QUEUED", 60, 0, "other"),
        ("QUEUED", 20, 0, "third"),
        ("QUEUED", 3, None, None),
        ("IDLE", 11, None, None),
        ("OWN_CHUNKS", 10, 1, None),
        ("PLAN", 4, None, None),
        ("LAUNCH", 2, None, None),
        ("RESULT", 3, None, None),
    ]


def test_a_round_that_gave_the_budget_to_others_blocked_it() -> None:
    forwards = [
        forward(0, 0, 100, EXTEND, StopReason.CHUNK, blocked_rid=THIRD),
        forward(1, 109, 50, EXTEND, StopReason.TOTAL, blocked_rid=ME),
        forward(2, 170, 10, EXTEND, StopReason.QUEUE_EMPTY),
    ]
    rows = [extend_row(0, OTHER, 64, 0), extend_row(1, THIRD, 30, 0), extend_row(1, OTHER, 10)]
    found = ledger(trace(forwards, [*rows, extend_row(2, ME, 5, 0)]))
    blocked = [part for part in found.parts if part.kind is TtftKind.BLOCKED]
    assert [
        (part.part_ns, part.forward_id, part.budget, part.behind_name, part.chunk and part.chunk.name)
        for part in blocked
    ] == [
        (109, 0, StopReason.CHUNK, "third", "other"),
        (15, 1, StopReason.TOTAL, None, "other"),  # a quarter of 61 ns, and of equal rests the first
        (46, 1, StopReason.TOTAL, None, "third"),
    ]
    assert found.holders == (Culprit(OTHER, "other", 124), Culprit(THIRD, "third", 46))
    assert found.sum_ns([TtftKind.IDLE]) == 0  # a round that said why blocks until the next one


def test_a_decode_round_that_admitted_nobody_blocks_it_while_the_rank_is_at_work() -> None:
    forwards = [
        forward(0, 0, 100, DECODE),
        forward(1, 130, 10, EXTEND, StopReason.QUEUE_EMPTY),
    ]
    rows = [decode_row(0, OTHER, 4), extend_row(1, ME, 5, 0)]
    found = ledger(trace(forwards, rows))
    assert lines(found)[:2] == [("BLOCKED", 109, 0, None), ("IDLE", 21, None, None)]
    assert found.parts[0].budget is None
    assert found.parts[0].behind_rid is None


def test_a_round_with_an_empty_queue_did_not_know_of_it() -> None:
    forwards = [
        forward(0, 10, 20, EXTEND, StopReason.QUEUE_EMPTY),
        forward(1, 39, 10, EXTEND, StopReason.QUEUE_EMPTY),
    ]
    rows = [extend_row(0, OTHER, 30, 0), extend_row(1, ME, 5, 0)]
    assert lines(ledger(trace(forwards, rows, 9)))[:3] == [
        ("QUEUED", 20, 0, "other"),
        ("QUEUED", 9, None, None),
        ("IDLE", 1, None, None),
    ]


def test_the_interval_defers_it_in_the_queue_and_between_its_chunks() -> None:
    forwards = [
        forward(0, 0, 20, DECODE, StopReason.INTERVAL, blocked_rid=ME),
        forward(1, 29, 30, EXTEND, StopReason.CHUNK, blocked_rid=THIRD),
        forward(2, 68, 40, DECODE, StopReason.INTERVAL, blocked_rid=ME),
        forward(3, 117, 50, DECODE, StopReason.INTERVAL, blocked_rid=THIRD),
        forward(4, 176, 60, EXTEND, StopReason.QUEUE_EMPTY),
    ]
    rows = [
        *(decode_row(i, OTHER, i) for i in (0, 2, 3)),
        extend_row(1, ME, 8, role=Role.FIRST),
        extend_row(4, ME, 8, 0, role=Role.LAST, prefix_len=8),
    ]
    events = tuple(event(at, ME, EventKind.DEFER, forward_id=i) for i, at in ((0, 1), (2, 69)))
    assert lines(ledger(trace(forwards, rows, 0, events))) == [
        ("DEFERRED", 29, 0, None),
        ("OWN_CHUNKS", 30, 1, None),
        ("DEFERRED", 40, 2, None),
        ("OTHERS_DECODE", 50, 3, None),
        ("OWN_CHUNKS", 60, 4, None),
        ("PLAN", 16, None, None),
        ("LAUNCH", 8, None, None),
        ("RESULT", 12, None, None),
    ]


def test_others_take_shares_of_its_forwards_and_forwards_of_their_own() -> None:
    forwards = [
        forward(0, 0, 10, EXTEND, StopReason.QUEUE_EMPTY),
        forward(1, 19, 7, EXTEND, StopReason.QUEUE_EMPTY),
        forward(2, 35, 11, MIXED, StopReason.QUEUE_EMPTY),
        forward(3, 55, 20, MIXED, StopReason.QUEUE_EMPTY),
    ]
    rows = [
        extend_row(0, ME, 3, role=Role.FIRST),
        extend_row(0, THIRD, 1, role=Role.FIRST),
        extend_row(1, THIRD, 9, 0, role=Role.LAST),
        extend_row(2, OTHER, 9, 0),
        decode_row(2, THIRD, 1),
        extend_row(3, ME, 3, 0, role=Role.LAST, prefix_len=3),
        decode_row(3, THIRD, 2),
    ]
    found = ledger(trace(forwards, rows))
    assert lines(found)[:5] == [
        ("OWN_CHUNKS", 8, 0, None),  # 7.5 each way: the lower rid first
        ("OTHERS_PREFILL", 2, 0, "third"),
        ("OTHERS_PREFILL", 7, 1, "third"),
        ("OTHERS_MIXED", 11, 2, "other"),
        ("OWN_CHUNKS", 20, 3, None),
    ]
    chunk = found.parts[2].chunk
    assert chunk is not None
    assert (chunk.number, chunk.of, chunk.forward_id, chunk.in_gap_ns) == (2, 2, 1, 7)
    assert found.culprits == (Culprit(OTHER, "other", 11), Culprit(THIRD, "third", 9))


def test_a_forward_launched_ahead_of_the_first_tokens_result_is_its_own_decode() -> None:
    forwards = [
        forward(0, 0, 100, EXTEND, StopReason.QUEUE_EMPTY, result_start_ns=120, result_end_ns=130),
        forward(1, 50, 0, DECODE, start_ns=106, end_ns=126, result_start_ns=140, result_end_ns=141),
    ]
    rows = [extend_row(0, ME, 5, 0), decode_row(1, ME, 1)]
    assert lines(ledger(trace(forwards, rows))) == [
        ("OWN_CHUNKS", 100, 0, None),
        ("OWN_DECODE", 20, 1, None),
        ("PLAN", 4, None, None),
        ("LAUNCH", 2, None, None),
        ("RESULT", 4, None, None),
    ]


def test_between_giving_its_kv_back_and_its_next_chunk_it_is_retracted() -> None:
    forwards = [
        forward(0, 0, 10, EXTEND, StopReason.CHUNK),
        forward(1, 19, 40, MIXED, StopReason.CHUNK),
        forward(2, 68, 20, DECODE),
        forward(3, 97, 30, EXTEND, StopReason.QUEUE_EMPTY),
    ]
    rows = [
        extend_row(0, ME, 4, role=Role.FIRST),
        extend_row(1, OTHER, 4, 0),
        decode_row(2, OTHER, 1),
        extend_row(3, ME, 9, 0, attempt=1),
    ]
    found = ledger(trace(forwards, rows, 0, (event(35, ME, EventKind.RETRACT, attempt=0),)))
    assert lines(found)[:5] == [
        ("OWN_CHUNKS", 10, 0, None),
        ("OTHERS_MIXED", 10, 1, "other"),
        ("RETRACTED", 30, 1, "other"),
        ("RETRACTED", 20, 2, None),
        ("OWN_CHUNKS", 30, 3, None),
    ]
    assert (
        ttft_totals(trace(forwards, rows, 0, (event(35, ME, EventKind.RETRACT, attempt=0),))).by_kind[
            TtftKind.RETRACTED
        ]
        == 50
    )


def test_what_a_trace_does_not_tell_is_not_guessed() -> None:
    forwards = [forward(0, 0, 100, EXTEND), forward(1, 109, 50, EXTEND)]
    rows = [extend_row(0, OTHER, 64, 0), extend_row(1, ME, 5, 0)]
    silent = trace(forwards, rows)
    assert lines(ledger(silent))[0] == ("UNTOLD", 109, 0, None)  # no round says what stopped it
    no_plans = [{**row, "plan_start_ns": None} for row in forwards]
    assert lines(ledger(trace(no_plans, rows)))[:2] == [
        ("UNTOLD", 115, None, None),  # until its chunk began to run
        ("OWN_CHUNKS", 50, 1, None),
    ]
    by_request = MemoryTrace({"requests": [request(ME, 7, first_token_ns=20), request(THIRD, 9)]})
    assert lines(ledger(by_request)) == [("UNTOLD", 13, None, None)]
    assert ttft_ledger(by_request, THIRD) is None
    assert ttft_ledger(trace(forwards, rows, 200), ME) is None  # its token came before it arrived
    assert ttft_ledger(MemoryTrace({}), ME) is None
    empty = ttft_totals(MemoryTrace({}))
    assert (empty.requests, empty.waiting_ns, empty.culprits, empty.worst) == (0, 0, (), ())


def test_each_rank_has_its_own_rounds_and_device() -> None:
    forwards = [
        forward(0, 0, 100, EXTEND, StopReason.CHUNK, blocked_rid=ME),
        forward(1, 5, 10, EXTEND, StopReason.QUEUE_EMPTY, rank=1),
    ]
    rows = [extend_row(0, OTHER, 64, 0), extend_row(1, ME, 5, 0, rank=1)]
    found = lines(ledger(trace(forwards, rows)))
    assert found[:2] == [("IDLE", 5, None, None), ("OWN_CHUNKS", 10, 1, None)]


class ByPrefix:
    """A cost model for which only the tokens of prefixes take time."""

    def seconds(self, sums: ForwardSums) -> float:
        return float(sums.prefix_tokens)

    def forward_ns(self, batch: Any) -> int:
        raise NotImplementedError


@pytest.mark.parametrize(("split", "own_ns"), [(None, 75), (("prefixes", ByPrefix()), 10)])
def test_a_shared_forward_goes_by_tokens_or_by_a_cost_model(split: Any, own_ns: int) -> None:
    sums = {"extend_tokens": 40, "decode_tokens": 0, "num_extend_seqs": 2, "num_decode_seqs": 0}
    sums |= {"pairs_prefix": 0, "pairs_causal": 0, "pairs_decode": 0, "prefix_tokens": 100, "kv_tokens": 140}
    forwards = [forward(0, 0, 100, EXTEND, StopReason.QUEUE_EMPTY, **sums)]
    rows = [extend_row(0, ME, 30, 0, prefix_len=10), extend_row(0, THIRD, 10, 0, prefix_len=90)]
    made = trace(forwards, rows)
    source = TtftSource.of(made, split)
    totals = sum_ttft(source)
    assert totals.split == ("tokens" if split is None else "prefixes")
    assert totals.by_kind[TtftKind.OWN_CHUNKS] == 100  # of both: their shares are the whole
    assert {cost.name: cost.cost_ns for cost in totals.culprits} == {"third": 100 - own_ns, "me": own_ns}


def test_totals_name_who_took_the_budget_who_stood_in_front_and_who_waited_longest() -> None:
    forwards = [
        forward(0, 0, 100, EXTEND, StopReason.CHUNK, blocked_rid=ME),
        forward(1, 109, 50, EXTEND, StopReason.MAX_REQUESTS, blocked_rid=THIRD),
        forward(2, 168, 10, EXTEND, StopReason.QUEUE_EMPTY),
    ]
    rows = [extend_row(0, OTHER, 64, 0), extend_row(1, ME, 5, 0), extend_row(2, THIRD, 5, 0)]
    totals = ttft_totals(trace(forwards, rows))
    assert (totals.requests, totals.waiting_ns) == (3, 109 + 168 + 187)
    assert totals.by_kind[TtftKind.BLOCKED] == 109 + 168
    assert totals.by_budget == {StopReason.CHUNK: 218, StopReason.MAX_REQUESTS: 59}
    assert totals.culprits == (TtftCost(OTHER, "other", 218, 218), TtftCost(ME, "me", 59, 59))
    assert totals.behind == (BlockedBehind(ME, "me", 109),)
    assert [(worst.name, worst.ttft_ns) for worst in totals.worst] == [
        ("third", 187),
        ("me", 168),
        ("other", 109),
    ]
    assert totals.worst[0].by_budget == {StopReason.CHUNK: 109, StopReason.MAX_REQUESTS: 59}
    top = ttft_totals(trace(forwards, rows), top=1)
    assert (len(top.worst), len(top.culprits), top.waiting_ns) == (1, 1, totals.waiting_ns)
