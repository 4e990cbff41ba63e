"""The requests of a trace, made anew so that they can be sent through a scheduler again."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from engine.request import FinishReason, Request, SamplingParams
from profiler.tables import TraceLike
from profiler.trial_prompts import made_prompt

__all__ = ["TraceRequests", "busiest", "has_arrivals", "requests_of"]


@dataclass(frozen=True, slots=True)
class TraceRequests:
    """Requests of a trace in order of arrival, numbered anew from 0, under their names."""

    requests: tuple[Request, ...]
    ends: Mapping[int, int]  # by rid, after how many tokens a request ended that might have given more
    left_out: int  # requests whose arrival or prompt length the trace lacks
    open_ended: int  # that the trace does not see ending: they end where it does
    shared_prefixes: bool  # whether the trace says which prompts begin alike


def has_arrivals(trace: TraceLike) -> bool:
    """Whether a trace's requests came by themselves, and not each when the one before had ended."""
    workload = trace.meta.get("workload")
    if isinstance(workload, Mapping) and workload.get("kind") == "closed":
        return False
    arrivals = trace.table("requests").column("arrival_ns")
    return bool(arrivals.null_count < len(arrivals))


def requests_of(trace: TraceLike) -> TraceRequests:
    """What a trace's `requests` say: arrivals, lengths, priorities, and prompts that begin alike.

    Prompts share tokens where they share `prefix_hashes`, and nothing beyond their last whole block of 64.
    A prefix that was another request's output is not shared.
    """
    names = ("name", "arrival_ns", "prompt_tokens", "max_new_tokens", "output_tokens", "finish_reason")
    table = trace.table("requests")
    rows = table.select(["rid", *names, "priority", "ignore_eos"]).to_pylist()
    known = [at for at, r in enumerate(rows) if r["arrival_ns"] is not None and (r["prompt_tokens"] or 0) > 0]
    known.sort(key=lambda at: rows[at]["arrival_ns"])
    hashes = table.column("prefix_hashes")
    made = [_request(rid, rows[at], _Hashes(hashes, at)) for rid, at in enumerate(known)]
    return TraceRequests(
        requests=tuple(request for request, _ in made),
        ends={r.rid: end for r, end in made if end < r.sampling.max_new_tokens},
        left_out=len(rows) - len(known),
        open_ended=sum(not _ended(rows[at]) for at in known),
        shared_prefixes=hashes.null_count < len(hashes),
    )


def busiest(requests: Sequence[Request], work: Sequence[float], most: float) -> slice:
    """The stretch of consecutive requests with the most prompt tokens whose work is at most `most`.

    `work` is each request's. All, if they fit; at least one request.
    """
    best, best_tokens, start, done, tokens = slice(0, 1), -1, 0, 0.0, 0
    for end, request in enumerate(requests):
        done += work[end]
        tokens += request.prompt_len
        while done > most and start < end:
            done -= work[start]
            tokens -= requests[start].prompt_len
            start += 1
        if tokens > best_tokens:
            best, best_tokens = slice(start, end + 1), tokens
    return best


class _Hashes(NamedTuple):
    """The prefix hashes of a request, left in their column until its prompt is wanted."""

    column: pa.ChunkedArray
    at: int

    def read(self) -> NDArray[np.uint64]:
        """(blocks,) none where they are unknown."""
        values = self.column[self.at].values
        return np.array([] if values is None else values.to_numpy(), dtype=np.uint64)


def _request(rid: int, row: Mapping[str, Any], hashes: _Hashes) -> tuple[Request, int]:
    """A request, and after how many output tokens it ended."""
    gave = max(1, row["output_tokens"] or 0)
    sampling = SamplingParams(
        max_new_tokens=max(gave, row["max_new_tokens"] or 0), ignore_eos=bool(row["ignore_eos"])
    )
    prompt = made_prompt(rid, row["prompt_tokens"], hashes.read)
    name = str(row["rid"]) if row["name"] is None else row["name"]
    return Request(rid, name, prompt, sampling, row["arrival_ns"], row["priority"] or 0), gave


def _ended(row: Mapping[str, Any]) -> bool:
    return row["finish_reason"] is not None and row["finish_reason"] != FinishReason.ABORT.value
