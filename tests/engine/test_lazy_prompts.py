"""A prompt that is made when it is needed serves as one that is there, and is gone with its request."""

import weakref
from array import array

from engine.lazy_prompt import LazyPrompt
from engine.request import Request, SamplingParams
from engine.workload import random_ids
from tests.support.engines import make_engine
from tests.support.hash_executor import one_shot

SAMPLING = SamplingParams(max_new_tokens=4, ignore_eos=True)


def lazy(rid: int, length: int = 30, arrival_ns: int = 0) -> Request:
    return Request(
        rid, f"r{rid}", LazyPrompt(length, lambda: random_ids(length, 50, 0, rid)), SAMPLING, arrival_ns
    )


def test_tokens_come_with_the_submission() -> None:
    request = lazy(0)
    assert (request.prompt_len, request.tokens) == (30, array("i"))
    engine = make_engine()
    engine.submit(request)
    assert request.tokens == random_ids(30, 50, 0, 0)


def test_outputs_are_those_of_the_prompt_it_makes() -> None:
    requests = [lazy(rid) for rid in range(3)]
    make_engine(chunked_prefill_size=16).run(requests)
    assert [r.output_ids for r in requests] == [one_shot(random_ids(30, 50, 0, rid), 4) for rid in range(3)]


def test_a_fresh_request_is_the_same_one_before_anything_happened() -> None:
    used = lazy(7, arrival_ns=5)
    make_engine().run([used])
    new = used.fresh()
    assert (new.rid, new.name, new.arrival_ns, new.sampling) == (7, "r7", 5, SAMPLING)
    assert (new.tokens, new.finished, new.prefix_len) == (array("i"), False, 0)
    make_engine().run([new])
    assert new.output_ids == used.output_ids


def test_a_run_keeps_no_request_that_has_ended() -> None:
    alive: weakref.WeakSet[object] = weakref.WeakSet()
    left: list[int] = []

    class Prompt(LazyPrompt):
        """One that can be watched."""

    def made(rid: int) -> Request:
        prompt = Prompt(30, lambda: random_ids(30, 50, 0, rid))
        alive.add(prompt)
        return Request(rid, f"r{rid}", prompt, SAMPLING, arrival_ns=rid)

    engine = make_engine(max_running_requests=2)
    engine.run((made(rid) for rid in range(20)), lambda record: left.append(len(alive)))
    assert (left[0], left[-1]) == (20, 2)
