"""Rounds of the scheduler under policies, intervals, priorities and aligned cuts."""

import pytest

from engine.batch import ForwardMode, Outcome, StopReason
from engine.engine import Engine
from engine.observer import EventKind
from engine.request import Request
from tests.support.engines import Prompts, extents, make_engine, pool_tokens, rows, run_all
from tests.support.hash_executor import one_shot
from tests.support.pool_checks import check_pool
from tests.support.told import Told


def _submit(engine: Engine, *requests: Request) -> None:
    for request in requests:
        engine.submit(request)


def _modes(engine: Engine, rounds: int) -> str:
    """The first letter of each round's mode, - where nothing ran."""
    records = [engine.step() for _ in range(rounds)]
    return "".join(r.batch.mode.name[0] if r else "-" for r in records)


# -- the interval ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("interval", "mixed", "modes"),
    [
        (0, False, "EEEEDD"),
        (1, False, "DEDEDEDED"),
        (2, False, "DDEDDEDDEDDE"),
        (2, True, "DDMDDMDDMDDM"),
    ],
)
def test_decodes_come_between_chunks(interval: int, mixed: bool, modes: str) -> None:
    engine = make_engine(chunked_prefill_size=64, enable_mixed_chunk=mixed, prefill_decode_interval=interval)
    prompts = Prompts()
    engine.submit(prompts.request(5, 100))
    engine.step()
    engine.submit(prompts.request(250, 100))
    assert _modes(engine, len(modes)) == modes


@pytest.mark.parametrize(("least", "modes"), [(3, "DDEDDE"), (4, "EEEE")])
def test_few_running_requests_defer_no_prefill(least: int, modes: str) -> None:
    engine = make_engine(
        chunked_prefill_size=64, prefill_decode_interval=2, prefill_decode_interval_min_bs=least
    )
    prompts = Prompts()
    _submit(engine, *(prompts.request(5, 100) for _ in range(3)))
    engine.step()
    engine.submit(prompts.request(250, 100))
    assert _modes(engine, len(modes)) == modes


def test_nothing_is_deferred_when_nothing_runs() -> None:
    # SGLang gives E--E-- here, and E D D E D - E - - once the running request has ended.
    engine, prompts = make_engine(chunked_prefill_size=64, prefill_decode_interval=2), Prompts()
    engine.submit(prompts.request(250, 4))
    assert _modes(engine, 4) == "EEEE"
    run_all(engine)
    engine.submit(prompts.request(5, 4))
    engine.step()
    engine.submit(prompts.request(250, 1))
    assert _modes(engine, 8) == "DDEDEEE-"


def test_a_deferral_names_who_was_kept_waiting() -> None:
    told = Told()
    engine = make_engine(observer=told, chunked_prefill_size=64, prefill_decode_interval=2)
    prompts = Prompts()
    engine.submit(prompts.request(5, 100))
    engine.step()
    assert _modes(engine, 2) == "DD"
    assert not told.of(EventKind.DEFER), "nobody waited"
    engine.submit(long := prompts.request(250, 100))
    assert _modes(engine, 4) == "EDDE"
    deferred = told.records[-3:-1]
    stops = [(r.plan.stop_reason, r.plan.blocked_rid) for r in deferred]
    assert stops == [(StopReason.INTERVAL, long.rid)] * 2
    assert [(e.rid, e.forward_id) for e in told.of(EventKind.DEFER)] == [
        (long.rid, r.batch.forward_id) for r in deferred
    ]


# -- how many and how long ------------------------------------------------------------------------------


def test_a_forward_takes_at_most_so_many_requests() -> None:
    engine, prompts = make_engine(chunked_prefill_size=64, prefill_max_requests=2), Prompts()
    _submit(engine, *(prompts.request(5, 3) for _ in range(5)))
    records = run_all(engine)
    assert [len(rows(r)) for r in records[:3]] == [2, 2, 1]
    stops = [r.plan.stop_reason for r in records[:3]]
    assert stops == [StopReason.MAX_REQUESTS, StopReason.MAX_REQUESTS, StopReason.QUEUE_EMPTY]
    assert [r.plan.blocked_rid for r in records[:3]] == [2, 4, None]


def test_only_the_first_cut_is_aligned() -> None:
    engine = make_engine(page_size=16, chunked_prefill_size=208, truncation_align_size=64)
    prompts = Prompts()
    engine.submit(prompts.request(48, 1, share=(1, 48)))
    run_all(engine)
    engine.submit(prompts.request(600, 1, share=(1, 48), name="long"))
    assert extents(run_all(engine), "long") == [(48, 240), (240, 448), (448, 600)]


def test_as_many_decode_rows_as_the_chunk_has_tokens_let_nobody_in() -> None:
    engine = make_engine(chunked_prefill_size=64, enable_mixed_chunk=True, max_running_requests=100)
    prompts = Prompts()
    _submit(engine, *(prompts.request(1, 20) for _ in range(80)))
    records = run_all(engine)
    assert [len(rows(r)) for r in records[:20]] == [64] * 20
    assert [r.batch.mode for r in records[1:20]] == [ForwardMode.DECODE] * 19
    assert len(rows(records[20])) == 16


