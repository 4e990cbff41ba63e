"""Runs the cases of a sweep in an ordinary engine, one after another, and times them."""

from array import array
from collections.abc import Callable, Sequence
from statistics import median

from engine.cache.radix import Node
from engine.engine import Engine
from engine.observer import ForwardRecord
from engine.request import Request, SamplingParams
from engine.workload import random_ids
from profiler.sweep_cases import SweepCase
from profiler.sweep_order import Timings
from profiler.sweep_plan import DECODE_FORWARDS
from profiler.sweep_stock import KVStock

__all__ = ["CaseRunner", "StepHook"]

StepHook = Callable[[ForwardRecord], None]


class CaseRunner:
    """An engine that has nothing else to do, and what is known of its forwards."""

    def __init__(
        self,
        engine: Engine,
        timings: Timings,
        *,
        vocab_size: int,
        seed: int,
        stock: KVStock | None = None,
        decode_forwards: int = DECODE_FORWARDS,
        first_rid: int = 0,
        on_step: StepHook | None = None,
    ) -> None:
        """`stock` is needed for prefixes and decodes."""
        self.engine = engine
        self._timings = timings
        self._vocab_size = vocab_size
        self._seed = seed
        self._stock = stock
        self._decode_forwards = decode_forwards
        self._next_rid = first_rid
        self._on_step = on_step
        self._locked: list[Node] = []

    def warm_up(self, case: SweepCase) -> None:
        """Run a case for the sake of those after it: its cost is noted, its time is no measurement."""
        start_ns = self.engine.clock.now_ns()
        self._run(case)
        self._timings.note(case, self._since_s(start_ns))

    def measure(self, case: SweepCase) -> None:
        """Run a case, and note its cost and the median device time of its forwards."""
        start_ns = self.engine.clock.now_ns()
        time_s = median(_device_s(record) for record in self._run(case))
        self._timings.note(case, self._since_s(start_ns), time_s)

    def lay_in(self, left_s: Callable[[], float]) -> None:
        """Put the stock into the cache, as far as the time goes, and lock it there until `give_up`."""
        assert self._stock is not None
        for prompts, tokens in self._stock.forwards():
            if self._timings.cost_s(SweepCase(tokens)) > left_s():
                break
            self._step_through(self._requests(prompts, f"stock-{tokens}", max_new_tokens=1), forwards=1)
        tree = self.engine.cache.tree
        for sequence in self._stock.held():
            _, node = tree.match(sequence)
            tree.lock(node)
            self._locked.append(node)

    def give_up(self) -> None:
        """Let the stock be evicted like any cached prefix."""
        while self._locked:
            self.engine.cache.tree.unlock(self._locked.pop())

    def _run(self, case: SweepCase) -> list[ForwardRecord]:
        """The forwards that the case is about."""
        records = self._decode(case) if case.decode else [self._prefill(case)]
        if self._locked:  # nothing but the stock may be found by the prompts to come
            self.engine.cache.make_room(self.engine.cache.obtainable_tokens)
        return records

    def _prefill(self, case: SweepCase) -> ForwardRecord:
        """One prompt, which ends with its first token."""
        name = f"{case.tokens}+{case.prefix_tokens}" if case.prefix_tokens else f"{case.tokens}"
        if self._stock is None:
            prompt = random_ids(case.tokens, self._vocab_size, self._seed, self._next_rid)
        else:
            prompt = self._stock.prompt(case, self._next_rid)
        return self._step_through(self._requests([prompt], name, max_new_tokens=1), forwards=1)[0]

    def _decode(self, case: SweepCase) -> list[ForwardRecord]:
        """All rows compute their last token in one forward, then they decode together to their ends."""
        assert self._stock is not None
        name, forwards = f"decode-{case.tokens}", self._decode_forwards
        requests = self._requests(self._stock.rows(case), name, max_new_tokens=forwards + 1)
        if case.tokens == 1:  # else the first forward would look like one of the measured prompts
            requests += self._requests([self._stock.companion], "companion", max_new_tokens=1)
        return self._step_through(requests, forwards + 1)[1:]

    def _requests(self, prompts: Sequence["array[int]"], name: str, max_new_tokens: int) -> list[Request]:
        sampling = SamplingParams(max_new_tokens=max_new_tokens, ignore_eos=True)
        now_ns, first = self.engine.clock.now_ns(), self._next_rid
        self._next_rid += len(prompts)
        return [
            Request(rid, f"{name}-{rid}", prompt, sampling, now_ns)
            for rid, prompt in enumerate(prompts, start=first)
        ]

    def _step_through(self, requests: Sequence[Request], forwards: int) -> list[ForwardRecord]:
        """Run the requests together to their ends, which takes so many forwards."""
        for request in requests:
            self.engine.submit(request)
        records: list[ForwardRecord] = []
        while self.engine.has_work:
            record = self.engine.step()
            if record is None:
                break
            records.append(record)
            if self._on_step is not None:
                self._on_step(record)
        if len(records) != forwards:
            raise RuntimeError(f"{requests[0].name}: {len(records)} forwards were planned, not {forwards}")
        return records

    def _since_s(self, start_ns: int) -> float:
        return (self.engine.clock.now_ns() - start_ns) / 1e9


def _device_s(record: ForwardRecord) -> float:
    return (record.result.end_ns - record.result.start_ns) / 1e9
