import json
import os
import shutil
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest

from tests.support.trace_samples import (
    abandoned_trace,
    assert_tables,
    filled_table,
    random_batches,
    sealed_trace,
)
from traces.errors import TraceError
from traces.meta import write_document
from traces.reader import open_trace
from traces.schema import TABLES
from traces.stream import StreamAppender
from traces.writer import TraceWriter

META = {"schema_version": "1.0", "writer": {"boot_id": "another machine"}}


def refusal(path: Path) -> str:
    """The one line with which a trace is refused, when it is opened or read."""
    with pytest.raises(TraceError) as error:
        read_all(path)
    assert str(error.value).isprintable()
    return str(error.value)


def read_all(path: Path) -> None:
    trace = open_trace(path)
    for table in TABLES:
        trace.table(table)


def bare_trace(path: Path, meta: dict[str, Any] = META) -> Path:
    (path / "rank-0").mkdir(parents=True)
    write_document(path / "meta.json", meta)
    return path


def write_stream(path: Path, table: pa.Table) -> None:
    stream = StreamAppender(path, table.schema)
    for batch in table.to_batches():
        stream.append(batch)
    stream.close()


@pytest.mark.parametrize("make", [sealed_trace, abandoned_trace])
def test_every_table_reads_back(tmp_path: Path, make: Any) -> None:
    batches = random_batches(1)
    trace = open_trace(make(tmp_path / "t.chunkscope", batches))
    assert (trace.ranks, trace.torn_bytes, trace.live) == ((0,), 0, False)
    assert trace.meta["name"] == "naïve ☃"
    assert_tables(trace, batches)
    for table in TABLES:
        assert pl.from_arrow(trace.table(table)).columns == TABLES[table].names


def test_names_are_data(tmp_path: Path) -> None:
    names = ["", "a" * 10_000, "tab\tline\nnull\0", "🙂مرحبا", "at=000000000000001 crc32=00000000", "'; --"]
    with TraceWriter(tmp_path / "t.chunkscope", {}) as writer:
        writer.append(
            "requests", {"rid": range(len(names)), "name": names, "peer_name": names[::-1]}, len(names)
        )
        growing = open_trace(writer.path).table("requests")
    sealed = open_trace(writer.path).table("requests")
    assert growing.column("name").to_pylist() == sealed.column("name").to_pylist() == names
    assert sealed.column("peer_name").to_pylist() == names[::-1]


def test_requests_keep_the_last_version_of_each_rid(tmp_path: Path) -> None:
    with TraceWriter(tmp_path / "t.chunkscope", {}) as writer:
        writer.append("requests", {"rid": [3, 1], "output_tokens": [0, 0]}, 2)
        writer.append("requests", {"rid": [1, None, 3, 1], "output_tokens": [1, 9, 5, 2]}, 4)
        growing = open_trace(writer.path)
        tables = [growing.table("requests")]
        writer.append("requests", {"rid": [3], "output_tokens": [6]}, 1)
        growing.poll()
        tables.append(growing.table("requests"))
    tables.append(open_trace(writer.path).table("requests"))
    found = [
        list(zip(*(t.column(c).to_pylist() for c in ("rid", "output_tokens")), strict=True)) for t in tables
    ]
    assert found == [[(1, 2), (3, 5), (None, 9)], *[[(1, 2), (3, 6), (None, 9)]] * 2]


def test_a_trace_without_rows_has_empty_tables(tmp_path: Path) -> None:
    growing = bare_trace(tmp_path / "growing.chunkscope")
    TraceWriter(tmp_path / "sealed.chunkscope", {}).close()
    for path in (growing, tmp_path / "sealed.chunkscope"):
        trace = open_trace(path)
        assert_tables(trace, {})
        assert trace.read_range("rows", 0, 10).equals(TABLES["rows"].empty_table())
        assert trace.read_range("forwards", 0, 10).num_rows == 0


@pytest.mark.parametrize("sealed", [False, True])
def test_unknown_columns_are_dropped_and_missing_ones_null(tmp_path: Path, sealed: bool) -> None:
    path = bare_trace(tmp_path / "live.chunkscope", {"schema_version": "1.99", "future": 1})
    newer = pa.table({"later": ["x", "y"], "rid": pa.array([1, 2], pa.uint32()), "forward_id": [1, 2]})
    newer = newer.set_column(2, "forward_id", pa.array([4, 3], pa.uint32()))
    write_stream(path / "rank-0/rows.arrow", newer)
    if sealed:
        _seal(path)
    trace = open_trace(path)
    assert trace.sealed == sealed
    rows = trace.table("rows")
    assert rows.schema.equals(TABLES["rows"], check_metadata=True)
    assert sorted(rows.column("rid").to_pylist()) == [1, 2]
    assert rows.column("seq_len").null_count == 2
    kept = pa.ipc.open_file(path / "rank-0/rows.arrow").read_all() if sealed else None
    assert kept is None or kept.column_names == ["later", "rid", "forward_id"]


