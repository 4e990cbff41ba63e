"""The whole engine on a model with random weights: decode against rows, and what recording costs."""

import tempfile
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.gpu.deadline import Deadline
from benchmarks.gpu.server import Both, Kept, Server
from benchmarks.gpu.setting import Setting
from engine.batch import ForwardMode
from engine.observer import ForwardRecord, NullObserver
from profiler.recorder import Recorder
from traces.writer import TraceWriter

__all__ = ["measure_batches", "measure_recorder"]

SETTLE = 4  # decode forwards at the beginning of a batch that do not count: a graph may be captured there


def measure_batches(setting: Setting, deadline: Deadline) -> list[dict[str, Any]]:
    """Rows that decode together, planning overlapped; throughput by the time from result to result."""
    server = Server(setting, max(setting.batches), setting.prompt_tokens, setting.new_tokens)
    points = []
    fitting = [rows for rows in setting.batches if rows <= server.max_rows]
    too_many = [rows for rows in setting.batches if rows not in fitting]
    deadline.left_out += [f"{rows} rows, whose KV does not fit in memory" for rows in too_many]
    for rows in deadline.within(fitting):
        kept = Kept()
        server.serve(rows, kept)
        points.append(_batch_point(rows, kept.records))
    return points


def _batch_point(rows: int, records: list[ForwardRecord]) -> dict[str, Any]:
    decoding = [r for r in records if r.batch.mode is ForwardMode.DECODE and r.batch.num_rows == rows]
    counted = decoding[SETTLE:]
    step_ns = _step_ns(counted)
    return {
        "rows": rows,
        "seq_len": round(float(sum(r.batch.seq_lens.mean() for r in counted)) / len(counted)),
        "forwards": len(counted),
        "graph": counted[0].result.graph.name,
        "padded_rows": counted[0].result.padded_rows,
        "device_ns": median(r.result.end_ns - r.result.start_ns for r in counted),
        "step_ns": step_ns,
        "plan_ns": median(r.launch_end_ns - r.plan_start_ns for r in counted),
        "tokens_per_s": rows / step_ns * 1e9,
    }


def _step_ns(decoding: Sequence[ForwardRecord]) -> float:
    ends = [record.result_end_ns for record in decoding]
    return median(later - earlier for earlier, later in pairwise(ends))


def measure_recorder(setting: Setting, deadline: Deadline) -> dict[str, Any]:
    """The same requests with recording on and off in turns; what it costs a decode step and a whole run."""
    server = Server(setting, setting.recorder_rows, setting.prompt_tokens // 4, 2 * setting.new_tokens)
    rows = server.max_rows
    server.serve(rows, NullObserver())
    rounds = []
    for turn in deadline.within(range(setting.recorder_rounds)):
        order = (False, True) if turn % 2 else (True, False)
        times = {recording: _round(server, rows, recording=recording) for recording in order}
        rounds.append({"on": times[True], "off": times[False]})
    overheads = {
        key: median(r["on"][key] / r["off"][key] - 1 for r in rounds) for key in ("step_ns", "run_ns")
    }
    return {"rows": rows, "rounds": rounds, "overhead": overheads}


def _round(server: Server, rows: int, *, recording: bool) -> dict[str, float]:
    kept = Kept()
    start_ns = server.clock.now_ns()
    if recording:
        with tempfile.TemporaryDirectory() as directory:
            writer = TraceWriter(Path(directory) / "t.chunkscope", {"provenance": "measured"})
            loaded = server.loaded
            size = loaded.dtype.itemsize
            recorder = Recorder(writer, loaded.shape, clock=server.clock, element_bytes=size)
            server.serve(rows, Both(recorder, kept))
            run_ns = server.clock.now_ns() - start_ns  # what closing takes does not slow forwards down
            recorder.close()
    else:
        server.serve(rows, kept)
        run_ns = server.clock.now_ns() - start_ns
    decoding = [r for r in kept.records if r.batch.mode is ForwardMode.DECODE and r.batch.num_rows == rows]
    return {"step_ns": _step_ns(decoding[SETTLE:]), "run_ns": run_ns}
