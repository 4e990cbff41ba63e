"""The Stalls page's further parts: what would change a gap, and what first tokens waited for."""

from dataclasses import replace
from pathlib import Path

import pytest

from engine.batch import StopReason
from profiler.ledger.parts import GapDetail, Part, PartKind
from profiler.ledger.ttft_parts import TtftKind, TtftLedger, TtftPart
from profiler.price_rows import Options
from profiler.timeline.timeline import Timeline, open_timeline
from tests.support.dash_parts import data_of, rows, words
from tests.support.price_row import ROW
from tests.support.three_runs import record_three_runs
from ui.web.pages import stalls_advice
from ui.web.pages.saturation_evidence import EvidenceOf
from ui.web.pages.stalls_advice import MendOf, advised, change_parts
from ui.web.pages.stalls_rows import MOST_ROWS
from ui.web.pages.stalls_ttft import TtftOf, ttft_parts
from ui.web.runs import Run, make_runs

MS = 1_000_000


@pytest.fixture(scope="module")
def timelines(tmp_path_factory: pytest.TempPathFactory) -> list[Timeline]:
    paths: dict[str, Path] = record_three_runs(tmp_path_factory.mktemp("change"))
    return [open_timeline(paths[name]) for name in ("whole", "chunked")]


@pytest.fixture(scope="module")
def runs(timelines: list[Timeline]) -> tuple[Run, ...]:
    return make_runs(timelines)


def worst(run: Run) -> GapDetail:
    gap = run.timeline.worst_gap()
    assert gap is not None
    return gap


def test_first_tokens_sum_to_their_times(runs: tuple[Run, ...]) -> None:
    run = runs[1]
    totals, ledgers = TtftOf()(run)
    parts = ttft_parts(run, totals, ledgers)
    shown = rows(parts["ttft"])
    assert [data_of(row, "ns") for row in shown] == [ledger.ttft_ns for ledger in ledgers]
    for row in shown:
        cells = [data_of(cell, "ns") for cell in row.children if hasattr(cell, "data-ns")]
        assert sum(cells) == data_of(row, "ns")
    told = words(parts["ttft"])
    assert "chunk budget" in told
    assert "held by long-1" in told
    assert parts["ttft-section"] is False
    assert f"{totals.requests} requests" in str(parts["ttft-note"])


def test_what_blocked_a_request_is_named_as_far_as_it_is_told(runs: tuple[Run, ...]) -> None:
    totals, ledgers = TtftOf()(runs[1])
    parts = (
        TtftPart(TtftKind.BLOCKED, 5 * MS, budget=StopReason.MAX_REQUESTS, behind_rid=3, behind_name="a\nb"),
        TtftPart(TtftKind.BLOCKED, MS),
        TtftPart(TtftKind.UNTOLD, MS),
    )
    ledger = TtftLedger(1, "<i>", 0, 7 * MS, parts, "tokens")
    told = words(ttft_parts(runs[1], totals, [ledger])["ttft"])
    assert "max requests, not told by what, behind a\\nb" in told
    assert "<i>" in told
    under_way = replace(ledger, parts=(TtftPart(TtftKind.QUEUED, 7 * MS, chunk=worst(runs[1]).chunks[0]),))
    assert "by none: long-1 ran as it arrived" in words(ttft_parts(runs[1], totals, [under_way])["ttft"])
    assert f"{totals.requests - MOST_ROWS:,}" in told or totals.requests <= MOST_ROWS
    assert ttft_parts(runs[1], totals, [])["ttft-section"] is True
    assert ledgers


META = {"engine": {"chunked_prefill_size": 128}}


def test_advice_that_cannot_be_given_leaves_the_causes_option(
    runs: tuple[Run, ...], timelines: list[Timeline]
) -> None:
    told = words(change_parts(runs[1], worst(runs[1]), EvidenceOf(timelines), MendOf()))
    assert "--enable-mixed-chunk" in told
    assert "No other options were tried: " in told


def test_other_causes_than_chunks_need_no_trial(runs: tuple[Run, ...], timelines: list[Timeline]) -> None:
    gap = worst(runs[1])
    retracted = replace(gap, parts=(Part(PartKind.RETRACTED, gap.gap_ns, 0),))
    told = words(change_parts(runs[1], retracted, EvidenceOf(timelines), MendOf()))
    assert "--schedule-conservativeness" in told
    assert "tried" not in told
    idle = replace(gap, parts=(Part(PartKind.IDLE, gap.gap_ns),))
    assert "No option" in words(change_parts(runs[1], idle, EvidenceOf(timelines), MendOf()))


def test_what_findings_name_is_asked_once(runs: tuple[Run, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    mend_of = MendOf()
    first = mend_of(runs[1], PartKind.RETRACTED)
    monkeypatch.setattr(stalls_advice, "for_cause", None)
    assert mend_of(runs[1], PartKind.RETRACTED) is first


class _Choice:
    def __init__(self, row: object) -> None:
        self.row = row


class _Advice:
    """As much of `Advice` as the page reads."""

    def __init__(self, row: object, rows_: tuple[object, ...], model: object = None) -> None:
        self.choice, self.rows, self.basis = _Choice(row), rows_, type("Basis", (), {"model": model})()


def test_advice_stands_beside_what_the_run_has() -> None:
    own = replace(ROW, options=Options(128), longest_wait_s=0.33, ttft_long_s=0.066)
    told = words(advised(_Advice(ROW, (own, ROW)), META))  # type: ignore[arg-type]
    assert "--chunked-prefill-size 512 --enable-mixed-chunk" in told
    assert "longest wait 330 ms → 33.0 ms −90 %" in told
    assert "TTFT of the longest prompt 66.0 ms → 66.0 ms as long" in told
    assert "Simulated" in told
    unknown = words(advised(_Advice(ROW, (ROW,)), META))  # type: ignore[arg-type]
    assert "longest wait – → 33.0 ms –" in unknown
    same = words(advised(_Advice(own, (own, ROW), model=1), META))  # type: ignore[arg-type]
    assert "has the recommended options already" in same
    assert "fitted to its forwards" in same
