"""The queue: order, taking out anywhere, and its sum of tokens."""

from hypothesis import given
from hypothesis import strategies as st

from engine.request import Request
from engine.waiting_queue import WaitingQueue


def _request(rid: int) -> Request:
    return Request(rid, f"r{rid}", [1] * (rid + 1))


STEPS = st.lists(st.tuples(st.sampled_from(["append", "pop", "remove", "reverse"]), st.integers(0, 9)))


@given(STEPS)
def test_it_is_a_list_that_knows_its_tokens(steps: list[tuple[str, int]]) -> None:
    queue, model, made = WaitingQueue(), list[Request](), 0
    for step, at in steps:
        if step == "append":
            model.append(_request(made))
            queue.append(model[-1])
            made += 1
        elif not model:
            continue
        elif step == "pop":
            assert queue.head is model[0]
            queue.remove(model.pop(0))
        elif step == "remove":
            queue.remove(model.pop(at % len(model)))
        else:
            model.reverse()
            queue.reorder(model)
        assert list(queue) == model
        assert len(queue) == len(model)
        assert queue.pending_tokens == sum(len(r.tokens) for r in model)


def test_it_knows_who_waits() -> None:
    queue, inside = WaitingQueue(), _request(1)
    queue.append(inside)
    assert inside in queue
    assert _request(2) not in queue
