"""Hypothesis strategies for engines and workloads, tiny pools included."""

from dataclasses import dataclass, field, replace

from hypothesis import strategies as st

from engine.config import CHUNKING_OFF, EngineConfig
from engine.request import SamplingParams


@dataclass(frozen=True)
class Arrival:
    """A request queued before a round, perhaps aborted some rounds later."""

    round: int
    prompt: tuple[int, ...]
    sampling: SamplingParams
    abort_after: int | None = field(default=None)


@st.composite
def configs(draw: st.DrawFn) -> EngineConfig:
    page_size = draw(st.sampled_from([1, 2, 4, 16]))
    chunk = draw(st.one_of(st.just(CHUNKING_OFF), st.integers(1, 6).map(lambda k: k * page_size)))
    tokens = draw(st.one_of(st.integers(40, 120), st.integers(120, 600)))  # a request takes up to 150
    return EngineConfig(
        chunked_prefill_size=chunk,
        max_prefill_tokens=draw(st.sampled_from([8, 64, 16384])),
        page_size=page_size,
        max_total_tokens=tokens,
        enable_mixed_chunk=chunk != CHUNKING_OFF and draw(st.booleans()),
        disable_overlap_schedule=draw(st.booleans()),
        disable_radix_cache=draw(st.booleans()),
        schedule_conservativeness=draw(st.sampled_from([0.01, 0.05, 0.3, 1.0, 2.0])),
        max_running_requests=draw(st.sampled_from([1, 2, 4, 32, 32])),
        context_length=1 << 16,
    ).resolve(max_total_tokens=1, context_length=1 << 16)


@st.composite
def crowds(draw: st.DrawFn) -> tuple[EngineConfig, list[Arrival]]:
    """Many requests that arrive one after the other and outgrow the pool together."""
    config = draw(configs())
    page_size = config.page_size
    tokens = draw(st.integers(50, 110)) + 2 * page_size
    config = replace(config, max_total_tokens=tokens, schedule_conservativeness=0.01, max_running_requests=32)
    if draw(st.booleans()):  # decode rows ride along and eat what the long prompts still need
        config = replace(
            config, chunked_prefill_size=draw(st.integers(1, 8)) * page_size, enable_mixed_chunk=True
        )
    out = []
    for at in range(draw(st.integers(3, 12))):
        length = draw(st.one_of(st.integers(1, 4), st.integers(1, 40)))
        sampling = SamplingParams(max_new_tokens=draw(st.integers(15, 50)), ignore_eos=True)
        prompt = tuple((at * 11 + i) % 50 for i in range(length))
        out.append(Arrival(at * draw(st.integers(0, 3)), prompt, sampling))
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
                abort_after=draw(st.sampled_from([None, None, None, 2, 9, 25])),
            )
        )
    return out


def scenarios() -> st.SearchStrategy[tuple[EngineConfig, list[Arrival]]]:
    """An engine's options and what arrives at it."""
    return st.one_of(st.tuples(configs(), arrivals()), crowds())
