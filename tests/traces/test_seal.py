import io
import json
import shutil
import subprocess
import sys
from itertools import count
from pathlib import Path

import pyarrow as pa
import pytest

from tests.support.trace_samples import (
    abandoned_trace,
    assert_tables,
    random_batches,
    sealed_trace,
    write_batches,
)
from traces.errors import TraceError
from traces.meta import read_meta, write_document
from traces.reader import open_trace
from traces.schema import TABLES
from traces.seal import SEALED_BATCH_ROWS, seal_if_abandoned
from traces.writer import TraceWriter

ROOT = Path(__file__).parents[2]


def test_an_abandoned_trace_is_sealed_when_first_opened(tmp_path: Path) -> None:
    batches = random_batches(1)
    path = abandoned_trace(tmp_path / "t.chunkscope", batches)
    meta = read_meta(path)
    trace = open_trace(path)
    assert trace.sealed
    assert trace.meta.pop("sealed")["clean_end"] is False
    assert trace.meta == meta
    assert_tables(trace, batches)
    assert sorted(file.name for file in path.rglob("*")) == sorted(
        ["meta.json", "seal.json", "rank-0", *(f"{table}.arrow" for table in TABLES)]
    )
    assert_tables(open_trace(path), batches)


def test_a_torn_tail_is_remembered(tmp_path: Path) -> None:
    path = abandoned_trace(tmp_path / "t.chunkscope", random_batches(1))
    for table, size in (("rows", 100), ("forwards", 5)):
        file = path / f"rank-0/{table}.arrow"
        file.write_bytes(file.read_bytes()[:-size])
    lost = 0
    for table in ("rows", "forwards"):
        whole = (path / f"rank-0/{table}.arrow").stat().st_size
        lost += whole - _end_of_batches(path / f"rank-0/{table}.arrow", 2)
    trace = open_trace(path)
    assert trace.sealed
    assert trace.torn_bytes == open_trace(path).torn_bytes == lost > 0
    batches = random_batches(1)
    assert_tables(trace, {**batches, "rows": batches["rows"][:2], "forwards": batches["forwards"][:2]})


def _end_of_batches(stream: Path, batches: int) -> int:
    file = io.BytesIO(stream.read_bytes())
    messages = pa.ipc.MessageReader.open_stream(file)
    for _ in range(batches + 1):
        messages.read_next_message()
    return file.tell()


def test_a_live_trace_is_left_alone(tmp_path: Path) -> None:
    with TraceWriter(tmp_path / "t.chunkscope", {}) as writer:
        writer.append("rows", {"rid": [1]}, 1)
        for _ in range(2):
            trace = open_trace(writer.path)
            assert (trace.sealed, trace.live) == (False, True)
        assert not seal_if_abandoned(writer.path, read_meta(writer.path))
        writer.append("rows", {"rid": [2]}, 1)
    assert open_trace(writer.path).table("rows").column("rid").to_pylist() == [1, 2]


def test_a_trace_of_another_machine_is_read_as_it_lies(tmp_path: Path) -> None:
    path = abandoned_trace(tmp_path / "t.chunkscope", random_batches(1))
    meta = read_meta(path)
    write_document(path / "meta.json", {**meta, "writer": {**meta["writer"], "boot_id": "another"}})
    before = {file: file.read_bytes() for file in path.rglob("*") if file.is_file()}
    trace = open_trace(path)
    assert not trace.sealed
    assert_tables(trace, random_batches(1))
    assert {file: file.read_bytes() for file in path.rglob("*") if file.is_file()} == before


def test_where_nothing_can_be_written_the_streams_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = abandoned_trace(tmp_path / "t.chunkscope", random_batches(1))
    before = {file: file.read_bytes() for file in path.rglob("*") if file.is_file()}

    def refuse(*_: object) -> None:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr("traces.seal.write_index", refuse)
    trace = open_trace(path)
    assert (trace.sealed, trace.live) == (False, False)
    assert_tables(trace, random_batches(1))
    assert {file: file.read_bytes() for file in path.rglob("*") if file.is_file()} == before


def test_a_writer_that_cannot_seal_leaves_what_it_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(28, "No space left on device")

    writer = TraceWriter(tmp_path / "t.chunkscope", {})
    write_batches(writer, random_batches(1))
    monkeypatch.setattr("traces.seal.write_index", refuse)
    with pytest.raises(
        TraceError, match="cannot be sealed: No space left on device; what was recorded is readable"
    ):
        writer.close({"end": 1})
    monkeypatch.undo()
    trace = open_trace(writer.path)
    assert trace.meta["end"] == 1
    assert_tables(trace, random_batches(1))


