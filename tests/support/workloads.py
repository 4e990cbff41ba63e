"""Hypothesis strategies for engines and workloads, over every option and in tiny pools."""

from dataclasses import dataclass, field, replace
from typing import Any

from hypothesis import strategies as st

from engine.config import CHUNKING_OFF, SCHEDULE_POLICIES, EngineConfig
from engine.request import Request, SamplingParams

CHUNK_PAGES = 6  # a chunk has at most so many pages
CONTEXT_LENGTH = 1 << 16
PRIORITIES = st.sampled_from([0, 0, 1, 5, 20])


@dataclass(frozen=True)
class Arrival:
    """A request queued before a round, perhaps aborted some rounds later."""

    round: int
    prompt: tuple[int, ...]
    sampling: SamplingParams
    abort_after: int | None = field(default=None)
    priority: int = 0

    def request(self, rid: int, arrival_ns: int = 0) -> Request:
        """What arrives."""
        return Request(rid, f"r{rid}", self.prompt, self.sampling, arrival_ns, self.priority)


@st.composite
def configs(draw: st.DrawFn) -> EngineConfig:
    page_size = draw(st.sampled_from([1, 2, 4, 16]))
    chunk = draw(st.one_of(st.just(CHUNKING_OFF), st.integers(1, CHUNK_PAGES).map(lambda k: k * page_size)))
    tokens = draw(st.one_of(st.integers(40, 120), st.integers(120, 600)))  # a request takes up to 150
    return EngineConfig(
        chunked_prefill_size=chunk,
        max_prefill_tokens=draw(st.sampled_from([8, 64, 16384])),
        page_size=page_size,
        max_total_tokens=tokens,
        enable_mixed_chunk=chunk != CHUNKING_OFF and draw(st.booleans()),
        disable_overlap_schedule=draw(st.booleans()),
        disable_radix_cache=draw(st.booleans()),
        schedule_policy=draw(st.one_of(st.just("fcfs"), st.sampled_from(SCHEDULE_POLICIES))),
        schedule_conservativeness=draw(st.sampled_from([0.01, 0.05, 0.3, 1.0, 2.0])),
        max_running_requests=draw(st.sampled_from([1, 2, 4, 32, 32])),
        context_length=CONTEXT_LENGTH,
        prefill_max_requests=draw(st.sampled_from([None, None, 1, 2])),
        prefill_decode_interval=draw(st.sampled_from([0, 0, 1, 5])),
        prefill_decode_interval_min_bs=draw(st.sampled_from([0, 0, 2])),
        truncation_align_size=None if chunk == CHUNKING_OFF else draw(_alignments(chunk, page_size)),
        random_seed=draw(st.integers(0, 3)),
        **draw(st.one_of(st.just({}), _priorities())),
    ).resolve(max_total_tokens=1, context_length=CONTEXT_LENGTH)


def _alignments(chunk: int, page_size: int) -> st.SearchStrategy[int | None]:
    """Sizes of which a chunk holds an aligned piece of at least a page."""
    fitting = [align for align in range(1, chunk + 1) if chunk // align * align >= page_size]
    return st.one_of(st.none(), st.sampled_from(fitting))


def _priorities() -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(
        {
            "enable_priority_scheduling": st.just(True),
            "disable_priority_preemption": st.booleans(),
            "priority_scheduling_preemption_threshold": st.sampled_from([0, 0, 3, 10]),
            "schedule_low_priority_values_first": st.booleans(),
        }
    )


@st.composite
def crowds(draw: st.DrawFn) -> tuple[EngineConfig, list[Arrival]]:
    """Many requests that arrive one after the other and outgrow the pool together."""
    config = draw(configs())
    page_size = config.page_size
    tokens = draw(st.integers(50, 110)) + 2 * page_size
    config = replace(config, max_total_tokens=tokens, schedule_conservativeness=0.01, max_running_requests=32)
    if draw(st.booleans()):  # decode rows ride along and eat what the long prompts still need
        chunk = draw(st.integers(1, 8)) * page_size
        config = replace(
            config, chunked_prefill_size=chunk, truncation_align_size=None, enable_mixed_chunk=True
        )
    out = []
    for at in range(draw(st.integers(3, 12))):
        length = draw(st.one_of(st.integers(1, 4), st.integers(1, 40)))
        # Only what may end early is admitted on the hope that it does, and retracted where it does not.
        ignore_eos = draw(st.sampled_from([True, False, False, False]))
        sampling = SamplingParams(max_new_tokens=draw(st.integers(15, 50)), ignore_eos=ignore_eos)
        prompt = tuple((at * 11 + i) % 50 for i in range(length))
        start, priority = at * draw(st.integers(0, 3)), draw(PRIORITIES)
        out.append(Arrival(start, prompt, sampling, priority=priority))
    return config, out


@st.composite
def rivals(draw: st.DrawFn) -> tuple[EngineConfig, list[Arrival]]:
    """Requests for few slots that grow more urgent, so that they take each other's place."""
    low_first = draw(st.booleans())
    config = replace(
        draw(configs()),
        max_running_requests=draw(st.integers(1, 3)),
        enable_priority_scheduling=True,
        disable_priority_preemption=False,
        priority_scheduling_preemption_threshold=draw(st.integers(0, 2)),
        schedule_low_priority_values_first=low_first,
    )
    out = []
    for at in range(draw(st.integers(2, 8))):
        prompt = tuple((at * 11 + i) % 50 for i in range(draw(st.integers(1, 30))))
        sampling = SamplingParams(max_new_tokens=draw(st.integers(1, 30)), ignore_eos=draw(st.booleans()))
        urgency = draw(st.integers(at, at + 3))
        start, priority = 2 * at + draw(st.integers(0, 3)), -urgency if low_first else urgency
        out.append(Arrival(start, prompt, sampling, priority=priority))
    return config, out


@st.composite
def arrivals(draw: st.DrawFn) -> list[Arrival]:
    out = []
    for _ in range(draw(st.integers(1, 10))):
        family = draw(st.integers(0, 2))
        share, own = draw(st.integers(0, 30)), draw(st.one_of(st.integers(1, 8), st.integers(1, 60)))
        salt = draw(st.integers(0, 9))
        start = draw(st.one_of(st.integers(0, 2), st.integers(0, 40)))
        out.append(
            Arrival(
                round=start,
                prompt=tuple([family] * share + [(salt * 7 + i) % 50 for i in range(own)]),
                sampling=SamplingParams(
                    max_new_tokens=draw(st.one_of(st.integers(0, 3), st.integers(10, 60))),
                    ignore_eos=draw(st.sampled_from([True, True, False])),
                    stop_token_ids=frozenset(draw(st.sampled_from([(), (), (1,), (2, 8)]))),
                ),
                abort_after=draw(st.one_of(st.none(), st.none(), st.integers(0, 40))),
                priority=draw(PRIORITIES),
            )
        )
    return out


def scenarios() -> st.SearchStrategy[tuple[EngineConfig, list[Arrival]]]:
    """An engine's options and what arrives at it."""
    return st.one_of(st.tuples(configs(), arrivals()), crowds(), rivals())
