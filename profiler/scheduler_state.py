"""What the scheduler knew at one moment, as plain values."""

from dataclasses import dataclass

__all__ = ["Budget", "ExtendRow", "ForwardState", "HalfDone", "KvPages", "RequestState", "SchedulerState"]


@dataclass(frozen=True, slots=True)
class ForwardState:
    """A forward, as planned and as the device ran it."""

    forward_id: int
    mode: str | None
    start_ns: int
    end_ns: int
    extend_tokens: int | None
    decode_tokens: int | None
    num_extend_seqs: int | None
    num_decode_seqs: int | None
    flops: int | None
    evicted_pages: int | None
    retracted_reqs: int | None


@dataclass(frozen=True, slots=True)
class ExtendRow:
    """Prompt tokens [prefix_len, extend_end) of one request in this forward."""

    rid: int
    name: str
    role: str | None
    prefix_len: int | None
    extend_end: int | None


@dataclass(frozen=True, slots=True)
class HalfDone:
    """The one request whose prompt is cut, and its chunk in this forward, or its last one before it."""

    rid: int
    name: str
    prefix_len: int
    extend_end: int
    prompt_tokens: int | None
    number: int  # k of chunk k/n
    of: int | None  # None while the trace does not hold its last chunk
    inflight_middle_chunks: int | None  # its own, after planning


@dataclass(frozen=True, slots=True)
class Budget:
    """An admission budget before and after planning; None where it is off."""

    name: str
    start_tokens: int | None
    end_tokens: int | None


@dataclass(frozen=True, slots=True)
class KvPages:
    """Pages by kind, right after this forward's were allocated."""

    total: int | None
    locked: int | None
    private: int | None
    evictable: int | None
    free: int | None


@dataclass(frozen=True, slots=True)
class RequestState:
    """A request that waits or decodes."""

    rid: int
    name: str
    prompt_tokens: int | None
    output_tokens: int  # given by the cursor's time
    waited_ns: int | None  # since it arrived or was retracted; None when it does not wait
    in_forward: bool  # has a row in the forward shown
    ending: bool = False  # the forward planned last is after its last one, whose result is outstanding


@dataclass(frozen=True, slots=True)
class SchedulerState:
    """What the scheduler knew at `t_ns`; recorded numbers are those of `forward`, as it was planned."""

    t_ns: int
    planned: ForwardState | None  # last
    running: tuple[RequestState, ...]
    waiting: tuple[RequestState, ...]
    half_done: HalfDone | None
    budgets: tuple[Budget, ...]  # empty when no adder ran
    stop_reason: str | None
    blocked: str | None
    kv: KvPages | None
    inflight_middle_chunks: int | None  # of all requests, after planning
    running_reqs: int | None
    waiting_reqs: int | None
    pending_tokens: int | None
    origin_ns: int = 0  # when the run began: views count from there
    on_device: ForwardState | None = None  # whose device interval holds the cursor
    extend_rows: tuple[ExtendRow, ...] = ()  # in the order of the batch

    @property
    def forward(self) -> ForwardState | None:
        """The forward shown: that on the device, else the one planned last."""
        return self.on_device or self.planned

    @property
    def planned_next(self) -> ForwardState | None:
        """Under overlap, the forward planned while another one is on the device."""
        runs, planned = self.on_device, self.planned
        if runs is None or planned is None or planned.start_ns <= runs.start_ns:
            return None
        return planned
