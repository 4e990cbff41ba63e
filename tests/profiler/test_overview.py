"""What the Overview page composes of a run, and its sentences."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from engine.batch import ForwardMode
from profiler.ledger.parts import Chunk, GapDetail, GapForward, PartKind
from profiler.ledger.report import StallGroup
from profiler.overview import overview
from profiler.overview_pool import PoolLosses, pool_losses
from profiler.overview_price import is_priced, predicted_price
from profiler.overview_waits import longest_waits, queued_behind
from profiler.overview_words import effect
from profiler.price_rows import Options
from profiler.timeline.requests import requests_of
from profiler.timeline.timeline import open_timeline
from tests.support.price_row import ROW
from tests.support.rewritten import rewrite
from tests.support.three_runs import record_three_runs

MS = 1_000_000


@pytest.fixture(scope="module")
def paths(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return record_three_runs(tmp_path_factory.mktemp("overview"))


def group(cause: PartKind, late_ms: int = 990, requests: int = 6) -> StallGroup:
    """A second of waiting."""
    names = tuple(f"r{i + 1}" for i in range(requests))
    rids = tuple(range(requests))
    return StallGroup(
        start_ns=0,
        end_ns=1000 * MS,
        own_forward_id=9,
        cause=cause,
        rids=rids,
        names=names,
        token_index=3,
        gap_ns=1000 * MS,
        late_ns=late_ms * MS,
        lost_ns=late_ms * MS * requests,
        by_kind={cause: late_ms * MS, PartKind.OWN_DECODE: (1000 - late_ms) * MS},
        culprits=(),
    )


def gap(prefills: int) -> GapDetail:
    """One with so many prefill forwards of others before its own."""
    forwards = [
        GapForward(i, ForwardMode.EXTEND.name, i * MS, (i + 1) * MS, MS, 128, 0) for i in range(prefills)
    ]
    own = GapForward(9, ForwardMode.DECODE.name, 900 * MS, 1000 * MS, 100 * MS, 0, 6)
    return GapDetail(
        rid=0,
        name="r1",
        token_index=3,
        start_ns=0,
        end_ns=1000 * MS,
        median_gap_ns=None,
        own_forward_id=9,
        own_mode=own.mode,
        own_start_ns=own.start_ns,
        forwards=(*forwards, own),
        culprits=(),
        chunks=(),
        costliest=None,
        mixed_extra_ns=None,
        mixed_extra_estimator=None,
    )


def test_it_holds_what_the_analyses_say(paths: dict[str, Path]) -> None:
    timeline = open_timeline(paths["chunked"])
    told = overview(timeline)
    assert told.kpis == timeline.kpis
    assert told.report is timeline.stall_report
    assert told.longest == timeline.worst_gap()
    assert told.sums.forwards == timeline.num_forwards
    assert told.kv_token_bytes is None  # these traces name no model
    assert told.pool == PoolLosses(0, 0)


def test_who_waited_longest_is_whose_wait_the_number_is(paths: dict[str, Path]) -> None:
    timeline = open_timeline(paths["chunked"])
    requests, kpis = requests_of(timeline.trace), timeline.kpis
    first, queued = longest_waits(requests, kpis)
    assert first is not None
    assert (first.name, first.prompt_tokens, first.wait_ns / 1e9) == ("long-1", 1200, kpis.ttft_s.max)
    assert queued is not None
    assert (queued.name, queued.wait_ns / 1e9) == ("short-1", kpis.queue_longest_s)
    assert overview(timeline).behind == ("long-1",)
    assert queued_behind(None) == ()
    elsewhere = replace(kpis, ttft_s=replace(kpis.ttft_s, max=99.0))
    assert longest_waits(requests, elsewhere)[0] is None  # rows that say otherwise name nobody


def test_what_a_trace_does_not_tell_is_none(paths: dict[str, Path], tmp_path: Path) -> None:
    tables = ("forwards", "rows", "requests", "events", "pages", "kernels")
    nothing = open_timeline(rewrite(paths["chunked"], tmp_path / "nothing.chunkscope", without=tables))
    told = overview(nothing)
    assert (told.longest, told.report.longest, told.first_token, told.queued) == (None, None, None, None)
    assert pool_losses(nothing.trace) == PoolLosses(None, None)


@pytest.mark.parametrize(
    ("longest", "gap", "said"),
    [
        (
            group(PartKind.OTHERS_PREFILL),
            gap(8),
            "Decodes stop for up to 1.00 s, because prefill always goes first.",
        ),
        (
            group(PartKind.OTHERS_PREFILL, requests=1),
            gap(1),
            "A decode stops for up to 1.00 s, because a prefill forward goes first.",
        ),
        (
            group(PartKind.MIXED_EXTRA),
            gap(0),
            "Decodes wait up to 1.00 s for a token, because prompts ride along in decode forwards.",
        ),
        (
            group(PartKind.SIT_OUT),
            gap(0),
            "Decodes stop for up to 1.00 s, because the KV pool has no page left.",
        ),
        (
            group(PartKind.UNTOLD),
            gap(0),
            "Decodes stop for up to 1.00 s, because of what the trace does not tell.",
        ),
        (
            group(PartKind.OTHERS_PREFILL, late_ms=400),
            gap(1),
            "No decode is held up for long: the longest wait for a token is 1.00 s.",
        ),
    ],
)
def test_the_first_sentence_names_effect_and_cause(longest: StallGroup, gap: GapDetail, said: str) -> None:
    assert effect(longest, gap) == said


def test_a_whole_prompt_is_named_as_such() -> None:
    whole = Chunk(7, "r7", 1, 1, 0, 4096, 0, 0, MS, MS)
    said = effect(group(PartKind.OTHERS_PREFILL), replace(gap(1), chunks=(whole,)))
    assert said == "Decodes stop for up to 1.00 s, because a whole prompt is one forward."


@pytest.mark.parametrize("kind", [kind for kind in PartKind if kind > PartKind.OWN_OTHER])
def test_every_cause_has_words(kind: PartKind) -> None:
    assert ", because " in effect(group(kind), gap(2))


def advice(*rows: Any, choice: Any = None, kind: str = "all") -> Any:
    workload = SimpleNamespace(kind=kind, requests=(1, 2), of_requests=1200)
    return SimpleNamespace(rows=rows, choice=SimpleNamespace(row=choice), workload=workload)


def test_the_price_is_that_of_the_own_options_with_mixing_if_it_helps() -> None:
    own = replace(ROW, options=Options(2048), longest_wait_s=1.5, ttft_long_s=1.0)
    mixed = replace(ROW, options=Options(2048, mixed=True), longest_wait_s=0.1, ttft_long_s=1.06)
    other = replace(ROW, options=Options(512, mixed=True), longest_wait_s=0.05, ttft_long_s=1.0)
    engine = {"chunked_prefill_size": 2048, "enable_mixed_chunk": False, "prefill_decode_interval": 0}
    assert predicted_price(advice(own, mixed, other, choice=other), engine) == (
        "Predicted with --enable-mixed-chunk: longest wait 100 ms instead of 1.50 s, "
        "first token of the longest prompt 6 % later."
    )
    assert predicted_price(advice(own, other, choice=other), engine) == (
        "Predicted with --chunked-prefill-size 512 --enable-mixed-chunk: longest wait 50.0 ms instead of "
        "1.50 s, first token of the longest prompt as soon as now."
    )
    assert predicted_price(advice(mixed, own, choice=mixed), {**engine, "enable_mixed_chunk": True}) is None
    assert predicted_price(advice(other, choice=other), engine) is None  # the own ones were not tried
    some = predicted_price(advice(own, mixed, choice=other, kind="stretch"), engine)
    assert some is not None
    assert some.startswith("Predicted for 2 of its 1,200 requests with --enable-mixed-chunk: ")


def test_only_waits_that_options_of_chunks_may_shorten_are_priced() -> None:
    assert is_priced(group(PartKind.OTHERS_PREFILL))
    assert not is_priced(group(PartKind.OTHERS_PREFILL, late_ms=300))
    assert not is_priced(group(PartKind.PLAN))
    assert not is_priced(None)
