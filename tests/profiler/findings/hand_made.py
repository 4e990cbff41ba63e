"""Small traces for findings: forwards by hand, and runs of the real engine at a microsecond a token."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from engine.batch import ForwardBatch, ForwardMode
from engine.config import EngineConfig
from engine.request import Request, SamplingParams
from profiler.findings import Finding, FindingKind, Thresholds, findings
from profiler.tables import TraceLike
from tests.support.simulated_trace import record_simulated
from tests.support.traces import MemoryTrace, decode_row, forward
from traces.reader import Trace

MS = 1_000_000
META: dict[str, Any] = {"provenance": "measured", "engine": {"chunked_prefill_size": 512}}


class TokenCost:
    """A cost model: 1 ms, and 10 µs a token."""

    def forward_ns(self, batch: ForwardBatch) -> int:
        return MS + 10_000 * len(batch.input_ids)


def simulated(
    folder: Path, requests: Sequence[Request], pool: int = 100_000, chunk: int = 100, **options: Any
) -> Trace:
    """The trace of a run with a prefix cache, under overlap, in a folder that may not be there yet."""
    folder.mkdir(exist_ok=True)
    config = EngineConfig(chunked_prefill_size=chunk, **options)
    config = config.resolve(max_total_tokens=pool, context_length=10_000)
    return record_simulated(folder / "t.chunkscope", requests, config, TokenCost())


def request(rid: int, at_ms: float, prompt: int, output: int, *, family: int | None = None) -> Request:
    """One whose length is not known beforehand; those of a family have the same first tokens."""
    own = 1 + (rid if family is None else family)
    tokens = [(own * 13 + i * own) % 50 for i in range(prompt)]
    return Request(rid, f"r{rid}", tokens, SamplingParams(max_new_tokens=output), round(at_ms * MS))


def found(
    trace: TraceLike, kind: FindingKind, limits: Thresholds | None = None, **known: Any
) -> Finding | None:
    """The finding of a kind, if there is one."""
    told = findings(trace, limits or Thresholds(), **known)
    return next((each for each in told if each.kind is kind), None)


def prefill(forward_id: int, start_ms: float, end_ms: float, tokens: int, **more: Any) -> dict[str, Any]:
    """A forward of one prompt, while one request decodes unless said otherwise."""
    told = {"extend_tokens": tokens, "decode_tokens": 0, "absent_decode_reqs": 1, "waiting_reqs": 0, **more}
    return {**forward(forward_id, round(start_ms * MS), round(end_ms * MS), ForwardMode.EXTEND), **told}


def decode(forward_id: int, start_ms: float, end_ms: float, rows: int = 1, **more: Any) -> dict[str, Any]:
    """A forward of decode rows."""
    told = {"extend_tokens": 0, "decode_tokens": rows, "absent_decode_reqs": 0, "waiting_reqs": 0, **more}
    return {**forward(forward_id, round(start_ms * MS), round(end_ms * MS)), **told}


def made(forwards: Sequence[dict[str, Any]], meta: dict[str, Any] = META, **tables: Any) -> MemoryTrace:
    """A trace of these forwards."""
    return MemoryTrace({"forwards": forwards, **tables}, meta)


def tokens_at(times_ms: Sequence[float]) -> MemoryTrace:
    """One request whose tokens come at these times, each by a decode forward of its own."""
    forwards = [decode(at, t - 1, t) for at, t in enumerate(times_ms)]
    return made(forwards, rows=[decode_row(at, 0, at) for at in range(len(forwards))])
