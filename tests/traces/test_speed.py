import time
from pathlib import Path

import numpy as np

from traces.reader import open_trace
from traces.writer import TraceWriter


def test_a_million_rows_open_quickly(tmp_path: Path) -> None:
    rows, part = 1_000_000, 40_000
    with TraceWriter(tmp_path / "t.chunkscope", {}) as writer:
        for start in range(0, rows, part):
            ids = np.arange(start, start + part)
            writer.append("rows", {"forward_id": ids // 256, "rid": ids % 300, "seq_len": ids % 4096}, part)
    began = time.perf_counter()
    trace = open_trace(writer.path)
    opened = time.perf_counter()
    some = trace.read_forwards("rows", 2000, 2001)
    ranged = time.perf_counter()
    whole = trace.table("rows")
    ended = time.perf_counter()
    print(f"open {opened - began:.4f} s, two forwards {ranged - opened:.4f} s, all {ended - ranged:.4f} s")
    assert some.num_rows == 512
    assert whole.num_rows == rows