def _seal(path: Path) -> None:
    from traces.meta import read_meta
    from traces.seal import seal_held

    seal_held(path, read_meta(path), clean_end=False)


@pytest.mark.parametrize(
    ("column", "text"),
    [
        (pa.field("rid", pa.int64()), "column rid is int64, not uint32"),
        (
            pa.field("role", pa.uint8(), metadata={"enum": '["LAST", "WHOLE"]'}),
            "column role numbers its names",
        ),
    ],
)
def test_columns_of_another_meaning_are_refused(tmp_path: Path, column: pa.Field, text: str) -> None:
    path = bare_trace(tmp_path / "t.chunkscope")
    write_stream(path / "rank-0/rows.arrow", pa.table([pa.array([1], column.type)], pa.schema([column])))
    assert text in refusal(path)
    assert "rank-0/rows.arrow" in refusal(path)


def test_a_column_given_twice_is_refused(tmp_path: Path) -> None:
    path = bare_trace(tmp_path / "t.chunkscope")
    write_stream(path / "rank-0/rows.arrow", pa.table([pa.array([1], pa.uint32())] * 2, ["rid", "rid"]))
    assert "column rid appears 2 times" in refusal(path)


def test_enum_names_may_grow_at_their_end(tmp_path: Path) -> None:
    path = bare_trace(tmp_path / "t.chunkscope")
    metadata = {"enum": '["FREE", "ROW", "TREE", "DISK"]'}
    write_stream(
        path / "rank-0/pages.arrow",
        pa.table([pa.array([3], pa.uint8())], pa.schema([pa.field("owner", pa.uint8(), metadata=metadata)])),
    )
    assert open_trace(path).table("pages").column("owner").to_pylist() == [3]


def test_ranks_follow_one_another(tmp_path: Path) -> None:
    path = bare_trace(tmp_path / "t.chunkscope")
    for rank in (10, 2):
        other = abandoned_trace(tmp_path / f"{rank}.chunkscope", random_batches(rank))
        shutil.copytree(other / "rank-0", path / f"rank-{rank}")
    (path / "rank-x").mkdir()
    growing = open_trace(path)
    _seal(path)
    for trace in (growing, open_trace(path)):
        assert trace.ranks == (0, 2, 10)
        parts = {t: random_batches(2)[t] + random_batches(10)[t] for t in TABLES if t != "requests"}
        for table, batches in parts.items():
            assert trace.table(table).equals(pa.concat_tables(batches))
    assert growing.poll()
    assert growing.sealed


def test_a_growing_trace_is_followed(tmp_path: Path) -> None:
    batches = random_batches(3)
    seen: dict[str, list[pa.Table]] = {table: [] for table in TABLES}
    writer = TraceWriter(tmp_path / "t.chunkscope", {})
    readers = [open_trace(writer.path), open_trace(writer.path)]
    for number in range(3):
        for table, parts in batches.items():
            part = parts[number]
            writer.append(table, dict(zip(part.column_names, part.columns, strict=True)), part.num_rows)
            seen[table].append(part)
            assert readers[0].poll()
            assert not readers[0].poll()
            assert readers[0].table(table).num_rows
        for reader in readers:
            reader.poll()
            assert reader.live
            assert not reader.sealed
            assert_tables(reader, seen)
    writer.close({"end": 1})
    for reader in readers:
        assert reader.poll()
        assert (reader.sealed, reader.live, reader.meta["end"]) == (True, False, 1)
        assert_tables(reader, batches)
        assert not reader.poll()


def test_a_half_written_batch_waits_for_its_rest(tmp_path: Path) -> None:
    whole = (
        abandoned_trace(tmp_path / "whole.chunkscope", random_batches(4)) / "rank-0/rows.arrow"
    ).read_bytes()
    path = bare_trace(tmp_path / "t.chunkscope") / "rank-0/rows.arrow"
    trace = open_trace(path.parent.parent)
    rows = 0
    with path.open("wb", buffering=0) as file:
        for start in range(0, len(whole), 997):
            file.write(whole[start : start + 997])
            trace.poll()
            assert trace.torn_bytes < len(whole)
            assert trace.table("rows").num_rows >= rows
            rows = trace.table("rows").num_rows
    assert trace.torn_bytes == 0
    assert trace.table("rows").equals(pa.concat_tables(random_batches(4)["rows"]))


