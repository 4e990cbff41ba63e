"""Between giving KV back and the next chunk: spells of a request before its first token."""

import numpy as np

from profiler.ledger.ttft_source import TtftSource

__all__ = ["Spell", "spells", "with_spells"]

Spell = tuple[int, int]  # from and until, in nanoseconds


def spells(source: TtftSource, wait: int) -> list[Spell]:
    """Those of one request while it is prefilled, by its place in `Waits`. They may overlap.

    Each ends at the start of its next chunk of a later attempt.
    """
    start_ns, end_ns = int(source.waits.queue_end_ns[wait]), int(source.waits.first_token_ns[wait])
    rid, special = int(source.waits.rid[wait]), source.rows.special
    mine = special.of_request(rid)
    chunks = special.is_chunk[mine] & (source.forwards.rank[special.forward[mine]] == source.waits.rank[wait])
    starts, attempts = source.forwards.start_ns[special.forward[mine]], special.attempt[mine]
    found = []
    for gave_ns, attempt, _ in source.ledger.held.given_back_by(rid):
        if start_ns < gave_ns <= end_ns:
            later = starts[chunks & ((attempts > attempt) | (attempt < 0)) & (starts >= gave_ns)]
            found.append((gave_ns, int(later.min()) if len(later) else end_ns))
    return found


def with_spells(source: TtftSource) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Places in `Waits` of requests that may have some."""
    at = source.waits.index(source.ledger.held.gave_rid)
    gave_ns = source.ledger.held.gave_ns[at >= 0]
    at = at[at >= 0]
    inside = (source.waits.queue_end_ns[at] < gave_ns) & (gave_ns <= source.waits.first_token_ns[at])
    return np.unique(at[inside])
