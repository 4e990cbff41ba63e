"""The engine as a library: whole outputs, streams of tokens, and what is left when a reader stops."""

import doctest
from itertools import islice, zip_longest

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import engine.observer
from engine.config import EngineConfig
from engine.engine import Engine
from engine.errors import WorkloadError
from engine.observer import Event, EventKind, NullObserver
from engine.request import FinishReason, Request, SamplingParams
from tests.support.counts import ENGINE_EXAMPLES
from tests.support.engines import make_engine
from tests.support.hash_executor import VOCAB, HashExecutor, one_shot
from tests.support.pool_checks import check_pool
from tests.support.workloads import configs

PROMPTS = [[1, 2, 3], [4] * 40, [1, 2, 5, 6], [7]]
LONG = SamplingParams(max_new_tokens=9, ignore_eos=True)


@pytest.fixture(params=[False, True], ids=["overlap", "plain"])
def plain(request: pytest.FixtureRequest) -> bool:
    value: bool = request.param
    return value


def engine_of(plain: bool, observer: NullObserver | None = None, **options: object) -> Engine:
    return make_engine(observer=observer, disable_overlap_schedule=plain, chunked_prefill_size=16, **options)  # type: ignore[arg-type]


def check_nothing_left(engine: Engine) -> None:
    """No request, no forward in flight, and every page free or evictable."""
    assert not engine.has_work
    check_pool(engine.cache, [])
    state = engine.cache.pool_state()
    assert state.protected == state.private == 0


def test_outputs_come_in_the_order_of_the_prompts(plain: bool) -> None:
    engine = engine_of(plain)
    outputs = engine.generate(PROMPTS, LONG)
    assert [o.token_ids for o in outputs] == [one_shot(prompt, 9) for prompt in PROMPTS]
    assert {o.finish_reason for o in outputs} == {FinishReason.LENGTH}
    assert [o.request.prompt_token_ids for o in outputs] == PROMPTS
    check_nothing_left(engine)


def test_each_prompt_may_have_its_own_sampling(plain: bool) -> None:
    (third,) = one_shot(PROMPTS[2], 3)[2:]
    sampling = [
        SamplingParams(max_new_tokens=2, ignore_eos=True),
        SamplingParams(max_new_tokens=50, stop_token_ids=frozenset(range(VOCAB))),
        SamplingParams(max_new_tokens=50, stop_token_ids=frozenset({third})),
    ]
    engine = engine_of(plain)
    outputs = engine.generate(PROMPTS[:3], sampling)
    check_nothing_left(engine)  # the forward planned before the last stop token was seen included
    assert [o.finish_reason.name for o in outputs] == ["LENGTH", "STOP", "STOP"]
    assert [len(o.token_ids) for o in outputs][:2] == [2, 1]
    assert outputs[2].token_ids[-1] == third
    with pytest.raises(WorkloadError, match="3 sampling parameters for 4 prompts"):
        engine_of(plain).generate(PROMPTS, sampling)


def test_no_prompts_give_no_outputs(plain: bool) -> None:
    assert engine_of(plain).generate([]) == []
    assert engine_of(plain).generate([], []) == []


def test_one_prompt_that_never_fits_queues_none(plain: bool) -> None:
    engine = engine_of(plain)
    with pytest.raises(WorkloadError, match="has an empty prompt"):
        engine.generate([[1], []])
    check_nothing_left(engine)


def test_an_interrupted_call_leaves_nothing_behind(plain: bool) -> None:
    class Impatient(NullObserver):
        forwards = 0

        def on_forward(self, record: object) -> None:
            self.forwards += 1
            if self.forwards == 3:
                raise KeyboardInterrupt

    engine = engine_of(plain, Impatient())
    with pytest.raises(KeyboardInterrupt):
        engine.generate(PROMPTS, LONG)
    engine.step()
    assert not engine.requests
    engine.settle()
    check_nothing_left(engine)
    assert engine.generate(PROMPTS[:1], LONG)[0].token_ids == one_shot(PROMPTS[0], 9)


