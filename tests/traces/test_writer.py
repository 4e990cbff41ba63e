import json
import os
import re
from array import array
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from traces.errors import TraceError
from traces.reader import open_trace
from traces.writer import TraceWriter


def read_back(path: Path, table: str, columns: dict[str, Any], rows: int) -> pa.Table:
    with TraceWriter(path, {}) as writer:
        writer.append(table, columns, rows)
    return open_trace(path).table(table)


@pytest.mark.parametrize(
    "value",
    [
        np.array([1, 2, 3], np.uint32),
        np.array([1, 2, 3], np.int32),
        np.array([1, 2, 3], np.int64),
        np.array([1, 9, 2, 9, 3], np.int32)[::2],
        pa.array([1, 2, 3], pa.int8()),
        pa.chunked_array([[1], [2, 3]], pa.uint32()),
        array("i", [1, 2, 3]),
        [1, 2, 3],
        (1, 2, 3),
    ],
    ids=lambda value: f"{type(value).__name__}-{getattr(value, 'dtype', '')}",
)
def test_columns_come_in_many_forms(tmp_path: Path, value: Any) -> None:
    table = read_back(tmp_path / "t.chunkscope", "rows", {"rid": value}, 3)
    assert table.column("rid").to_pylist() == [1, 2, 3]


def test_absent_columns_are_null_scalars_repeat_and_masks_are_null(tmp_path: Path) -> None:
    columns = {
        "rid": 5,
        "token_index": np.ma.masked_less(np.array([-1, 0, 1], np.int32), 0),
        "inflight_after_plan": np.array([0, 1, 2], np.uint8),
        "cached_tokens": None,
        "kv_pages": [None, 1, None],
    }
    table = read_back(tmp_path / "t.chunkscope", "rows", columns, 3)
    assert table.column("rid").to_pylist() == [5, 5, 5]
    assert table.column("token_index").to_pylist() == [None, 0, 1]
    assert table.column("inflight_after_plan").to_pylist() == [0, 1, 2]
    assert table.column("kv_pages").to_pylist() == [None, 1, None]
    assert table.column("cached_tokens").null_count == table.column("forward_id").null_count == 3


def test_text_and_flags_and_hashes(tmp_path: Path) -> None:
    columns = {
        "rid": [0, 1],
        "name": "one\nname",
        "ignore_eos": np.array([True, False]),
        "prefix_hashes": [[0, 2**64 - 1], []],
        "finish_reason": [None, 2],
    }
    table = read_back(tmp_path / "t.chunkscope", "requests", columns, 2)
    assert table.column("name").to_pylist() == ["one\nname"] * 2
    assert table.column("ignore_eos").to_pylist() == [True, False]
    assert table.column("prefix_hashes").to_pylist() == [[0, 2**64 - 1], []]


def test_half_a_surrogate_pair_is_kept_as_its_escape(tmp_path: Path) -> None:
    table = read_back(tmp_path / "t.chunkscope", "requests", {"rid": [0, 1], "name": ["a\ud800", "é"]}, 2)
    assert table.column("name").to_pylist() == ["a\\ud800", "é"]


def test_rank_is_the_writers_unless_given(tmp_path: Path) -> None:
    with TraceWriter(tmp_path / "t.chunkscope", {}, rank=3) as writer:
        writer.append("events", {"t_ns": [1, 2]}, 2)
        writer.append("events", {"t_ns": [3], "rank": [9]}, 1)
    trace = open_trace(writer.path)
    assert trace.ranks == (3,)
    assert trace.table("events").column("rank").to_pylist() == [3, 3, 9]


