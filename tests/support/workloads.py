"""Hypothesis strategies for engines and workloads, tiny pools included."""

from dataclasses import dataclass, field

from hypothesis import strategies as st

from engine.config import CHUNKING_OFF, EngineConfig
from engine.request import SamplingParams


@dataclass(frozen=True)
class Arrival:
    """A request queued before a round, perhaps aborted before a later one."""

    round: int
    prompt: tuple[int, ...]
    sampling: SamplingParams
    abort_round: int | None = field(default=None)


@st.composite
def configs(draw: st.DrawFn) -> EngineConfig:
    page_size = draw(st.sampled_from([1, 2, 4, 16]))
    chunk = draw(st.one_of(st.just(CHUNKING_OFF), st.integers(1, 6).map(lambda k: k * page_size)))
    pages = draw(st.one_of(st.integers(4, 16), st.integers(16, 200)))
    return EngineConfig(
        chunked_prefill_size=chunk,
        max_prefill_tokens=draw(st.sampled_from([8, 64, 16384])),
        page_size=page_size,
        max_total_tokens=max(pages * page_size, 40),
        enable_mixed_chunk=chunk != CHUNKING_OFF and draw(st.booleans()),
        disable_radix_cache=draw(st.booleans()),
        schedule_conservativeness=draw(st.sampled_from([0.05, 0.3, 1.0, 2.0])),
        max_running_requests=draw(st.sampled_from([1, 2, 4, 32])),
        context_length=1 << 16,
    ).resolve(max_total_tokens=1, context_length=1 << 16)


@st.composite
def arrivals(draw: st.DrawFn) -> list[Arrival]:
    out = []
    for _ in range(draw(st.integers(1, 10))):
        family = draw(st.integers(0, 2))
        share, own = draw(st.integers(0, 30)), draw(st.integers(1, 40))
        salt = draw(st.integers(0, 9))
        start = draw(st.integers(0, 12))
        out.append(
            Arrival(
                round=start,
                prompt=tuple([family] * share + [(salt * 7 + i) % 50 for i in range(own)]),
                sampling=SamplingParams(
                    max_new_tokens=draw(st.integers(0, 30)),
                    ignore_eos=draw(st.booleans()),
                    stop_token_ids=frozenset(draw(st.sets(st.integers(0, 49), max_size=2))),
                ),
                abort_round=draw(st.none() | st.integers(start, start + 15)),
            )
        )
    return out
