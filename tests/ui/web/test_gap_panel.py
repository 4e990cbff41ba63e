"""The panel of a chosen gap: its ledger sums on screen, chunks lead to their instants, names are data."""

from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from profiler.ledger.lines import ledger_lines
from profiler.ledger.parts import GapDetail
from profiler.timeline.timeline import Timeline, open_timeline
from tests.support.dash_parts import data_of, links, rows, words
from tests.support.three_runs import record_three_runs
from ui.web.gap_panel import gap_panel
from ui.web.instants import instant_query
from ui.web.ledger_table import chunk_name, even_ms, ledger_table
from ui.web.runs import Run, make_runs

NAMES = ("whole", "chunked", "mixed")


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Run, ...]:
    paths: dict[str, Path] = record_three_runs(tmp_path_factory.mktemp("panel"))
    timelines: list[Timeline] = [open_timeline(paths[name]) for name in NAMES]
    return make_runs(timelines)


def worst(run: Run) -> GapDetail:
    gap = run.timeline.worst_gap()
    assert gap is not None
    return gap


def parts_ns(table: object) -> tuple[list[int], list[int]]:
    """Nanoseconds of the lines, and of the sum."""
    told = rows(table)
    sums = [data_of(row, "ns") for row in told if getattr(row, "className", None) == "total"]
    return [data_of(row, "ns") for row in told if getattr(row, "className", None) != "total"], sums


@pytest.mark.parametrize("index", range(len(NAMES)))
def test_the_lines_on_screen_sum_to_the_gap(runs: tuple[Run, ...], index: int) -> None:
    run = runs[index]
    for row in run.timeline.stalls.head(20).iter_rows(named=True):
        gap = run.timeline.gap(row["rid"], row["token_index"])
        assert gap is not None
        lines, sums = parts_ns(ledger_table(run, gap, 2))
        assert sum(lines) == sums[0] == gap.gap_ns
        assert len(lines) <= len(ledger_lines(gap))


def test_the_ledger_of_a_wall_names_its_chunks_and_proves_its_sum(runs: tuple[Run, ...]) -> None:
    told = words(gap_panel(runs, runs[1], worst(runs[1])))
    assert "long-1, chunks 1–10" in told
    assert "gap, parts sum exactly" in told
    assert "✓" in told
    assert "others' prefill" not in told.split("Ledger of this gap")[1].split("Cost of each chunk")[0]
    assert "rounds in a row, and prefill goes first" in told
    assert "--enable-mixed-chunk" in told


def test_a_ledger_that_does_not_sum_is_not_said_to(runs: tuple[Run, ...]) -> None:
    gap = worst(runs[1])
    wrong = replace(gap, end_ns=gap.end_ns + 1)
    told = words(ledger_table(runs[1], wrong, 6))
    assert "do not sum" in told
    assert "✕" in told


def test_more_culprits_than_there_is_room_for_are_one_line(runs: tuple[Run, ...]) -> None:
    gap = max((worst(run) for run in runs), key=lambda each: len(each.culprits))
    run = next(run for run in runs if worst(run) == gap)
    assert len(gap.culprits) > 1
    told = words(ledger_table(run, gap, 1))
    assert f"{len(gap.culprits) - 1} more culprit" in told


@pytest.mark.parametrize("index", range(len(NAMES)))
def test_the_largest_line_comes_first_and_own_decode_last(runs: tuple[Run, ...], index: int) -> None:
    gap = worst(runs[index])
    *told, _total = rows(ledger_table(runs[index], gap, 1))
    labels = [words(line.children[0]).strip() for line in told]
    own = [label for label in labels if label in ("own decode", "its other decode forwards")]
    assert labels[len(labels) - len(own) :] == own
    assert own[-1:] == ([] if gap.late_ns == gap.gap_ns else ["own decode"])
    others = [line for line in told[: len(told) - len(own)] if "more culprit" not in words(line)]
    sizes = [data_of(line, "ns") for line in others]
    assert sizes == sorted(sizes, reverse=True)


def test_bars_and_lines_lead_to_the_forward_of_their_chunk(runs: tuple[Run, ...]) -> None:
    run, gap = runs[1], worst(runs[1])
    found = links(gap_panel(runs, run, gap))
    starts = {chunk.start_ns - run.timeline.start_ns for chunk in gap.chunks}
    bars = [link for link in found if hasattr(link, "data-ns")]
    assert {int(query(link)["t"]) for link in bars} == starts
    assert sum(data_of(link, "ns") for link in bars) == sum(each.device_ns for each in gap.culprits)
    assert all(query(link)["rid"] == str(gap.rid) for link in found)
    assert all(query(link)["run"] == "1" for link in found)


def query(link: Any) -> dict[str, str]:
    parts = urlsplit(link.href)
    assert parts.path == "/compare"
    return {key: values[0] for key, values in parse_qs(parts.query).items()}


def test_an_instant_is_shown_with_its_surroundings_within_the_run(runs: tuple[Run, ...]) -> None:
    timeline = runs[0].timeline
    last = timeline.end_ns - timeline.start_ns
    wide = instant_query(runs[0], timeline.start_ns, timeline.end_ns)
    assert (wide["t0"], wide["t1"], wide["t"]) == (0, last, 0)
    narrow = instant_query(runs[0], timeline.end_ns - 10, timeline.end_ns, (3, 4))
    assert narrow["t0"] < narrow["t"] == last - 10 < narrow["t1"] <= last
    assert (narrow["rid"], narrow["tok"]) == (3, 4)
    outside = instant_query(runs[0], timeline.start_ns - 5, timeline.start_ns + 5)
    assert outside["t"] == outside["t0"] == 0


def test_a_name_is_text_on_one_line(runs: tuple[Run, ...]) -> None:
    gap = worst(runs[1])
    hostile = "<b>x</b>\n\u202e" + "y" * 100
    chunks = {chunk: replace(chunk, name=hostile) for chunk in gap.chunks}
    parts = tuple(
        part if part.chunk is None else replace(part, chunk=replace(part.chunk, name=hostile))
        for part in gap.parts
    )
    marked = replace(
        gap,
        parts=parts,
        chunks=tuple(chunks.values()),
        costliest=gap.costliest and chunks[gap.costliest],
        culprits=tuple(replace(each, name=hostile) for each in gap.culprits),
    )
    told = words(gap_panel(runs, runs[1], marked))
    assert "\n" not in told
    assert "\u202e" not in told
    assert "y" * 60 not in told
    assert "<b>x</b>\\n" in told


@pytest.mark.parametrize(
    ("part_ns", "whole_ns", "text"),
    [
        (1_158_200_000, 1_525_000_000, "1,158.2 ms"),
        (9_180_000, 1_525_000_000, "9.2 ms"),
        (1_234_567, 9_000_000, "1.23 ms"),
        (1_234, 90_000, "0.0012 ms"),
    ],
)
def test_parts_of_one_whole_have_one_precision(part_ns: int, whole_ns: int, text: str) -> None:
    assert even_ms(part_ns, whole_ns) == text


@pytest.mark.parametrize(
    ("number", "of", "text"), [(3, 16, "r7 chunk 3/16"), (1, 1, "r7 whole"), (3, None, "r7 chunk 3")]
)
def test_a_chunk_is_named_by_its_place_in_the_prompt(number: int, of: int | None, text: str) -> None:
    assert chunk_name("r7", number, of) == text