@pytest.mark.parametrize(
    ("table", "columns", "rows", "text"),
    [
        ("rows", {"rid": [1, 2]}, 3, r"rows\.rid: 2 values for 3 rows"),
        ("rows", {"rid": np.array([-1], np.int32)}, 1, r"rows\.rid: not uint32: .*-1"),
        ("rows", {"rid": [2**32]}, 1, r"rows\.rid: not uint32"),
        (
            "rows",
            {"inflight_after_plan": np.array([200], np.uint8)},
            1,
            r"rows\.inflight_after_plan: not int8",
        ),
        ("rows", {"rid": "seven"}, 1, r"rows\.rid: not uint32"),
        ("rows", {"rid": np.zeros((2, 2), np.uint32)}, 2, r"rows\.rid: not uint32"),
        ("rows", {"extend_len": [1.5]}, 1, r"rows\.extend_len: not int32"),
        ("rows", {"colour": [1]}, 1, r"rows has no column 'colour'"),
        ("requests", {"name": [7]}, 1, r"requests\.name: not string"),
        ("colours", {}, 1, r"no table 'colours': give one of forwards, rows"),
    ],
)
def test_columns_that_do_not_fit_are_named(
    tmp_path: Path, table: str, columns: dict[str, Any], rows: int, text: str
) -> None:
    with TraceWriter(tmp_path / "t.chunkscope", {}) as writer:
        with pytest.raises(TraceError, match=text) as refusal:
            writer.append(table, columns, rows)
        assert str(refusal.value).isprintable()
        writer.append("rows", {"rid": [4]}, 1)
    assert open_trace(writer.path).table("rows").column("rid").to_pylist() == [4]


def test_no_rows_write_nothing(tmp_path: Path) -> None:
    with TraceWriter(tmp_path / "t.chunkscope", {}) as writer:
        writer.append("rows", {"rid": []}, 0)
        assert not list(writer.path.glob("rank-0/*"))


def test_each_append_is_readable_at_once(tmp_path: Path) -> None:
    with TraceWriter(tmp_path / "t.chunkscope", {}) as writer:
        for count in range(1, 4):
            writer.append("rows", {"rid": [count]}, 1)
            assert open_trace(writer.path).table("rows").num_rows == count


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("there.chunkscope", "already exists: give another name"),
        ("empty.chunkscope", "already exists"),
        ("file.chunkscope", "already exists"),
        ("dangling.chunkscope", "already exists"),
        ("missing/t.chunkscope", r"there is no directory .*missing: make it first"),
        ("file.chunkscope/t.chunkscope", "cannot be written: Not a directory"),
        ("t.trace", r"ends in \.chunkscope: give t\.trace\.chunkscope"),
        (".chunkscope", r"ends in \.chunkscope"),
        ("a\0b.chunkscope", "cannot be written"),
        ("n" * 300 + ".chunkscope", "File name too long"),
        ("two\nlines.trace", r"two\\nlines"),
    ],
)
def test_a_path_that_cannot_be_taken_is_refused(tmp_path: Path, name: str, text: str) -> None:
    TraceWriter(tmp_path / "there.chunkscope", {}).close()
    (tmp_path / "empty.chunkscope").mkdir()
    (tmp_path / "file.chunkscope").write_text("mine")
    (tmp_path / "dangling.chunkscope").symlink_to(tmp_path / "nowhere")
    before = {path: path.lstat().st_mtime_ns for path in tmp_path.rglob("*")}
    with pytest.raises(TraceError, match=text) as refusal:
        TraceWriter(tmp_path / name, {})
    assert str(refusal.value).isprintable()
    assert {path: path.lstat().st_mtime_ns for path in tmp_path.rglob("*")} == before


def test_a_trace_that_cannot_be_begun_leaves_no_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("traces.writer.write_document", refuse)
    with pytest.raises(TraceError, match=r"t\.chunkscope: cannot be written: No space left on device"):
        TraceWriter(tmp_path / "t.chunkscope", {})
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "meta",
    [
        {"provenance": "guessed"},
        {"columns": ["forwards"]},
        {"columns": {"forwards": {"start_ns": "sure"}}},
        {"a": {1, 2}},
        {"a": float("nan")},
        {"a": Path("x")},
    ],
)
def test_meta_that_no_reader_would_take_leaves_no_directory(tmp_path: Path, meta: dict[str, Any]) -> None:
    with pytest.raises(TraceError, match=r"meta\.json"):
        TraceWriter(tmp_path / "t.chunkscope", meta)
    assert not list(tmp_path.iterdir())


