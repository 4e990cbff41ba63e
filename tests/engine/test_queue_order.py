"""Each `--schedule-policy`: the order in which waiting requests are tried."""

from array import array
from collections.abc import Sequence

import pytest

from engine.cache.radix import RadixTree
from engine.config import EngineConfig
from engine.queue_order import QueueOrder
from engine.request import Request, SamplingParams
from engine.waiting_queue import WaitingQueue


def _queue(requests: Sequence[Request]) -> WaitingQueue:
    queue = WaitingQueue()
    for request in requests:
        queue.append(request)
    return queue


def _request(name: str, tokens: Sequence[int], max_new: int = 8, **more: int) -> Request:
    rid = sum(ord(letter) << 8 * i for i, letter in enumerate(name))
    return Request(rid, name, tokens, SamplingParams(max_new), **more)


def _tree(*prefixes: Sequence[int], page_size: int = 1) -> RadixTree:
    tree = RadixTree(page_size)
    for prefix in prefixes:
        tree.insert(array("i", prefix), array("i", range(len(prefix) // page_size)))
    return tree


def _ordered(requests: Sequence[Request], tree: RadixTree | None = None, **options: object) -> str:
    queue = _queue(requests)
    order = QueueOrder(EngineConfig(**options), tree or RadixTree(1))  # type: ignore[arg-type]
    order.apply(queue)
    return "".join(r.name for r in queue)


def _own(name: str, length: int) -> list[int]:
    """Tokens that no other name shares."""
    return [1000 * ord(name) + i for i in range(length)]


def test_fcfs_touches_nothing() -> None:
    queue = _queue([_request("b", [1]), _request("a", [2])])
    before = queue._requests
    QueueOrder(EngineConfig(), RadixTree(1)).apply(queue)
    assert queue._requests is before


def test_lof_takes_the_longest_output_first_and_equal_ones_in_turn() -> None:
    requests = [_request(n, [1], max_new) for n, max_new in (("a", 5), ("b", 9), ("c", 5), ("d", 9))]
    assert _ordered(requests, schedule_policy="lof") == "bdac"


def test_random_is_a_permutation_that_its_seed_fixes() -> None:
    requests = [_request(chr(97 + i), [i]) for i in range(20)]
    seen = {_ordered(requests, schedule_policy="random", random_seed=seed) for seed in range(3)}
    assert len(seen) == 3
    assert {"".join(sorted(order)) for order in seen} == {"".join(r.name for r in requests)}
    assert _ordered(requests, schedule_policy="random", random_seed=1) in seen


def test_random_draws_anew_each_round() -> None:
    requests = [_request(chr(97 + i), [i]) for i in range(20)]
    order = QueueOrder(EngineConfig(schedule_policy="random"), RadixTree(1))
    queue, seen = _queue(requests), set()
    for _ in range(3):
        order.apply(queue)
        seen.add("".join(r.name for r in queue))
    assert len(seen) == 3


def test_lpm_takes_the_longest_cached_prefix_first() -> None:
    tree = _tree(_own("a", 40), _own("b", 60))
    requests = [_request("x", _own("x", 50)), _request("a", _own("a", 50)), _request("b", _own("b", 50))]
    assert _ordered(requests, tree, schedule_policy="lpm") == "bax"


def test_lpm_counts_at_most_one_token_less_than_the_whole() -> None:
    tree = _tree(_own("a", 50), _own("b", 50))
    requests = [_request("b", [*_own("b", 39), 7]), _request("a", _own("a", 40))]
    assert _ordered(requests, tree, schedule_policy="lpm") == "ba"  # 39 tokens both


@pytest.mark.parametrize(
    ("cached", "shared", "order"),
    [
        (0, 31, "abc"),  # too little in common: all are tried in turn
        (0, 32, "acb"),  # b repeats a: it waits until a's prefix is in the tree
        (32, 40, "acb"),
        (33, 40, "abc"),  # enough is cached already
    ],
)
def test_lpm_puts_off_a_request_that_repeats_an_earlier_one(cached: int, shared: int, order: str) -> None:
    tree = _tree(_own("a", cached))
    a = _request("a", _own("a", 60))
    b = _request("b", _own("a", shared) + _own("b", 20))
    c = _request("c", _own("c", 60))
    assert _ordered([a, b, c], tree, schedule_policy="lpm") == order


def test_lpm_holds_all_repeats_for_equal() -> None:
    tree = _tree(_own("a", 20))
    a, b = _request("a", _own("a", 60)), _request("b", _own("b", 60))
    repeats = [_request("x", _own("b", 50)), _request("y", _own("a", 50))]  # y has 20 tokens cached, x none
    assert _ordered([a, b, *repeats], tree, schedule_policy="lpm") == "abxy"


def test_lpm_leaves_a_long_queue_in_the_order_it_has() -> None:
    tree = _tree(_own("a", 60))
    others = [_request(f"{i:03}", [i]) for i in range(128)]
    last = _request("a", _own("a", 60))
    assert _ordered([*others[:127], last], tree, schedule_policy="lpm").startswith("a")
    assert _ordered([*others, last], tree, schedule_policy="lpm").endswith("a")


def test_shortest_prefill_first_counts_what_is_not_cached() -> None:
    tree = _tree(_own("a", 90), page_size=16)  # 80 in whole pages
    requests = [_request("x", _own("x", 30)), _request("a", _own("a", 100)), _request("y", _own("y", 10))]
    assert _ordered(requests, tree, schedule_policy="shortest-prefill-first") == "yax"


def test_shortest_prefill_first_settles_ties_by_arrival_and_puts_repeats_off() -> None:
    requests = [
        _request("a", _own("a", 40), arrival_ns=2),
        _request("b", _own("b", 40), arrival_ns=1),
        _request("c", _own("a", 32), arrival_ns=0),
    ]
    assert _ordered(requests, schedule_policy="shortest-prefill-first") == "bac"


def test_dfs_weight_walks_to_where_most_requests_wait() -> None:
    #        root
    #     A      B
    #   A1  A2        three wait below A (two of them at A2), one at B, one matches nothing
    tree = _tree([*_own("A", 4), 1, 2], [*_own("A", 4), 3, 4], _own("B", 4))
    requests = [
        _request("n", _own("n", 8)),
        _request("b", [*_own("B", 4), 9]),
        _request("1", [*_own("A", 4), 1, 2, 9]),
        _request("2", [*_own("A", 4), 3, 4, 9]),
        _request("3", [*_own("A", 4), 3, 4, 8]),
        _request("a", [*_own("A", 4), 9]),
    ]
    assert _ordered(requests, tree, schedule_policy="dfs-weight") == "231abn"


def test_dfs_weight_goes_down_a_tree_of_any_depth() -> None:
    tree = _tree(range(2000))
    for depth in range(1999, 0, -1):
        tree.match(array("i", range(depth)))  # splits a node off, so that each holds one token
    requests = [_request("b", [0, 7]), _request("a", range(2000))]
    assert _ordered(requests, tree, schedule_policy="dfs-weight") == "ab"


@pytest.mark.parametrize(("low_first", "order"), [(False, "dbac"), (True, "acdb")])
def test_priorities_come_before_arrival(low_first: bool, order: str) -> None:
    requests = [
        _request("a", [1], priority=0, arrival_ns=1),
        _request("b", [2], priority=5, arrival_ns=2),
        _request("c", [3], priority=0, arrival_ns=3),
        _request("d", [4], priority=5, arrival_ns=1),
    ]
    options = {"enable_priority_scheduling": True, "schedule_low_priority_values_first": low_first}
    assert _ordered(requests, **options) == order


@pytest.mark.parametrize("policy", ["lof", "lpm", "dfs-weight", "shortest-prefill-first", "random"])
def test_priorities_come_before_any_policy(policy: str) -> None:
    tree = _tree(_own("b", 60))
    requests = [
        _request("a", _own("a", 70), 1, priority=1),
        _request("b", _own("b", 70), 9, priority=0, arrival_ns=2),
        _request("c", _own("c", 70), 5, priority=0, arrival_ns=1),
    ]
    order = _ordered(requests, tree, schedule_policy=policy, enable_priority_scheduling=True)
    assert order in ("abc", "acb")
    if policy != "random":
        assert order == "abc"


def test_requests_that_a_policy_holds_for_equal_keep_their_order_round_after_round() -> None:
    requests = [_request(n, [ord(n)], 5) for n in "dacb"]
    queue = _queue(requests)
    order = QueueOrder(EngineConfig(schedule_policy="lof"), RadixTree(1))
    for _ in range(3):
        order.apply(queue)
    assert "".join(r.name for r in queue) == "dacb"
