"""Changing the meta.json of a trace that is complete."""

from pathlib import Path

import pytest

from tests.support.trace_samples import random_batches, sealed_trace
from traces.errors import TraceError
from traces.meta import META_NAME, read_meta, update_sealed_meta
from traces.ownership import DirectoryLock
from traces.reader import open_trace
from traces.writer import TraceWriter


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    return sealed_trace(tmp_path / "t.chunkscope", random_batches(1))


def test_a_sealed_trace_keeps_all_else(trace: Path) -> None:
    before = read_meta(trace)
    update_sealed_meta(trace, {"hardware": {"name": "ü"}, "sealed": {"torn_bytes": 5}})
    assert read_meta(trace) == {**before, "hardware": {"name": "ü"}}
    opened = open_trace(trace)
    assert opened.sealed
    assert opened.table("rows").num_rows > 0


def test_the_file_is_replaced_as_a_whole(trace: Path) -> None:
    update_sealed_meta(trace, {"note": "a"})
    assert [path.name for path in trace.iterdir() if path.name.startswith(META_NAME)] == [META_NAME]


def test_a_growing_trace_is_left_to_its_writer(tmp_path: Path) -> None:
    path = tmp_path / "t.chunkscope"
    with TraceWriter(path, {}):
        before = (path / META_NAME).read_bytes()
        with pytest.raises(TraceError, match="still being written"):
            update_sealed_meta(path, {"note": "a"})
        assert (path / META_NAME).read_bytes() == before
    update_sealed_meta(path, {"note": "a"})


@pytest.mark.parametrize(
    "updates", [{"provenance": "guessed"}, {"note": float("nan")}, {"schema_version": "x"}]
)
def test_what_no_reader_would_take_is_not_written(trace: Path, updates: dict[str, object]) -> None:
    before = (trace / META_NAME).read_bytes()
    with pytest.raises(TraceError):
        update_sealed_meta(trace, updates)
    assert (trace / META_NAME).read_bytes() == before


def test_two_do_not_change_it_at_once(trace: Path) -> None:
    lock = DirectoryLock(trace)
    try:
        with pytest.raises(TraceError, match="another process is changing it"):
            update_sealed_meta(trace, {"note": "a"})
    finally:
        lock.release()
    update_sealed_meta(trace, {"note": "a"})


def test_no_trace_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="cannot be written"):
        update_sealed_meta(tmp_path / "absent", {})
