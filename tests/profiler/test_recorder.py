"""The recorder: unknown stays unknown, and all is written in good time."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from engine.batch import ForwardBatch, ForwardMode, Outcome, Role
from engine.executors.protocol import ForwardResult
from engine.observer import Event, EventKind, ForwardRecord, PlanRecord, PoolState
from engine.request import FinishReason, Request
from profiler.recorder import FLUSH_NS, KEYFRAME_FORWARDS, Recorder
from tests.support.recorded import TickClock, rows_of
from traces.reader import open_trace
from traces.writer import TraceWriter

POOL = PoolState(total=10, free=4, evictable=3, protected=2, private=1)
MS = 1_000_000


class FakeWriter:
    """Keeps what it is given."""

    def __init__(self) -> None:
        self.appended: list[tuple[str, Mapping[str, Any], int]] = []
        self.meta: dict[str, Any] = {}
        self.sealed = False

    def append(self, table: str, columns: Mapping[str, Any], num_rows: int) -> None:
        self.appended.append((table, columns, num_rows))

    def update_meta(self, updates: Mapping[str, Any]) -> None:
        self.meta |= updates

    def close(self, meta_updates: Mapping[str, Any], *, clean_end: bool) -> None:
        assert clean_end
        self.meta |= meta_updates
        self.sealed = True

    def tables(self) -> list[str]:
        return [table for table, _, _ in self.appended]

    def count(self, table: str) -> int:
        return sum(rows for name, _, rows in self.appended if name == table)


def decode_forward(forward_id: int, rows: int = 2, end_ns: int = 0) -> ForwardRecord:
    """A decode forward of requests 0, 1, ... that tells nothing optional."""
    batch = ForwardBatch(
        forward_id=forward_id,
        mode=ForwardMode.DECODE,
        requests=[Request(rid, f"r{rid}", [1, 2, 3]) for rid in range(rows)],
        num_extend_seqs=0,
        page_size=4,
        rids=np.arange(rows, dtype=np.int32),
        attempts=np.zeros(rows, dtype=np.int32),
        roles=np.full(rows, Role.DECODE, dtype=np.uint8),
        prefix_lens=np.full(rows, 8, dtype=np.int32),
        extend_lens=np.ones(rows, dtype=np.int32),
        cached_tokens=np.zeros(rows, dtype=np.int32),
        input_ids=np.ones(rows, dtype=np.int32),
        pages=[],
    )
    return ForwardRecord(
        batch=batch,
        plan=PlanRecord(POOL, rows, 0, 0, 0, 0.5),
        result=ForwardResult([1] * rows, end_ns, end_ns),
        plan_start_ns=end_ns,
        plan_end_ns=end_ns,
        launch_start_ns=end_ns,
        launch_end_ns=end_ns,
        result_start_ns=end_ns,
        result_end_ns=end_ns,
        overlapped=False,
        outcomes=np.full(rows, Outcome.EMITTED, dtype=np.uint8),
        token_index=np.arange(rows, dtype=np.int32),
        inflight_after_result=np.zeros(rows, dtype=np.uint8),
    )


def fake_recorder(**options: bool) -> tuple[FakeWriter, Recorder]:
    writer = FakeWriter()
    return writer, Recorder(writer, None, clock=TickClock(), **options)


def test_what_nobody_told_is_null_and_missing(tmp_path: Path) -> None:
    path = tmp_path / "t.chunkscope"
    recorder = Recorder(TraceWriter(path, {}), None, clock=TickClock())
    recorder.on_forward(decode_forward(0))
    recorder.close()
    trace = open_trace(path)
    forward, row = rows_of(trace, "forwards")[0], rows_of(trace, "rows")[0]
    states = trace.meta["columns"]
    for name in (
        "flops_linear",
        "bytes_kv_read",
        "activation_est_bytes",
        "memory_peak_bytes",
        "clock_error_ns",
    ):
        assert (forward[name], states["forwards"][name]) == (None, "missing")
    for name in ("private_pages", "inflight_after_plan"):
        assert (row[name], states["rows"][name]) == (None, "missing")
    assert forward["total_budget_start_tokens"] is None
    assert states["forwards"]["total_budget_start_tokens"] == "measured"
    assert trace.meta["pool_at_end"] is None


def test_a_column_told_later_is_measured_from_then_on(tmp_path: Path) -> None:
    path = tmp_path / "t.chunkscope"
    recorder = Recorder(TraceWriter(path, {}), None, clock=TickClock())
    recorder.on_forward(decode_forward(0))
    later = decode_forward(1, end_ns=2 * FLUSH_NS)
    later.result.memory_peak_bytes = 77
    later.plan.private_pages = np.array([3, 1], dtype=np.int32)
    recorder.on_forward(later)
    assert open_trace(path).meta["columns"]["forwards"]["memory_peak_bytes"] == "measured"
    recorder.close()
    trace = open_trace(path)
    assert [row["memory_peak_bytes"] for row in rows_of(trace, "forwards")] == [None, 77]
    assert [row["private_pages"] for row in rows_of(trace, "rows")] == [None, None, 3, 1]
    assert trace.meta["columns"]["rows"]["private_pages"] == "measured"


def test_a_counter_below_zero_stays_one(tmp_path: Path) -> None:
    path = tmp_path / "t.chunkscope"
    recorder = Recorder(TraceWriter(path, {}), None, clock=TickClock())
    record = decode_forward(0, rows=1)
    record.inflight_after_result = np.array([-1], dtype=np.int64).astype(np.uint8)
    recorder.on_forward(record)
    recorder.close()
    assert rows_of(open_trace(path), "rows")[0]["inflight_after_result"] == -1


def test_simulated_times_are_derived() -> None:
    writer, _ = fake_recorder(simulated=True)
    states = writer.meta["columns"]["forwards"]
    assert (states["start_ns"], states["result_end_ns"], states["mode"]) == ("derived", "derived", "measured")
    measured_times = [
        f"{table}.{name}"
        for table, columns in writer.meta["columns"].items()
        for name, state in columns.items()
        if name.endswith("_ns") and state == "measured"
    ]
    assert measured_times == ["requests.arrival_ns"], "only the workload says when requests arrive"


def test_pages_are_left_out_on_request() -> None:
    writer, recorder = fake_recorder(record_pages=False)
    recorder.on_forward(decode_forward(0))
    recorder.close()
    assert "pages" not in writer.tables()
    assert set(writer.meta["columns"]["pages"].values()) == {"missing"}


def test_nothing_is_written_before_250_ms_or_16384_rows() -> None:
    writer, recorder = fake_recorder()
    for forward_id in range(63):
        recorder.on_forward(decode_forward(forward_id, rows=256, end_ns=forward_id))
    assert writer.appended == []
    recorder.on_forward(decode_forward(63, rows=256, end_ns=63))
    assert writer.tables() == ["rows"]
    assert writer.count("rows") == 16384


def test_250_ms_of_the_runs_time_after_the_last_flush_all_is_written() -> None:
    writer, recorder = fake_recorder()
    start_ns = 1_000  # the clock's first look
    for forward_id, end_ns in enumerate([start_ns, 100 * MS, start_ns + FLUSH_NS]):
        assert writer.appended == []
        recorder.on_forward(decode_forward(forward_id, end_ns=end_ns))
    assert writer.count("forwards") == 3
    recorder.on_forward(decode_forward(3, end_ns=start_ns + 2 * FLUSH_NS - 1))
    assert writer.count("forwards") == 3
    recorder.on_events([Event(start_ns + 2 * FLUSH_NS, EventKind.DEFER)])
    assert (writer.count("forwards"), writer.count("events")) == (4, 1)


def test_forwards_have_the_sums_of_rows_written_before_them(tmp_path: Path) -> None:
    path = tmp_path / "t.chunkscope"
    recorder = Recorder(TraceWriter(path, {}), None, clock=TickClock())
    sizes = [12_000, 8_000, 5, 16_384, 1]
    for forward_id, rows in enumerate(sizes):
        recorder.on_forward(decode_forward(forward_id, rows=rows))
    recorder.close()
    trace = open_trace(path)
    assert [row["kv_tokens"] for row in rows_of(trace, "forwards")] == [9 * rows for rows in sizes]
    assert [row["num_decode_seqs"] for row in rows_of(trace, "forwards")] == sizes
    assert len(rows_of(trace, "rows")) == sum(sizes)


def test_no_claim_is_written_before_what_it_rests_on() -> None:
    writer, recorder = fake_recorder()
    recorder.on_request(Request(0, "a", [1, 2, 3]))
    recorder.on_request(Request(1, "b", [1, 2, 3]))
    recorder.on_forward(decode_forward(0, end_ns=2 * FLUSH_NS))
    tables = writer.tables()
    assert tables.index("rows") < tables.index("forwards") < tables.index("requests")


def test_close_writes_the_rest_and_seals_once() -> None:
    writer, recorder = fake_recorder()
    recorder.on_forward(decode_forward(0))
    recorder.close(POOL)
    assert (writer.count("forwards"), writer.sealed) == (1, True)
    assert writer.meta["pool_at_end"] == {
        "total": 10,
        "free": 4,
        "evictable": 3,
        "protected": 2,
        "private": 1,
    }
    writer.sealed = False
    recorder.close()
    assert not writer.sealed


def test_a_growing_trace_can_be_read(tmp_path: Path) -> None:
    path = tmp_path / "t.chunkscope"
    recorder = Recorder(TraceWriter(path, {}), None, clock=TickClock())
    recorder.on_request(Request(0, "in flight", [1, 2, 3]))
    recorder.on_forward(decode_forward(0, end_ns=2 * FLUSH_NS))
    trace = open_trace(path)
    assert (len(rows_of(trace, "forwards")), rows_of(trace, "requests")[0]["name"]) == (1, "in flight")
    recorder.on_forward(decode_forward(1, end_ns=2 * FLUSH_NS + 1))
    assert not trace.poll()
    recorder.on_forward(decode_forward(2, end_ns=4 * FLUSH_NS))
    assert trace.poll()
    assert [row["forward_id"] for row in rows_of(trace, "forwards")] == [0, 1, 2]
    recorder.close()


def test_a_request_is_told_at_arrival_first_token_and_end(tmp_path: Path) -> None:
    writer, recorder = fake_recorder()
    request = Request(4, "a", list(range(130)))
    recorder.on_request(request)
    request.tokens.append(3)
    request.first_token_ns = 50
    recorder.on_request(request)
    request.tokens.append(4)
    request.finish_reason, request.finish_ns = FinishReason.STOP, 60
    recorder.on_request(request)
    recorder.close()
    ((_, columns, count),) = [entry for entry in writer.appended if entry[0] == "requests"]
    assert count == 3
    assert columns["output_tokens"].to_pylist() == [0, 1, 2]
    assert columns["first_token_ns"].to_pylist() == [None, 50, 50]
    assert columns["finish_reason"].to_pylist() == [None, None, FinishReason.STOP]
    assert [len(hashes) for hashes in columns["prefix_hashes"]] == [2, 2, 2]


def test_the_first_forward_and_each_1024th_after_it_have_every_pages_owner() -> None:
    writer, recorder = fake_recorder()
    for forward_id in range(KEYFRAME_FORWARDS + 2):
        recorder.on_forward(decode_forward(forward_id, rows=1))
    recorder.close()
    frames = [columns for table, columns, _ in writer.appended if table == "pages"]
    found = [
        (int(f), int(n))
        for c in frames
        for f, n, k in zip(c["forward_id"], c["num_pages"], c["keyframe"], strict=True)
        if k
    ]
    assert found == [(0, POOL.total), (KEYFRAME_FORWARDS, POOL.total)]


def test_clocks_are_compared_at_start_each_minute_and_end() -> None:
    writer, recorder = fake_recorder()
    assert len(writer.meta["clock_anchors"]) == 1
    minute = 60_000 * MS
    for second in range(1, 125):
        recorder.on_forward(decode_forward(second, end_ns=second * 1_000 * MS))
        expected = 1 + (second * 1_000 * MS > minute) + (second * 1_000 * MS > 2 * minute)
        assert len(writer.meta["clock_anchors"]) == expected, second
    recorder.close()
    anchors = writer.meta["clock_anchors"]
    assert len(anchors) == 4
    assert all(anchor.keys() == {"rank", "run_ns", "monotonic_ns", "wall_ns"} for anchor in anchors)
    for name in ("run_ns", "monotonic_ns", "wall_ns"):
        assert [a[name] for a in anchors] == sorted(a[name] for a in anchors)
