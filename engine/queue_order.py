"""The order in which waiting requests are tried: `--schedule-policy`, under priorities if they are on."""

import random
from collections import Counter, defaultdict
from collections.abc import Sequence

from engine.cache.radix import Node, RadixTree
from engine.config import EngineConfig
from engine.priority import PriorityRules
from engine.request import Request
from engine.waiting_queue import WaitingQueue

__all__ = ["LONGEST_MATCHED_QUEUE", "QueueOrder"]

LONGEST_MATCHED_QUEUE = 128  # requests; lpm leaves a longer queue in the order it has
IN_BATCH_CHECK_TOKENS = 32  # a request with no more cached than this is compared with those before it
IN_BATCH_DEPRIORITIZE_TOKENS = 32  # and waits for the others when it shares at least so much with one


class QueueOrder:
    """Sorts a queue before admission; fcfs without priorities touches nothing.

    The order stays when the round is over, so requests that a policy holds for equal keep it.
    """

    def __init__(self, config: EngineConfig, tree: RadixTree) -> None:
        self._policy = config.schedule_policy
        self._priorities = PriorityRules.of(config)
        self._tree = tree
        self._random = random.Random(config.random_seed)

    def apply(self, queue: WaitingQueue) -> None:
        """Put the queue into the order of this round."""
        if self._policy == "fcfs" and not self._priorities.enabled:
            return
        requests = self._by_policy(list(queue))
        if self._priorities.enabled:
            requests.sort(key=self._by_priority)
        queue.reorder(requests)

    def _by_policy(self, requests: list[Request]) -> list[Request]:
        match self._policy:
            case "lpm" if len(requests) <= LONGEST_MATCHED_QUEUE:
                return _longest_prefix_first(requests, self._tree)
            case "dfs-weight":
                return _depth_first(requests, self._tree)
            case "shortest-prefill-first":
                return _shortest_prefill_first(requests, self._tree)
            case "lof":
                return sorted(requests, key=lambda r: -r.max_new_tokens)
            case "random":
                return self._random.sample(requests, len(requests))
        return requests

    def _by_priority(self, request: Request) -> tuple[int, int]:
        arrival_ns = request.arrival_ns if self._policy == "fcfs" else 0
        return -self._priorities.urgency(request), arrival_ns


def _longest_prefix_first(requests: list[Request], tree: RadixTree) -> list[Request]:
    matches = _Matches(requests, tree)
    return sorted(requests, key=lambda r: 1 if r.rid in matches.repeats else -matches.tokens[r.rid])


def _shortest_prefill_first(requests: list[Request], tree: RadixTree) -> list[Request]:
    """By tokens that must be computed, then by arrival."""
    matches = _Matches(requests, tree)
    return sorted(
        requests,
        key=lambda r: (r.rid in matches.repeats, len(r.tokens) - matches.tokens[r.rid], r.arrival_ns),
    )


def _depth_first(requests: list[Request], tree: RadixTree) -> list[Request]:
    """As a walk over the tree leaves their nodes, children with most waiting requests below them first."""
    ends: defaultdict[Node, list[Request]] = defaultdict(list)
    waiting_below: Counter[Node] = Counter()
    for request in requests:
        _, node = tree.match(request.tokens)
        ends[node].append(request)
    for node, ending in ends.items():
        above: Node | None = node
        while above is not None:
            waiting_below[above] += len(ending)
            above = above.parent
    out: list[Request] = []
    stack = [(tree.root, False)]
    while stack:
        node, below_done = stack.pop()
        if below_done:
            out += ends.get(node, [])
            continue
        stack.append((node, True))
        wanted = [child for child in node.children.values() if child in waiting_below]
        wanted.sort(key=lambda child: -waiting_below[child])
        stack.extend((child, False) for child in reversed(wanted))
    return out


class _Matches:
    """What the tree holds of each request's prefix, and which requests repeat an earlier one's.

    A repeat has next to nothing cached but begins as an earlier request of the queue does: when that one has
    run, the repeat finds its prefix in the tree.
    """

    def __init__(self, requests: Sequence[Request], tree: RadixTree) -> None:
        self.tokens: dict[int, int] = {}  # by rid; at most one short of the whole
        self.repeats: set[int] = set()  # rids
        earlier = RadixTree(page_size=1)
        for request in requests:
            pages, _ = tree.match(request.tokens)
            cached = len(pages) * tree.page_size
            self.tokens[request.rid] = min(cached, len(request.tokens) - 1)
            if cached > IN_BATCH_CHECK_TOKENS:
                continue
            shared, _ = earlier.match(request.tokens)
            if len(shared) >= IN_BATCH_DEPRIORITIZE_TOKENS:
                self.repeats.add(request.rid)
            else:
                earlier.insert(request.tokens, request.tokens)