@pytest.mark.parametrize("make", [sealed_trace, abandoned_trace])
def test_ranges_are_those_of_a_scan(tmp_path: Path, make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("traces.seal.SEALED_BATCH_ROWS", 64)
    if make is abandoned_trace:
        monkeypatch.setattr("traces.reader.seal_if_abandoned", lambda *_: False)
    trace = open_trace(make(tmp_path / "t.chunkscope", _timed_batches()))
    forwards = trace.table("forwards").to_pylist()
    for start, end in [
        (0, 1),
        (0, 10**6),
        (995, 1005),
        (500, 500),
        (441, 442),
        (50, 1500),
        (-5, 0),
        (2990, 4000),
    ]:
        ids = {f["forward_id"] for f in forwards if f["plan_start_ns"] < end and f["result_end_ns"] > start}
        for table in ("forwards", "rows", "pages"):
            expected = [row for row in trace.table(table).to_pylist() if row["forward_id"] in ids]
            assert trace.read_range(table, start, end).to_pylist() == expected
        events = [e for e in trace.table("events").to_pylist() if start <= e["t_ns"] < end]
        assert trace.read_range("events", start, end).to_pylist() == events
        alive = [
            r["rid"]
            for r in trace.table("requests").to_pylist()
            if r["arrival_ns"] < end and (r["finish_ns"] is None or r["finish_ns"] > start)
        ]
        assert trace.read_range("requests", start, end).column("rid").to_pylist() == alive
    for first, last in [(0, 0), (31, 31), (32, 32), (63, 64), (10, 20), (200, 100), (0, 10**6)]:
        expected = [row for row in trace.table("rows").to_pylist() if first <= row["forward_id"] <= last]
        assert trace.read_forwards("rows", first, last).to_pylist() == expected


def _timed_batches() -> dict[str, list[pa.Table]]:
    ids = list(range(300))
    columns: dict[str, dict[str, list[Any]]] = {
        "forwards": {
            "forward_id": ids,
            "plan_start_ns": [i * 10 for i in ids],
            "result_end_ns": [i * 10 + 12 for i in ids],
        },
        "rows": {"forward_id": [i // 2 for i in range(600)], "rid": list(range(600))},
        "pages": {"forward_id": ids[::3], "first_page": ids[::3]},
        "events": {"t_ns": [i * 7 for i in ids], "forward_id": [i if i % 2 else None for i in ids]},
        "requests": {
            "rid": ids[:50],
            "arrival_ns": [i * 20 for i in ids[:50]],
            "finish_ns": [i * 31 + 5 if i % 3 else None for i in ids[:50]],
        },
    }
    return {
        table: [filled_table(table, len(next(iter(given.values()))), given)]
        for table, given in columns.items()
    }


def test_a_sealed_range_reads_only_its_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("traces.seal.SEALED_BATCH_ROWS", 64)
    path = sealed_trace(tmp_path / "t.chunkscope", _timed_batches())
    file = path / "rank-0/rows.arrow"
    index = json.loads((path / "seal.json").read_text())
    last = next(entry for entry in index["files"] if entry["table"] == "rows")["batches"][-1]
    data = bytearray(file.read_bytes())
    data[last["at"] + 40] ^= 1
    file.write_bytes(data)
    trace = open_trace(path)
    assert trace.read_forwards("rows", 0, 30).num_rows == 62
    assert trace.read_range("rows", 0, 300).num_rows == 62 - 2
    with pytest.raises(TraceError, match=r"rank-0/rows\.arrow: corrupt trace: batch 9"):
        trace.read_forwards("rows", 290, 299)


def test_unknown_tables_are_named(tmp_path: Path) -> None:
    trace = open_trace(bare_trace(tmp_path / "t.chunkscope"))
    for read in (
        trace.table,
        lambda name: trace.read_range(name, 0, 1),
        lambda name: trace.read_forwards(name, 0, 1),
    ):
        with pytest.raises(TraceError, match="no table 'colours': give one of forwards"):
            read("colours")
    with pytest.raises(TraceError, match="requests has no forward ids"):
        trace.read_forwards("requests", 0, 1)


def test_what_is_no_trace_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file.chunkscope").write_text("no")
    (tmp_path / "empty.chunkscope").mkdir()
    (tmp_path / "odd.chunkscope" / "meta.json").mkdir(parents=True)
    assert "no such trace: give a directory" in refusal(tmp_path / "missing.chunkscope")
    assert "a file, not a trace" in refusal(tmp_path / "file.chunkscope")
    assert "holds no meta.json: not a chunkscope trace" in refusal(tmp_path / "empty.chunkscope")
    assert "meta.json: no ordinary file" in refusal(tmp_path / "odd.chunkscope")
    assert "no such trace" in refusal(tmp_path / "a\0b")
    assert "File name too long: the trace cannot be read" in refusal(tmp_path / ("n" * 300))
    assert "no such trace" in refusal(tmp_path / "two\nlines")


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"", "not JSON"),
        (b"{", "not JSON"),
        (b"\xff\xfe{}", "not JSON"),
        (b"[1]", "not a JSON object"),
        (b"null", "not a JSON object"),
        (b"[" * 100_000, "not JSON"),
        (b'{"a": NaN}', "not JSON"),
        (b'{"a": 1}', '"schema_version" is not a version'),
        (b'{"schema_version": 1.0}', '"schema_version" is not a version'),
        (b'{"schema_version": "1"}', '"schema_version" is not a version'),
        (
            b'{"schema_version": "2.0"}',
            "schema 2.0 is newer than 1.0, which this chunkscope reads: use a newer",
        ),
        (b'{"schema_version": "1.0"}', "checksum mismatch"),
        (b'{"schema_version": "1.0", "crc32": 7}', "checksum mismatch"),
        (b'{"schema_version": "1.0", "x": 1e999, "crc32": "00000000"}', "checksum mismatch"),
    ],
    ids=lambda value: str(value)[:24],
)
def test_a_damaged_meta_is_one_line(tmp_path: Path, content: bytes, text: str) -> None:
    path = bare_trace(tmp_path / "t.chunkscope")
    (path / "meta.json").write_bytes(content)
    assert text in refusal(path)
    assert "meta.json" in refusal(path)