@settings(max_examples=max(30, ENGINE_EXAMPLES // 10))
@given(
    config=configs(),
    prompts=st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=15), min_size=1, max_size=5),
    streamed=st.lists(st.integers(0, 2), min_size=1, max_size=15),
)
def test_any_engine_gives_what_each_prompt_gives_alone(
    config: EngineConfig, prompts: list[list[int]], streamed: list[int]
) -> None:
    assert config.max_total_tokens is not None
    engine = Engine(config, HashExecutor(config.max_total_tokens // config.page_size, config.page_size))
    sampling = SamplingParams(max_new_tokens=6, ignore_eos=True)
    stream = engine.stream(streamed, sampling)
    begun = list(islice(stream, 1))
    outputs = engine.generate(prompts, sampling)
    everything = [(prompt, o.token_ids, o.request) for prompt, o in zip(prompts, outputs, strict=True)]
    everything.append((streamed, [*begun, *stream], stream.request))
    for prompt, tokens, request in everything:
        if request.finish_reason is FinishReason.LENGTH:
            assert tokens == one_shot(prompt, max(1, request.max_new_tokens))
        else:
            assert request.finish_reason is FinishReason.ABORT
            assert request.abort_detail
            assert tokens == one_shot(prompt, len(tokens))
    check_nothing_left(engine)


# -- streams -------------------------------------------------------------------------------------------------


def test_a_stream_gives_each_token_once_its_result_is_processed(plain: bool) -> None:
    engine = engine_of(plain)
    stream = engine.stream(PROMPTS[1], LONG)
    seen = []
    for token in stream:
        seen.append(token)
        assert stream.request.output_ids == seen, "no forward is waited for whose token was not asked for"
    assert seen == one_shot(PROMPTS[1], 9)
    assert list(stream) == []
    check_nothing_left(engine)


def test_streams_read_in_turn_share_their_forwards(plain: bool) -> None:
    class Count(NullObserver):
        forwards = 0

        def on_forward(self, record: object) -> None:
            self.forwards += 1

    alone, together = Count(), Count()
    engine = engine_of(plain, alone)
    for prompt in PROMPTS:
        assert list(engine.stream(prompt, LONG)) == one_shot(prompt, 9)
    engine = engine_of(plain, together)
    streams = [engine.stream(prompt, LONG) for prompt in PROMPTS]
    columns = zip(*zip_longest(*streams), strict=True)
    assert [list(column) for column in columns] == [one_shot(prompt, 9) for prompt in PROMPTS]
    assert together.forwards <= alone.forwards / 2
    check_nothing_left(engine)


def test_a_stream_goes_on_while_others_are_generated(plain: bool) -> None:
    engine = engine_of(plain)
    stream = engine.stream(PROMPTS[0], SamplingParams(max_new_tokens=40, ignore_eos=True))
    first = next(stream)
    (output,) = engine.generate(PROMPTS[1:2], LONG)
    assert output.token_ids == one_shot(PROMPTS[1], 9)
    assert stream.request.output_len > 5
    assert [first, *stream] == one_shot(PROMPTS[0], 40)
    check_nothing_left(engine)


@pytest.mark.parametrize("how", ["break", "close", "unread"])
def test_a_reader_that_stops_aborts_its_request(plain: bool, how: str) -> None:
    class Events(NullObserver):
        def __init__(self) -> None:
            self.aborts: list[str | None] = []

        def on_events(self, events: list[Event]) -> None:
            self.aborts += [e.detail for e in events if e.kind is EventKind.ABORT]

    events = Events()
    stopped = engine_of(plain, events)
    other = stopped.stream(PROMPTS[1], LONG)
    stream = stopped.stream(PROMPTS[0], SamplingParams(max_new_tokens=500, ignore_eos=True))
    request = stream.request
    if how == "break":
        for _ in stream:
            if request.output_len == 3:
                break
        del stream
    elif how == "close":
        next(stream)
        stream.close()
        assert list(stream) == []
    else:
        del stream
    kept = request.output_len
    stopped.step()
    assert request.finish_reason is FinishReason.ABORT
    assert request.output_len == kept
    assert events.aborts == ["its stream was closed"]
    assert list(other) == one_shot(PROMPTS[1], 9)
    check_nothing_left(stopped)


def test_a_closed_stream_that_had_ended_changes_nothing(plain: bool) -> None:
    engine = engine_of(plain)
    stop = frozenset({one_shot(PROMPTS[0], 5)[-1]})
    stream = engine.stream(PROMPTS[0], SamplingParams(stop_token_ids=stop))
    assert set(list(stream)[-1:]) == stop
    check_nothing_left(engine)
    stream.close()
    assert stream.request.finish_reason is FinishReason.STOP


def test_a_stream_of_a_prompt_that_never_fits_is_refused_at_once(plain: bool) -> None:
    with pytest.raises(WorkloadError, match="has an empty prompt"):
        engine_of(plain).stream([])


# -- requests of one's own -----------------------------------------------------------------------------------


def test_rids_are_never_used_twice(plain: bool) -> None:
    engine = engine_of(plain)
    engine.run([Request(5, "mine", [1], LONG)])
    rids = [output.request.rid for output in engine.generate(PROMPTS, LONG)]
    assert rids == [6, 7, 8, 9]
    assert engine.new_request([1]).rid == 10


def test_check_refuses_and_queues_nothing(plain: bool) -> None:
    engine = make_engine(50, disable_overlap_schedule=plain)
    request = engine.new_request([1] * 10, SamplingParams(max_new_tokens=1000))
    assert engine.check(request) is None
    assert (request.max_new_tokens, engine.has_work) == (38, False)
    with pytest.raises(WorkloadError, match=r"never fit 50 KV tokens: raise --max-total-tokens"):
        engine.check(engine.new_request([1] * 49))
    with pytest.raises(WorkloadError, match=r"context length 1048576: raise --context-length"):
        engine.check(engine.new_request([1] * (1 << 20)))


def test_the_example_of_an_observer_runs() -> None:
    failed, tried = doctest.testmod(engine.observer)
    assert (failed, tried > 10) == (0, True)


def test_a_request_that_has_run_is_not_queued_again(plain: bool) -> None:
    engine = engine_of(plain)
    request = engine.new_request(PROMPTS[0], LONG)
    engine.run([request])
    again = engine_of(plain)
    with pytest.raises(WorkloadError, match=r"has run before: submit its fresh\(\) copy"):
        again.submit(request)
    assert not again.has_work
    again.run([request.fresh()])
    check_nothing_left(again)


@pytest.mark.parametrize(
    ("prompt", "sampling", "words"),
    [
        ([1, 2**31], LONG, "no list of token ids"),
        ([1, 2.5], LONG, "no list of token ids"),
        ([1, -5], LONG, "token id -5 is below 0"),
        ([1], SamplingParams(max_new_tokens=-1), "max_new_tokens is -1: give 0 or more"),
    ],
)
def test_nonsense_is_refused_by_name(prompt: list[int], sampling: SamplingParams, words: str) -> None:
    engine = engine_of(plain=True)
    with pytest.raises(WorkloadError, match=f"request-0.*{words}"):
        engine.generate([prompt], sampling)
    assert not engine.has_work


def test_landing_processes_what_is_in_flight_and_plans_nothing(plain: bool) -> None:
    engine = engine_of(plain)
    request = engine.new_request(PROMPTS[1], LONG)
    engine.submit(request)
    for _ in range(3):
        engine.step()
    engine.land()
    assert request.inflight_middle_chunks == 0
    forwards = engine.scheduler._next_forward_id
    engine.land()
    assert engine.scheduler._next_forward_id == forwards == 3
    assert request.output_ids == one_shot(PROMPTS[1], 1)
