import json
import random
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.trace_samples import abandoned_trace, assert_tables, random_batches, sealed_trace
from traces.errors import TraceError
from traces.reader import Trace, open_trace
from traces.schema import TABLES

ROOT = Path(__file__).parents[2]


def flip_bytes(state: str, count: int) -> dict[str, int]:
    """Outcomes of single-byte flips over all files, counted by a process that a crash would end."""
    child = subprocess.run(
        [sys.executable, "-m", "tests.support.trace_flips", state, str(count), "1"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert child.returncode == 0, child.stderr
    outcomes: dict[str, int] = json.loads(child.stdout)
    assert sum(outcomes.values()) == count
    return outcomes


# The worker itself fails where a flip gives a crash, another error or another number.
def test_flips_in_a_sealed_trace_are_refused_or_change_nothing() -> None:
    assert flip_bytes("sealed", 200).keys() <= {"refused", "same"}


@pytest.mark.parametrize("state", ["abandoned", "foreign"])
def test_flips_in_an_unsealed_trace_may_also_be_a_torn_tail(state: str) -> None:
    assert flip_bytes(state, 100).keys() <= {"refused", "same", "torn"}


@pytest.mark.long
@pytest.mark.parametrize("state", ["sealed", "abandoned", "foreign"])
def test_many_flips(state: str) -> None:
    outcomes = flip_bytes(state, 5_000)
    assert outcomes.keys() <= {"refused", "same"} | ({"torn"} if state != "sealed" else set())


def read_all(path: Path) -> Trace:
    trace = open_trace(path)
    for table in TABLES:
        trace.table(table)
    return trace


def test_a_sealed_file_cut_by_any_length_is_refused(tmp_path: Path) -> None:
    path = sealed_trace(tmp_path / "t.chunkscope", random_batches(1))
    rng = random.Random(1)
    for file in sorted(file for file in path.rglob("*") if file.is_file()):
        whole = file.read_bytes()
        for length in (0, 1, len(whole) // 2, len(whole) - 3, rng.randrange(len(whole))):
            file.write_bytes(whole[:length])
            with pytest.raises(TraceError) as error:
                read_all(path)
            assert str(error.value).isprintable()
            assert file.name in str(error.value) or file.name == "seal.json"
        file.write_bytes(whole)


def test_a_sealed_file_with_a_byte_more_is_refused(tmp_path: Path) -> None:
    path = sealed_trace(tmp_path / "t.chunkscope", random_batches(1))
    with (path / "rank-0/rows.arrow").open("ab") as file:
        file.write(b"\0")
    with pytest.raises(TraceError, match=r"rank-0/rows\.arrow: corrupt trace: \d+ bytes instead of \d+"):
        open_trace(path)


def test_a_damaged_footer_is_refused_though_no_batch_needs_it(tmp_path: Path) -> None:
    path = sealed_trace(tmp_path / "t.chunkscope", random_batches(1))
    file = path / "rank-0/rows.arrow"
    whole = file.read_bytes()
    for back in (1, 10, 100):
        file.write_bytes(whole[:-back] + bytes([whole[-back] ^ 1]) + whole[len(whole) - back + 1 :])
        with pytest.raises(
            TraceError, match=r"rank-0/rows\.arrow: corrupt trace: checksum mismatch before or after"
        ):
            open_trace(path)


def test_a_stream_cut_by_any_length_keeps_its_whole_batches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("traces.reader.seal_if_abandoned", lambda *_: False)
    batches = random_batches(1, rows=3)
    path = abandoned_trace(tmp_path / "t.chunkscope", batches)
    file = path / "rank-0/rows.arrow"
    whole = file.read_bytes()
    starts = _frame_starts(whole)
    ends = [*starts[1:], len(whole)]
    near = {end + step for end in (0, starts[0], *ends) for step in range(-9, 10)}
    for length in sorted(near | set(range(0, len(whole), 97))):
        if 0 <= length <= len(whole):
            file.write_bytes(whole[:length])
            trace = open_trace(path)
            kept = sum(end <= length for end in ends)
            assert trace.torn_bytes == length - (ends[kept - 1] if kept else 0)
            assert_tables(trace, {**batches, "rows": batches["rows"][:kept]})


def test_zeros_after_the_last_batch_are_a_torn_tail(tmp_path: Path) -> None:
    path = abandoned_trace(tmp_path / "t.chunkscope", random_batches(1))
    with (path / "rank-0/rows.arrow").open("ab") as file:
        file.write(bytes(4096))
    for _ in range(2):
        trace = open_trace(path)
        assert trace.torn_bytes == 4096
        assert_tables(trace, random_batches(1))


@pytest.mark.parametrize("field", ["marker", "size"])
def test_damage_before_whole_batches_is_corruption_and_no_torn_tail(tmp_path: Path, field: str) -> None:
    """A size that points beyond the file would otherwise pass for a batch that was being written."""
    path = abandoned_trace(tmp_path / "t.chunkscope", random_batches(1))
    file = path / "rank-0/events.arrow"
    data = bytearray(file.read_bytes())
    start = _frame_starts(data)[1]
    data[start if field == "marker" else data.index(b" bytes=0", start) + 7] ^= 7
    file.write_bytes(data)
    with pytest.raises(
        TraceError, match=r"rank-0/events\.arrow: corrupt trace: batch 1: unreadable, with whole"
    ):
        open_trace(path)
    assert file.read_bytes() == data


def test_batches_that_changed_places_are_refused(tmp_path: Path) -> None:
    path = abandoned_trace(tmp_path / "t.chunkscope", random_batches(1))
    file = path / "rank-0/pages.arrow"
    data = file.read_bytes()
    starts = _frame_starts(data)
    parts = [data[a:b] for a, b in zip([0, *starts], [*starts, len(data)], strict=True)]
    for order in ([0, 2, 1, 3], [0, 1, 3], [0, 1, 1, 2, 3]):
        file.write_bytes(b"".join(parts[number] for number in order))
        with pytest.raises(TraceError, match=r"rank-0/pages\.arrow: corrupt trace"):
            open_trace(path)


def _frame_starts(stream: bytes) -> list[int]:
    return [int(match[1]) for match in re.finditer(rb"at=(\d{15}) bytes=", stream)]
