"""`chunkscope check` on traces on disk: good, corrupted and unreadable ones side by side."""

from pathlib import Path

import pyarrow as pa
import pytest

from tests.support.cli import call, refused
from tests.support.corrupt_forwards import a_chunk_budget_not_charged
from tests.support.corrupt_traces import Corruptible, recorded
from traces.schema import TABLES
from traces.writer import TraceWriter

Capture = pytest.CaptureFixture[str]


def write(path: Path, trace: Corruptible) -> Path:
    """A sealed trace of these rows."""
    meta = {key: value for key, value in trace.meta.items() if key != "sealed"}
    with TraceWriter(path, meta) as writer:
        for table, rows in trace.tables.items():
            content = pa.Table.from_pylist(rows, TABLES[table])
            columns = {name: content.column(name).combine_chunks() for name in content.column_names}
            writer.append(table, columns, len(rows))
    return path


@pytest.fixture
def good(tmp_path: Path) -> Path:
    return write(tmp_path / "good.chunkscope", recorded("plain"))


@pytest.fixture
def bad(tmp_path: Path) -> Path:
    trace = recorded("plain")
    a_chunk_budget_not_charged(trace)
    return write(tmp_path / "bad.chunkscope", trace)


@pytest.fixture
def damaged(tmp_path: Path) -> Path:
    path = write(tmp_path / "damaged.chunkscope", recorded("plain"))
    file = path / "rank-0/rows.arrow"
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 0x10
    file.write_bytes(content)
    return path


def test_a_corrupted_trace_is_told_with_rule_place_and_numbers(good: Path, bad: Path, capfd: Capture) -> None:
    assert call(capfd, "check", good).code == 0
    code, out, err = call(capfd, "check", bad)
    assert (code, err) == (1, "")
    assert "  violated: budgets_charged: " in out
    assert "1 time in 16; first at forward 3: " in out
    assert "chunk_charged 0, " in out
    assert "paged 16, " in out
    document = call(capfd, "check", bad, "--json").json["traces"][0]
    broken = {rule["name"]: rule for rule in document["rules"] if rule["status"] == "violated"}
    assert broken.keys() == {"budgets_charged", "stop_explained"}  # it stopped as the budget was used up
    assert broken["budgets_charged"]["first"]["forward_id"] == 3


def test_an_unreadable_trace_hides_no_others(good: Path, bad: Path, damaged: Path, capfd: Capture) -> None:
    code, out, err = call(capfd, "check", damaged, good, bad, good.with_name("none.chunkscope"))
    assert code == 2
    assert f"{good}: " in out
    assert f"{bad}: " in out
    assert "violated: budgets_charged" in out
    complaints = err.splitlines()
    assert len(complaints) == 2
    assert all(line.startswith("chunkscope: ") for line in complaints)
    assert "rows.arrow" in complaints[0]
    assert "no such trace" in complaints[1]


def test_an_unreadable_trace_has_its_place_in_the_document(good: Path, damaged: Path, capfd: Capture) -> None:
    answer = call(capfd, "check", good, damaged, "--json")
    assert answer.code == 2
    assert answer.err.count("\n") == 1
    assert answer.json["ok"] is False
    first, second = answer.json["traces"]
    assert (first["trace"], first["ok"]) == (str(good), True)
    assert (second["trace"], second["ok"]) == (str(damaged), False)
    assert "rows.arrow" in second["error"]


def test_one_trace_alone_that_cannot_be_read_is_refused(damaged: Path, capfd: Capture) -> None:
    assert "rows.arrow" in refused(capfd, "check", damaged)
    assert "rows.arrow" in refused(capfd, "check", damaged, "--json")
