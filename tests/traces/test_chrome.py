import resource
import tempfile
import tracemalloc
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.chrome import assert_nested, nanoseconds, read_chrome
from traces.chrome import write_chrome
from traces.drawing import Counter, Flow, Instant, Item, Slice, Track
from traces.errors import TraceError

FORWARDS, REQUEST = Track(0, 0, "forwards"), Track(0, 1, "r1")
HOSTILE = [
    "<img src=x onerror=alert(1)>",
    "[bold red]markup[/]",
    '\x1b[31m\x00\n\r\u2028"\\',
    "a\u202eb \u05d0\u05d1",
    "naïve ☃ 🎉",
    "x" * 10_000,
    "",
]


def written(folder: Path, *items: Item, name: str = "t.json") -> Any:
    path = folder / name
    write_chrome(path, items, {"trace": "t"})
    return read_chrome(path)


def test_each_item_becomes_its_event(tmp_path: Path) -> None:
    chrome = written(
        tmp_path,
        Slice(FORWARDS, "EXTEND 8", 1_000, 3_500, {"flops": 2**60}),
        Instant(REQUEST, "token", 4_001),
        Counter(1, "KV pages", 5, {"free": 3, "locked": 0}),
        Flow(7, "late token", FORWARDS, 2_000, REQUEST, 4_000),
    )
    [slice_] = chrome.of("X")
    assert (slice_["name"], slice_["args"]) == ("EXTEND 8", {"flops": 2**60})
    assert (nanoseconds(slice_["ts"]), nanoseconds(slice_["dur"])) == (1_000, 2_500)
    [instant] = chrome.of("i")
    assert (instant["s"], nanoseconds(instant["ts"])) == ("t", 4_001)
    assert "args" not in instant
    [counter] = chrome.of("C")
    assert (counter["pid"], counter["args"]) == (2, {"free": 3, "locked": 0})
    [start], [end] = chrome.of("s"), chrome.of("f")
    assert (start["id"], start["cat"], start["name"]) == (end["id"], end["cat"], end["name"])
    assert end["bp"] == "e"
    assert (start["pid"], start["tid"]) == (slice_["pid"], slice_["tid"])
    assert (end["pid"], end["tid"]) == (instant["pid"], instant["tid"])
    assert chrome.about == {"trace": "t"}


def test_processes_and_threads_are_named_and_sorted_before_they_are_used(tmp_path: Path) -> None:
    other = Track(3, 0, "forwards")
    chrome = written(tmp_path, Slice(REQUEST, "a", 0, 1), Slice(other, "b", 0, 1), Slice(FORWARDS, "c", 0, 1))
    assert {e["args"]["name"] for e in chrome.of("M", "process_name")} == {"rank 0", "rank 3"}
    assert sorted(chrome.threads().values()) == ["forwards", "forwards", "r1"]
    order = {(e["pid"], e["tid"]): e["args"]["sort_index"] for e in chrome.of("M", "thread_sort_index")}
    assert {chrome.threads()[place]: index for place, index in order.items()} == {"forwards": 0, "r1": 1}
    tids = sorted((tid, pid, name) for (pid, tid), name in chrome.threads().items())
    assert [(pid, name) for _, pid, name in tids] == [(1, "forwards"), (1, "r1"), (4, "forwards")]
    assert len({tid for tid, _, _ in tids}) == 3
    assert all(pid > 0 for pid, _ in chrome.threads())
    seen: set[tuple[int, int]] = set()
    for event in chrome.events:
        if event["ph"] == "M":
            seen.add((event["pid"], event["tid"]))
        else:
            assert (event["pid"], event["tid"]) in seen


@pytest.mark.parametrize(
    ("provenance", "name"), [("simulated", "rank 3 (simulated)"), ("measured", "rank 3"), (None, "rank 3")]
)
def test_what_was_not_measured_says_so_beside_the_rank(
    tmp_path: Path, provenance: str | None, name: str
) -> None:
    path = tmp_path / "t.json"
    write_chrome(path, [Slice(Track(3, 0, "forwards"), "a", 0, 1)], {"provenance": provenance})
    assert [e["args"]["name"] for e in read_chrome(path).of("M", "process_name")] == [name]


@given(st.lists(st.tuples(st.integers(0, 60), st.integers(0, 30)), max_size=40))
def test_slices_of_a_thread_nest_and_none_is_lost(spans: list[tuple[int, int]]) -> None:
    ordered = sorted(((start, start + length) for start, length in spans), key=lambda s: (s[0], -s[1]))
    with tempfile.TemporaryDirectory() as folder:
        chrome = written(Path(folder), *(Slice(REQUEST, "s", start, end) for start, end in ordered))
    slices = chrome.of("X")
    assert_nested(slices)
    found = [(nanoseconds(e["ts"]), nanoseconds(e["ts"] + e["dur"])) for e in slices]
    assert found == ordered