def test_a_chunk_among_many_decode_rows_takes_what_they_leave() -> None:
    engine = make_engine(chunked_prefill_size=64, enable_mixed_chunk=True, max_running_requests=100)
    prompts = Prompts()
    _submit(engine, *(prompts.request(1, 100) for _ in range(40)))
    engine.step()
    _submit(engine, *(prompts.request(1, 100) for _ in range(22)), prompts.request(300, 5, name="long"))
    records = [engine.step() for _ in range(4)]
    assert extents([r for r in records if r], "long") == [(0, 2), (2, 4), (4, 6), (6, 8)]
    assert [len(rows(r)) for r in records] == [63] * 4


def test_a_mixed_row_that_ends_leaves_its_whole_pages() -> None:
    engine, prompts = make_engine(page_size=16, chunked_prefill_size=64, enable_mixed_chunk=True), Prompts()
    engine.submit(short := prompts.request(20, 3))
    _, _ = engine.step(), engine.step()
    engine.submit(prompts.request(200, 3))
    record = engine.step()
    assert record is not None
    assert (record.batch.mode, short.finished) == (ForwardMode.MIXED, True)
    assert engine.cache.tree.evictable_tokens == 16  # of 22 with KV


# -- order ----------------------------------------------------------------------------------------------


def _first_rows(policy: str, *requests: Request) -> list[str]:
    engine = make_engine(chunked_prefill_size=4096, schedule_policy=policy)
    _submit(engine, *requests)
    return [name for name, _, _ in rows(engine.step())]


def test_longest_output_first() -> None:
    prompts = Prompts()
    waiting = [prompts.request(10, new, name=name) for name, new in (("a", 5), ("b", 50), ("c", 20))]
    assert _first_rows("lof", *waiting) == ["b", "c", "a"]


def test_shortest_prefill_first() -> None:
    prompts = Prompts()
    waiting = [prompts.request(n, 5, name=name) for name, n in (("a", 300), ("b", 5), ("c", 90))]
    assert _first_rows("shortest-prefill-first", *waiting) == ["b", "c", "a"]


def test_a_repeated_prompt_waits_for_the_first_to_leave_its_prefix() -> None:
    engine = make_engine(chunked_prefill_size=120, schedule_policy="lpm")
    prompts = Prompts()
    _submit(
        engine,
        prompts.request(100, 5, share=(1, 90), name="a"),
        prompts.request(100, 5, share=(1, 90), name="again"),
        prompts.request(20, 5, name="other"),
    )
    assert rows(engine.step()) == [("a", 0, 100), ("other", 0, 20)]
    assert rows(engine.step()) == [("again", 90, 100)]


def test_without_a_prefix_cache_every_policy_that_asks_it_is_first_come_first_served() -> None:
    engine = make_engine(chunked_prefill_size=4096, schedule_policy="lpm", disable_radix_cache=True)
    prompts = Prompts()
    _submit(engine, *(prompts.request(100, 5, share=(1, 90), name=name) for name in "abc"))
    assert [name for name, _, _ in rows(engine.step())] == ["a", "b", "c"]


# -- priorities -----------------------------------------------------------------------------------------


def _preempting(
    told: Told | None = None, urgent: tuple[int, int] = (10, 5), **options: object
) -> tuple[Engine, list[Request]]:
    """Two slots, taken by requests of priority 0 that have given three tokens, and an urgent one waiting.

    `urgent` is its prompt's length and its `max_new_tokens`.
    """
    defaults = {"chunked_prefill_size": 64, "max_running_requests": 2, "enable_priority_scheduling": True}
    engine, prompts = make_engine(observer=told, **(defaults | options)), Prompts()  # type: ignore[arg-type]
    running = [prompts.request(10, 30, name="old"), prompts.request(10, 30, name="new")]
    for at, request in enumerate(running):
        request.arrival_ns = at
    _submit(engine, *running)
    while running[1].output_len < 3:
        engine.step()
    waiting = prompts.request(*urgent, name="urgent")
    waiting.priority = 11
    engine.submit(waiting)
    return engine, [*running, waiting]


def test_the_newest_of_the_least_urgent_gives_its_slot_to_an_urgent_request() -> None:
    told = Told()
    engine, requests = _preempting(told)
    _, victim, urgent = requests
    assert rows(engine.step()) == [("urgent", 0, 10)]
    assert (victim.attempt, victim.retractions, victim.row) == (1, 1, None)
    assert [(e.rid, e.attempt, e.detail) for e in told.of(EventKind.PREEMPT)] == [
        (victim.rid, 0, f"for request {urgent.rid}")
    ]
    assert [e.rid for e in told.of(EventKind.REQUEUE)] == [victim.rid]
    run_all(engine)
    order = [r.name for r in sorted(requests, key=lambda r: r.finish_ns or 0)]
    assert order == ["urgent", "old", "new"]
    assert all(r.output_ids == one_shot(r.prompt_token_ids, r.max_new_tokens) for r in requests)


