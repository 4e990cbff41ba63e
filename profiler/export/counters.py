"""A rank's counters: tokens of each forward, KV pages by kind, queue, middle chunks in flight."""

from collections.abc import Iterator, Mapping
from typing import Any

from traces.drawing import Counter

__all__ = ["KV_PAGES", "counters_of"]

KV_PAGES = {
    "locked": "pages_protected",
    "private": "pages_private",
    "evictable": "pages_evictable",
    "free": "pages_free",
}
_COUNTERS = {
    "tokens": {"extend": "extend_tokens", "decode": "decode_tokens"},
    "KV pages": KV_PAGES,
    "queue": {"waiting": "waiting_reqs"},
    "inflight_middle_chunks": {"sum": "inflight_middle_chunks"},
}


def counters_of(row: Mapping[str, Any], rank: int, t_ns: int) -> Iterator[Counter]:
    """What a forward's row says, from its start on; what it does not know keeps its last value."""
    for name, columns in _COUNTERS.items():
        values = {series: row[column] for series, column in columns.items() if row[column] is not None}
        if values:
            yield Counter(rank, name, t_ns, values)