@pytest.mark.parametrize(
    ("field", "text"),
    [
        ({"provenance": 7}, '"provenance" is none of measured'),
        ({"provenance": ["measured"]}, '"provenance" is none of measured'),
        ({"columns": 7}, '"columns" is no object'),
        ({"columns": {"rows": {"rid": []}}}, '"columns" is no object'),
        ({"sealed": 7}, '"sealed" is not as sealing writes it'),
        ({"sealed": {"torn_bytes": 0}}, "seal.json"),
    ],
    ids=str,
)
def test_a_meta_of_other_types_is_one_line(tmp_path: Path, field: dict[str, Any], text: str) -> None:
    assert text in refusal(bare_trace(tmp_path / "t.chunkscope", {**META, **field}))


def test_a_reader_meets_a_seal_in_progress(tmp_path: Path) -> None:
    path = bare_trace(tmp_path / "t.chunkscope")
    sealed = sealed_trace(tmp_path / "sealed.chunkscope", random_batches(5))
    shutil.copy(sealed / "rank-0/rows.arrow", path / "rank-0/rows.arrow")
    assert "rows.arrow: corrupt trace: sealed, but meta.json does not say so" in refusal(path)


@pytest.mark.parametrize("name", ["meta.json", "seal.json", "rank-0/rows.arrow", "rank-0/events.arrow"])
def test_a_pipe_in_place_of_a_file_is_refused(tmp_path: Path, name: str) -> None:
    path = sealed_trace(tmp_path / "t.chunkscope", random_batches(1))
    (path / name).unlink()
    os.mkfifo(path / name)
    assert "no ordinary file" in refusal(path)


def test_a_pipe_in_place_of_a_stream_is_refused(tmp_path: Path) -> None:
    path = bare_trace(tmp_path / "t.chunkscope")
    os.mkfifo(path / "rank-0/rows.arrow")
    assert "no ordinary file" in refusal(path)


def test_a_seal_that_meta_does_not_know_of_is_refused(tmp_path: Path) -> None:
    path = sealed_trace(tmp_path / "t.chunkscope", random_batches(1))
    meta = json.loads((path / "meta.json").read_text())
    write_document(path / "meta.json", {k: v for k, v in meta.items() if k not in ("sealed", "crc32")})
    assert "sealed, but meta.json does not say so" in refusal(path)
