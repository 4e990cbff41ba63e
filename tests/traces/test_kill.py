import signal
import subprocess
import sys
from pathlib import Path

import pytest

from traces.reader import open_trace

ROOT = Path(__file__).parents[2]
ROWS = 500
_WRITER = f"""
import pathlib, sys
import numpy as np
from traces.writer import TraceWriter

writer = TraceWriter(pathlib.Path(sys.argv[1]), {{"provenance": "measured"}})
for number in range(100_000):
    rids = np.arange({ROWS}) + number * {ROWS}
    writer.append("rows", {{"forward_id": number, "rid": rids}}, {ROWS})
    writer.append("requests", {{"rid": [number], "name": [f"request {{number}}"]}}, 1)
    print(number, flush=True)
"""


@pytest.mark.parametrize("batches", [1, 30, 200])
def test_a_killed_writer_leaves_every_batch_that_it_handed_over(tmp_path: Path, batches: int) -> None:
    path = tmp_path / "t.chunkscope"
    child = subprocess.Popen(
        [sys.executable, "-c", _WRITER, str(path)], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    for _ in range(batches):
        child.stdout.readline()
    following = open_trace(path)
    assert following.live
    assert not following.sealed
    child.send_signal(signal.SIGKILL)
    printed = child.stdout.read().split()
    child.stdout.close()
    assert child.wait() == -signal.SIGKILL
    done = int(printed[-1]) + 1 if printed else batches

    following.poll()
    assert not following.live
    trace = open_trace(path)
    assert trace.sealed
    assert trace.meta["sealed"]["clean_end"] is False
    rids = trace.table("rows").column("rid").to_pylist()
    assert rids == list(range(len(rids)))
    assert len(rids) % ROWS == 0
    assert done <= len(rids) // ROWS <= done + 1
    requests = trace.table("requests")
    assert done <= requests.num_rows <= done + 1
    assert requests.column("name").to_pylist() == [f"request {number}" for number in range(requests.num_rows)]
    assert following.table("rows").equals(trace.table("rows"))
    assert following.table("requests").equals(requests)