def test_a_slot_is_asked_for_again_after_a_request_found_none() -> None:
    engine = make_engine(chunked_prefill_size=64, max_running_requests=1, enable_priority_scheduling=True)
    prompts = Prompts()
    _submit(engine, prompts.request(10, 30), prompts.request(10, 30))
    assert _modes(engine, 3) == "EDD"
    urgent = prompts.request(10, 5, name="urgent")
    urgent.priority = 11
    engine.submit(urgent)
    assert rows(engine.step()) == [("urgent", 0, 10)]


@pytest.mark.parametrize(
    "options", [{"disable_priority_preemption": True}, {"priority_scheduling_preemption_threshold": 11}]
)
def test_without_preemption_an_urgent_request_waits_for_a_slot(options: dict[str, object]) -> None:
    engine, requests = _preempting(**options)
    run_all(engine)
    assert [r.retractions for r in requests] == [0, 0, 0]


def test_an_urgent_request_that_no_victims_can_make_room_for_takes_nobody_s_slot() -> None:
    # 42 of 120 tokens are neither held nor reserved, and both victims together reserve 54.
    for max_new, waits in ((37, True), (36, False)):
        engine, requests = _preempting(urgent=(60, max_new), pool=120)
        assert (rows(engine.step()) == [("old", 12, 13), ("new", 12, 13)]) == waits
        assert [r.retractions for r in requests] == ([0, 0, 0] if waits else [1, 1, 0])


def test_a_result_that_was_outstanding_at_the_preemption_changes_nothing() -> None:
    told = Told()
    engine, (_, victim, urgent) = _preempting(told, disable_overlap_schedule=False)
    kept = victim.output_len
    record = engine.step()
    assert record is not None
    outcomes = dict(zip((n for n, _, _ in rows(record)), record.outcomes.tolist(), strict=True))
    assert outcomes == {"old": Outcome.EMITTED, "new": Outcome.RETRACTED}
    assert victim.output_len == kept
    run_all(engine)
    for request in (victim, urgent):
        assert request.output_ids == one_shot(request.prompt_token_ids, request.max_new_tokens)


def test_what_an_urgent_request_has_cached_needs_no_room() -> None:
    engine = make_engine(
        132, chunked_prefill_size=256, max_running_requests=1, enable_priority_scheduling=True
    )
    prompts = Prompts()
    engine.submit(prompts.request(100, 1, share=(1, 100), name="cached"))
    run_all(engine)
    engine.submit(prompts.request(20, 60))
    _ = [engine.step() for _ in range(3)]
    assert pool_tokens(engine) == (10, 100, 20)  # 110 more tokens are more than these and the victim's 57
    urgent = prompts.request(110, 2, share=(1, 100), name="urgent")
    urgent.priority = 11
    engine.submit(urgent)
    assert rows(engine.step()) == [("urgent", 100, 110)]


def test_making_way_may_evict_what_the_urgent_request_had_matched() -> None:
    engine = make_engine(
        260, chunked_prefill_size=256, max_running_requests=5, enable_priority_scheduling=True
    )
    prompts = Prompts()
    engine.submit(prompts.request(100, 1, share=(1, 100), name="cached"))
    run_all(engine)
    _submit(engine, *(prompts.request(20, 12) for _ in range(5)))
    _ = [engine.step() for _ in range(4)]
    assert pool_tokens(engine) == (45, 100, 100)
    urgent = prompts.request(110, 2, share=(1, 100), name="urgent")
    urgent.priority = 11
    engine.submit(urgent)
    # Four stay and get room for 20 tokens each: 80, which takes the victim's prompt and the cached prefix.
    assert rows(engine.step()) == [("urgent", 0, 110)]
    check_pool(engine.cache, engine.requests.values())
    run_all(engine)
    assert urgent.output_ids == one_shot(urgent.prompt_token_ids, 2)


def test_a_preempted_request_that_must_drain_starts_again_when_it_is_alone() -> None:
    # Its 17 tokens round up to a page more than the 16 that its arrival was checked with.
    engine = make_engine(
        160,
        page_size=16,
        chunked_prefill_size=64,
        max_running_requests=1,
        disable_radix_cache=True,
        enable_priority_scheduling=True,
    )
    prompts = Prompts()
    engine.submit(victim := prompts.request(16, 1000))
    engine.step()
    urgent = prompts.request(5, 3)
    urgent.priority = 11
    engine.submit(urgent)
    run_all(engine)
    assert (victim.retractions, victim.output_len) == (1, victim.max_new_tokens)


@pytest.mark.parametrize(("low_first", "order"), [(False, "bdac"), (True, "acbd")])
def test_urgent_requests_are_admitted_first(low_first: bool, order: str) -> None:
    engine = make_engine(
        chunked_prefill_size=64, enable_priority_scheduling=True, schedule_low_priority_values_first=low_first
    )
    prompts = Prompts()
    for name, priority in (("a", 0), ("b", 5), ("c", 0), ("d", 5)):
        request = prompts.request(5, 3, name=name)
        request.priority = priority
        engine.submit(request)
    assert "".join(name for name, _, _ in rows(engine.step())) == order