def test_an_overlapping_slice_gets_a_further_thread_of_its_track(tmp_path: Path) -> None:
    spans = (("a", 0, 10), ("b", 5, 15), ("c", 12, 13))
    chrome = written(tmp_path, *(Slice(REQUEST, *span) for span in spans))
    places = {e["name"]: chrome.threads()[e["pid"], e["tid"]] for e in chrome.of("X")}
    assert places == {"a": "r1", "b": "r1 (2)", "c": "r1"}


@pytest.mark.parametrize("t_ns", [0, 1, 999, 1_000, -1, -1_001, 2**53 + 1, 2**62 + 3])
def test_times_keep_every_nanosecond(tmp_path: Path, t_ns: int) -> None:
    [event] = written(tmp_path, Instant(REQUEST, "token", t_ns)).of("i")
    assert nanoseconds(event["ts"]) == t_ns


@pytest.mark.parametrize("name", HOSTILE)
def test_names_are_data(tmp_path: Path, name: str) -> None:
    chrome = written(tmp_path, Slice(Track(0, 1, name), name, 0, 1, {"prompts": [name]}))
    [event] = chrome.of("X")
    assert event["name"] == name
    assert event["args"] == {"prompts": [name]}
    assert list(chrome.threads().values()) == [name]


def test_a_compressed_file_holds_the_same_and_only_that(tmp_path: Path) -> None:
    items = [Slice(FORWARDS, f"s{i}", i, i + 1) for i in range(100)]
    plain, packed = written(tmp_path, *items), written(tmp_path, *items, name="t.json.gz")
    assert packed == plain
    again = tmp_path / "again.json.gz"
    write_chrome(again, items, {"trace": "t"})
    assert again.read_bytes() == (tmp_path / "t.json.gz").read_bytes()
    assert (tmp_path / "t.json.gz").stat().st_size < (tmp_path / "t.json").stat().st_size / 4


def test_the_number_of_events_is_told(tmp_path: Path) -> None:
    assert write_chrome(tmp_path / "t.json", [Slice(FORWARDS, "a", 0, 1)], {}) == 5
    assert write_chrome(tmp_path / "none.json", [], {}) == 0
    assert read_chrome(tmp_path / "none.json").events == []


@pytest.mark.parametrize("name", ["t", "t.txt", "t.gz", "t.JSON"])
def test_another_suffix_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(TraceError, match=r"ends in \.json or \.json\.gz: give .*\.json$"):
        write_chrome(tmp_path / name, [], {})
    assert not list(tmp_path.iterdir())


def test_what_exists_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "t.json").write_text("mine")
    (tmp_path / "dangling.json").symlink_to(tmp_path / "nowhere")
    for name in ("t.json", "dangling.json"):
        with pytest.raises(TraceError, match="already exists"):
            write_chrome(tmp_path / name, [], {})
    assert (tmp_path / "t.json").read_text() == "mine"


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match=r"no/t\.json: cannot be written: No such file"):
        write_chrome(tmp_path / "no" / "t.json", [], {})


@pytest.mark.parametrize("name", ["t.json", "t.json.gz"])
def test_a_full_disk_leaves_nothing(tmp_path: Path, name: str) -> None:
    many = (Slice(FORWARDS, f"{i * 0x9E3779B1 % 2**32:x}", i, i + 1) for i in range(40_000))
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, before[1]))
    try:
        with pytest.raises(TraceError, match=r"cannot be written: File too large"):
            write_chrome(tmp_path / name, many, {})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("stop", [KeyboardInterrupt, TraceError("corrupt trace")])
def test_an_interrupted_export_leaves_nothing(tmp_path: Path, stop: Any) -> None:
    def broken() -> Iterator[Item]:
        yield Slice(FORWARDS, "a", 0, 1)
        raise stop

    with pytest.raises(type(stop) if isinstance(stop, Exception) else stop):
        write_chrome(tmp_path / "t.json", broken(), {})
    assert not list(tmp_path.iterdir())


def test_items_are_not_kept(tmp_path: Path) -> None:
    numbers = count()

    def many(length: int) -> Iterator[Item]:
        for _ in range(length):
            i = next(numbers)
            yield Slice(FORWARDS, f"slice {i}", i, i + 1, {"forward_id": i})

    write_chrome(tmp_path / "warm-up.json", many(10), {})
    tracemalloc.start()
    try:
        write_chrome(tmp_path / "t.json", many(5_000), {})
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (tmp_path / "t.json").stat().st_size > 400_000
    assert peak_bytes < 100_000