def test_meta_is_updated_in_place(tmp_path: Path) -> None:
    with TraceWriter(tmp_path / "t.chunkscope", {"seed": 1, "clock": [1]}) as writer:
        assert open_trace(writer.path).meta["clock"] == [1]
        writer.update_meta({"clock": [1, 2], "schema_version": "1.0"})
        assert open_trace(writer.path).meta["clock"] == [1, 2]
        with pytest.raises(TraceError, match="not JSON"):
            writer.update_meta({"clock": {1}})
        writer.close({"end": "clean"})
    meta = open_trace(writer.path).meta
    assert (meta["seed"], meta["clock"], meta["end"], meta["schema_version"]) == (1, [1, 2], "clean", "1.0")
    assert [path.name for path in sorted(writer.path.iterdir())] == ["meta.json", "rank-0", "seal.json"]


def test_meta_keeps_any_json_exactly(tmp_path: Path) -> None:
    meta = {"f": 0.1, "big": 2**70, "s": "é\ud800\n", "n": None, "deep": [[{"k": [True, 1, 1.0, -0.0]}]]}
    with TraceWriter(tmp_path / "t.chunkscope", meta) as writer:
        pass
    found = open_trace(writer.path).meta
    assert json.dumps({key: found[key] for key in meta}) == json.dumps(meta)


def test_a_closed_writer_takes_no_more(tmp_path: Path) -> None:
    writer = TraceWriter(tmp_path / "t.chunkscope", {})
    writer.close()
    writer.close()
    with pytest.raises(TraceError, match="already closed"):
        writer.append("rows", {"rid": [1]}, 1)
    with pytest.raises(TraceError, match="already closed"):
        writer.update_meta({})


def test_an_error_in_the_run_is_told_from_a_clean_end(tmp_path: Path) -> None:
    def clean_end(name: str, divisor: int) -> bool:
        with suppress(ZeroDivisionError), TraceWriter(tmp_path / name, {}) as writer:
            writer.append("rows", {"rid": [1 // divisor]}, 1)
        return open_trace(tmp_path / name).meta["sealed"]["clean_end"]

    assert [clean_end(f"{divisor}.chunkscope", divisor) for divisor in (0, 1)] == [False, True]


def test_a_full_disk_loses_only_what_did_not_fit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with TraceWriter(tmp_path / "t.chunkscope", {}) as writer:
        writer.append("rows", {"rid": [1]}, 1)
        size = (writer.path / "rank-0/rows.arrow").stat().st_size
        _fill_disk_after(100, monkeypatch)
        for _ in range(2):
            with pytest.raises(TraceError, match="cannot write rows: No space left"):
                writer.append("rows", {"rid": [2]}, 1)
        monkeypatch.undo()
        assert (writer.path / "rank-0/rows.arrow").stat().st_size == size
    assert open_trace(writer.path).table("rows").column("rid").to_pylist() == [1]


def _fill_disk_after(bytes_left: int, monkeypatch: pytest.MonkeyPatch) -> None:
    write = os.write

    def full_write(file: int, data: memoryview) -> int:
        nonlocal bytes_left
        if not bytes_left:
            raise OSError(28, "No space left on device")
        written = write(file, data[:bytes_left])
        bytes_left -= written
        return written

    monkeypatch.setattr("traces.stream.os.write", full_write)


def test_streams_and_sealed_files_are_ordinary_arrow(tmp_path: Path) -> None:
    writer = TraceWriter(tmp_path / "t.chunkscope", {})
    for number in range(3):
        writer.append("rows", {"rid": [number]}, 1)
    path = writer.path / "rank-0/rows.arrow"
    assert pa.ipc.open_stream(path.read_bytes()).read_all().column("rid").to_pylist() == [0, 1, 2]
    writer.close()
    sealed = pa.ipc.open_file(path)
    assert sealed.read_all().column("rid").to_pylist() == [0, 1, 2]
    tag = sealed.get_batch_with_custom_metadata(0).custom_metadata[b"chunkscope"]
    assert re.fullmatch(rb"at=\d+ bytes=\d+ rows=0000000003 head=[0-9a-f]{8} crc32=[0-9a-f]{8}", tag)
