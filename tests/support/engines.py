"""Engines on the hash executor, and short ways to say what their forwards did."""

from engine.config import EngineConfig
from engine.engine import Engine
from engine.observer import EngineObserver, ForwardRecord
from engine.request import Request, SamplingParams
from tests.support.hash_executor import HashExecutor


def make_engine(
    pool: int = 100_000,
    observer: EngineObserver | None = None,
    max_running_requests: int = 64,
    **options: object,
) -> Engine:
    """An engine with a pool of `pool` tokens in the plain loop; options are those of EngineConfig."""
    options = {"disable_overlap_schedule": True, **options}
    config = EngineConfig(max_total_tokens=pool, max_running_requests=max_running_requests, **options)  # type: ignore[arg-type]
    config = config.resolve(max_total_tokens=pool, context_length=1 << 20)
    return Engine(config, HashExecutor(pool // config.page_size, config.page_size), observer=observer)


class Prompts:
    """Numbers requests and gives each a prompt of its own, unless a first part is shared."""

    def __init__(self) -> None:
        self.made = 0

    def request(
        self, length: int, max_new: int = 8, *, share: tuple[int, int] = (0, 0), name: str = ""
    ) -> Request:
        """`share` = (family, tokens): requests of a family begin with the same tokens."""
        family, shared = share
        base = 1000 * (self.made + 1)
        tokens = [family * 7 + 1] * shared + [base + i % 900 for i in range(length - shared)]
        request = Request(
            self.made, name or f"r{self.made}", tokens, SamplingParams(max_new, ignore_eos=True)
        )
        self.made += 1
        return request


def rows(record: ForwardRecord | None) -> list[tuple[str, int, int]]:
    """(name, prefix_len, extend_end) of each row, in batch order; empty when nothing ran."""
    if record is None:
        return []
    b = record.batch
    return [
        (r.name, int(p), int(p + e)) for r, p, e in zip(b.requests, b.prefix_lens, b.extend_lens, strict=True)
    ]


def run_all(engine: Engine, rounds: int = 10_000) -> list[ForwardRecord]:
    """Step until no request is left; returns the forwards."""
    records = []
    for _ in range(rounds):
        if not engine.has_work:
            return records
        record = engine.step()
        if record is not None:
            records.append(record)
    raise AssertionError("requests are stuck")


def extents(records: list[ForwardRecord], name: str) -> list[tuple[int, int]]:
    """The prefill extents of a request, in order."""
    out = []
    for record in records:
        prefill = rows(record)[: record.batch.num_extend_seqs]
        out += [(a, b) for row, a, b in prefill if row == name]
    return out


def pool_tokens(engine: Engine) -> tuple[int, int, int]:
    """Available, evictable and protected tokens."""
    state, size = engine.cache.pool_state(), engine.config.page_size
    return state.free * size, state.evictable * size, state.protected * size
