"""`trial`: a workload sent through the real scheduler, where a cost model says how long each forward takes.

Nothing is computed and nothing is written: engine, scheduler and cache are those of any run, the clock is
virtual. When tokens come is read off the processed forwards, as `profiler.latency` reads it off a trace.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from engine.batch import ForwardBatch, ForwardMode, IntColumn
from engine.cache.allocator import ceil_page
from engine.clock import VirtualClock
from engine.config import EngineConfig
from engine.engine import Engine
from engine.executors.protocol import ForwardResult, PendingForward
from engine.executors.simulated import CostModel, SimulatedExecutor
from engine.observer import ForwardRecord
from engine.request import Request
from engine.reserve import CLIP_MAX_NEW_TOKENS

__all__ = ["END_TOKEN", "TrialResult", "longest_prompt", "trial"]

Ints = NDArray[np.int64]

END_TOKEN = 2**31 - 1
"""The stop token of a request that ends sooner than it may; no other sample is this large."""


@dataclass(frozen=True, slots=True)
class TrialResult:
    """What a workload's users would have felt. Times are nanoseconds of the virtual clock."""

    gaps_ns: Ints  # (gaps,) between consecutive tokens of a request, by rid and then in order of tokens
    gap_rids: Ints  # (gaps,) whose they are
    ttft_ns: Mapping[int, int]  # by rid, of the requests that gave a token
    output_tokens: int
    span_ns: int  # from the first arrival to the last token
    forwards: int
    largest_forward_tokens: int
    longest_prompt_forwards: int  # that computed tokens of the longest prompt
    longest_ns: Mapping[ForwardMode, int]  # longest forward of each mode; of MIXED, with a decode's token

    @property
    def longest_wait_s(self) -> float | None:
        """The longest gap; None where no request gave two tokens."""
        return int(self.gaps_ns.max()) / 1e9 if len(self.gaps_ns) else None

    def gap_s(self, quantile: float) -> float | None:
        """A quantile over all gaps of all requests, linearly interpolated."""
        return float(np.quantile(self.gaps_ns, quantile)) / 1e9 if len(self.gaps_ns) else None

    def ttft_s(self, quantile: float) -> float | None:
        """A quantile over the requests' times to first token, linearly interpolated."""
        return float(np.quantile([*self.ttft_ns.values()], quantile)) / 1e9 if self.ttft_ns else None

    @property
    def output_tokens_per_s(self) -> float | None:
        """Tokens over the span from the first arrival to the last token."""
        return self.output_tokens / self.span_ns * 1e9 if self.span_ns > 0 else None


def trial(
    requests: Sequence[Request],
    config: EngineConfig,
    cost: CostModel,
    *,
    ends: Mapping[int, int] | None = None,
    until: int | None = None,
    host_overhead_ns: int = 0,
) -> TrialResult:
    """Run fresh copies of the requests, which keep their arrivals, to their ends.

    `config` must be resolved. `ends` says by rid after how many output tokens a request stops, where that is
    sooner than it may: the scheduler does not know, as in life. With `until` all is over once the request of
    that rid has ended: what others would have given later, and gaps still open then, do not count. The host
    takes `host_overhead_ns` a forward. Raises WorkloadError for a request that could never be served.
    """
    clock = VirtualClock()
    simulated = SimulatedExecutor(cost, clock, vocab_size=END_TOKEN, host_overhead_ns=host_overhead_ns)
    executor = _Stopping(simulated, requests, ends) if ends else simulated
    engine = Engine(_lean(config, requests), executor, clock=clock)
    copies = [_stoppable(r, ends) for r in requests]
    watch = _Watch(longest_prompt(requests).rid)
    last = next((copy for copy in copies if copy.rid == until), None)

    def note(record: ForwardRecord) -> None:
        if not watch.over:
            watch.note(record)
        watch.over = last is not None and last.finished
        for rid in engine.requests if watch.over else ():
            engine.abort(rid)

    engine.run(copies, note)
    return watch.result(copies)


def longest_prompt(requests: Iterable[Request]) -> Request:
    """The request with the most prompt tokens; of equals the one that arrives first, then the lowest rid."""
    return min(requests, key=lambda r: (-r.prompt_len, r.arrival_ns, r.rid))


