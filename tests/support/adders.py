"""`PrefillAdder`s on a pool of their own, and short ways to say what they admitted."""

from array import array
from collections.abc import Sequence
from dataclasses import fields
from types import SimpleNamespace

from engine.admission import AddResult, PrefillAdder
from engine.cache import KVCache
from engine.config import EngineConfig
from engine.request import Request, SamplingParams
from engine.reserve import Reserve
from tests.support.engines import Prompts


def _running(count: int, max_new: int, output: int) -> list[Request]:
    out = []
    for i in range(count):
        request = Request(1000 + i, f"d{i}", [1], SamplingParams(max_new))
        request.tokens.extend([2] * output)
        out.append(request)
    return out


def adder_of(
    pool: int = 100_000,
    chunk: int = 4096,
    page: int = 1,
    running: int = 0,
    max_new: int = 50,
    output: int = 0,
    ratio: float = 0.7,
    mixed: int = 0,
    decoding: Sequence[Request] = (),
    **options: object,
) -> PrefillAdder:
    """`running` requests alike, or those in `decoding`; options are those of EngineConfig, unchecked."""
    defaults = {f.name: f.default for f in fields(EngineConfig)}
    config = SimpleNamespace(chunk_tokens=None if chunk < 0 else chunk, **(defaults | options))
    cache = KVCache(pool, page, 8)
    requests = [*decoding, *_running(running, max_new, output)]
    return PrefillAdder(config, cache, requests, Reserve(requests), ratio, mixed)  # type: ignore[arg-type]


def offer(adder: PrefillAdder, length: int, max_new: int = 0) -> AddResult:
    """Offer a request without a cached prefix."""
    request = Prompts().request(length, max_new)
    request.node = None
    return adder.add(request)


def half_done(total: int, done: int) -> Request:
    """A request of `total` prompt tokens of which `done` are computed."""
    request = Request(0, "half", array("i", range(total)), SamplingParams(256))
    request.prefix_len = request.kv_len = done
    return request


def admitted_lengths(adder: PrefillAdder) -> list[int]:
    """Tokens that each admitted request's next forward computes."""
    return [r.extend_end - r.prefix_len for r in adder.admitted]