def test_sealed_batches_are_large_indexed_and_in_forward_order(tmp_path: Path) -> None:
    rows = SEALED_BATCH_ROWS * 2 + 10
    ids = [row // 7 for row in range(rows)]
    with TraceWriter(tmp_path / "t.chunkscope", {}) as writer:
        for start in range(0, rows, 40_000):
            part = ids[start : start + 40_000]
            writer.append("rows", {"forward_id": part, "rid": range(start, start + len(part))}, len(part))
        writer.append("forwards", {"forward_id": [2, 0, None, 1], "start_ns": [20, 0, 5, 10]}, 4)
        writer.append("forwards", {"forward_id": [1, 0], "start_ns": [11, 1]}, 2)
    index = {
        entry["table"]: entry["batches"]
        for entry in json.loads((writer.path / "seal.json").read_text())["files"]
    }
    assert [batch["rows"] for batch in index["rows"]] == [SEALED_BATCH_ROWS, SEALED_BATCH_ROWS, 10]
    assert [batch["ids"] for batch in index["rows"]] == [
        [0, ids[SEALED_BATCH_ROWS - 1]],
        [ids[SEALED_BATCH_ROWS], ids[2 * SEALED_BATCH_ROWS - 1]],
        [ids[2 * SEALED_BATCH_ROWS], ids[-1]],
    ]
    assert [(batch["ids"], batch["times_ns"]) for batch in index["forwards"]] == [([0, 2], [0, 20])]
    trace = open_trace(writer.path)
    assert trace.table("rows").column("rid").to_pylist() == list(range(rows))
    forwards = trace.table("forwards")
    assert forwards.column("forward_id").to_pylist() == [0, 0, 1, 1, 2, None]
    assert forwards.column("start_ns").to_pylist() == [0, 1, 10, 11, 20, 5]


def test_a_sealed_trace_that_lacks_a_file_is_corrupt(tmp_path: Path) -> None:
    path = sealed_trace(tmp_path / "t.chunkscope", random_batches(1))
    for name, text in (("rank-0/events.arrow", "the file is missing"), ("seal.json", "No such file")):
        shutil.copytree(path, tmp_path / "copy")
        (tmp_path / "copy" / name).unlink()
        with pytest.raises(TraceError, match=text):
            open_trace(tmp_path / "copy")
        shutil.rmtree(tmp_path / "copy")


def test_the_index_of_another_trace_is_refused(tmp_path: Path) -> None:
    path = sealed_trace(tmp_path / "t.chunkscope", random_batches(1))
    other = sealed_trace(tmp_path / "o.chunkscope", random_batches(2))
    shutil.copy(other / "seal.json", path / "seal.json")
    with pytest.raises(TraceError, match=r"seal\.json: corrupt trace: not the index that meta\.json names"):
        open_trace(path)


def test_a_sealed_file_of_another_trace_is_refused(tmp_path: Path) -> None:
    for name in ("a", "b"):
        with TraceWriter(tmp_path / f"{name}.chunkscope", {}) as writer:
            writer.append("pages", {"forward_id": [ord(name)]}, 1)
    a, b = (tmp_path / f"{name}.chunkscope/rank-0/pages.arrow" for name in ("a", "b"))
    assert a.stat().st_size == b.stat().st_size
    shutil.copy(b, a)
    with pytest.raises(
        TraceError, match=r"pages\.arrow: corrupt trace: batch 0: not the batch that the index"
    ):
        open_trace(tmp_path / "a.chunkscope").table("pages")


def test_two_readers_may_want_to_seal(tmp_path: Path) -> None:
    path = abandoned_trace(tmp_path / "t.chunkscope", random_batches(1))
    meta = read_meta(path)
    assert seal_if_abandoned(path, meta)
    sealed = (path / "meta.json").read_bytes()
    assert seal_if_abandoned(path, meta)
    assert (path / "meta.json").read_bytes() == sealed
    assert_tables(open_trace(path), random_batches(1))


_KILLED_SEALING = """
import os, pathlib, signal, sys
import tests.support.trace_samples as samples
from traces.writer import TraceWriter

left = int(sys.argv[2])
def killing(call):
    def wrapper(*args):
        global left
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        left -= 1
        return call(*args)
    return wrapper

writer = TraceWriter(pathlib.Path(sys.argv[1]), samples.META)
batches = samples.random_batches(1)
samples.write_batches(writer, {table: batches[table] for table in ("rows", "requests")})
os.fsync = killing(os.fsync)
pathlib.Path.replace = killing(pathlib.Path.replace)
writer.close({"end": 1})
"""


def test_a_trace_killed_anywhere_in_sealing_is_whole(tmp_path: Path) -> None:
    batches = {table: random_batches(1)[table] for table in ("rows", "requests")}
    ends = set()
    for point in count():
        path = tmp_path / f"{point}.chunkscope"
        child = subprocess.run([sys.executable, "-c", _KILLED_SEALING, str(path), str(point)], cwd=ROOT)
        committed = "sealed" in read_meta(path)
        trace = open_trace(path)
        assert trace.sealed
        assert_tables(trace, batches)
        assert not list(path.rglob("*.sealing"))
        ends.add((child.returncode, committed, trace.meta["sealed"]["clean_end"]))
        if child.returncode == 0:
            break
    assert ends == {(-9, False, False), (-9, True, True), (0, True, True)}