def _lean(config: EngineConfig, requests: Sequence[Request]) -> EngineConfig:
    """The config with a pool no larger than can ever be asked for, since its pages take host memory.

    A request holds its prompt and output, admission reserves at most as much output again, clipped, and the
    page slack of either is below 4 pages. A pool that never runs short plans as any larger one.
    """
    assert config.max_total_tokens is not None
    page = config.page_size
    outputs = [r.sampling.max_new_tokens for r in requests]
    most = sum(r.prompt_len for r in requests) + sum(n + min(n, CLIP_MAX_NEW_TOKENS) for n in outputs)
    most += 4 * page * (len(requests) + 1)
    return replace(config, max_total_tokens=min(config.max_total_tokens, ceil_page(most, page)))


def _stoppable(request: Request, ends: Mapping[int, int] | None) -> Request:
    if not ends or request.rid not in ends:
        return request.fresh()
    sampling = replace(request.sampling, stop_token_ids=frozenset({END_TOKEN}))
    return Request(
        request.rid, request.name, request.prompt_token_ids, sampling, request.arrival_ns, request.priority
    )


class _Stopping:
    """A simulated executor whose requests sample their stop token where `ends` says so."""

    def __init__(
        self, executor: SimulatedExecutor, requests: Sequence[Request], ends: Mapping[int, int]
    ) -> None:
        self._executor = executor
        # The row that attends to this many tokens samples the last one.
        self._last_at = np.full(max(r.rid for r in requests) + 1, -1, dtype=np.int64)
        for request in requests:
            if request.rid in ends:
                self._last_at[request.rid] = request.prompt_len + ends[request.rid] - 1

    def launch(self, batch: ForwardBatch) -> PendingForward:
        stopping = np.flatnonzero(self._last_at[batch.rids] == batch.seq_lens)
        return _Stopped(self._executor.launch(batch), stopping.tolist())


class _Stopped:
    """A forward some of whose rows sample a stop token."""

    def __init__(self, pending: PendingForward, rows: Sequence[int]) -> None:
        self._pending = pending
        self._rows = rows

    def result(self) -> ForwardResult:
        result = self._pending.result()
        tokens = list(result.next_token_ids)
        for row in self._rows:
            tokens[row] = END_TOKEN
        return replace(result, next_token_ids=tokens)


@dataclass(slots=True)
class _Watch:
    """Keeps of each processed forward what a `TrialResult` needs."""

    longest_rid: int
    rids: list[IntColumn] = field(default_factory=list)
    times_ns: list[int] = field(default_factory=list)
    longest_ns: dict[ForwardMode, int] = field(default_factory=dict)
    largest_forward_tokens: int = 0
    longest_prompt_forwards: int = 0
    over: bool = False  # nothing that comes now counts

    def note(self, record: ForwardRecord) -> None:
        batch, gave = record.batch, record.token_index >= 0
        self.rids.append(batch.rids[gave])
        self.times_ns.append(record.result_end_ns)
        self.largest_forward_tokens = max(self.largest_forward_tokens, len(batch.input_ids))
        extends = batch.requests[: batch.num_extend_seqs]
        self.longest_prompt_forwards += any(r.rid == self.longest_rid for r in extends)
        if batch.mode is not ForwardMode.MIXED or gave[batch.num_extend_seqs :].any():
            took_ns = record.result.end_ns - record.result.start_ns
            self.longest_ns[batch.mode] = max(took_ns, self.longest_ns.get(batch.mode, 0))

    def result(self, requests: Sequence[Request]) -> TrialResult:
        counts = [len(rids) for rids in self.rids]
        rids = np.concatenate([np.empty(0, dtype=np.int64), *self.rids])
        times_ns = np.repeat(np.array(self.times_ns, dtype=np.int64), counts)
        order = np.argsort(rids, kind="stable")  # forwards are in order of time
        rids, times_ns = rids[order], times_ns[order]
        same = np.diff(rids) == 0
        first_ns = min((r.arrival_ns for r in requests), default=0)
        gave = set(rids.tolist())
        return TrialResult(
            gaps_ns=np.diff(times_ns)[same],
            gap_rids=rids[1:][same],
            ttft_ns={
                r.rid: r.first_token_ns - r.arrival_ns
                for r in requests
                if r.first_token_ns is not None and r.rid in gave
            },
            output_tokens=len(rids),
            span_ns=int(times_ns.max()) - first_ns if len(times_ns) else 0,
            forwards=len(self.times_ns),
            largest_forward_tokens=self.largest_forward_tokens,
            longest_prompt_forwards=self.longest_prompt_forwards,
            longest_ns=self.longest_ns,
        )
