"""Which requests' lanes a window shows when there is no room for all."""

from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from profiler.forward_table import UNKNOWN
from profiler.request_rows import RequestRows
from profiler.timeline.requests import Requests, known
from profiler.timeline.tiles import LaneRef

__all__ = ["lane_refs", "lane_rids", "ref"]

Ints = NDArray[np.int64]

_VICTIMS = 0.5  # of the lanes, for those who waited longest
_LONG = 0.25  # for the longest prompts
_LOOKED_AT = 1024  # stalls at once
_MUCH_LONGER = 4  # times the median prompt


def lane_refs(
    requests: Requests, rows: RequestRows, stalls: pl.DataFrame, start_ns: int, end_ns: int, limit: int
) -> tuple[list[LaneRef], int]:
    """At most `limit` requests alive in [start_ns, end_ns), by arrival, and how many there are."""
    rids, alive = lane_rids(requests, stalls, start_ns, end_ns, limit)
    return [ref(requests, rows, rid) for rid in rids], alive


def lane_rids(
    requests: Requests, stalls: pl.DataFrame, start_ns: int, end_ns: int, limit: int
) -> tuple[list[int], int]:
    """Which requests these are.

    Where there are more, half of the room goes to those with the longest stalls in the window, a quarter to
    the longest prompts, and the rest to whoever came first.
    """
    alive = np.flatnonzero(
        (requests.arrival_ns < end_ns) & ((requests.finish_ns == UNKNOWN) | (requests.finish_ns >= start_ns))
    )
    chosen = alive if len(alive) <= limit else _choose(requests, alive, stalls, start_ns, end_ns, limit)
    by_arrival = chosen[np.lexsort((requests.rid[chosen], requests.arrival_ns[chosen]))]
    return requests.rid[by_arrival].tolist(), len(alive)


def ref(requests: Requests, rows: RequestRows, rid: int) -> LaneRef:
    """A request as views name it."""
    at = requests.position(rid)
    mine = rows.of(rid)
    _, of = rows.chunk_number(rid, int(rows.forward[mine][-1])) if mine.stop > mine.start else (0, None)
    prompt = None if at is None else known(requests.prompt[at])

    def time(column: Ints) -> int | None:
        return None if at is None else known(column[at])

    return LaneRef(
        rid=rid,
        name=requests.name(rid),
        arrival_ns=time(requests.arrival_ns),
        prompt_tokens=prompt,
        first_token_ns=time(requests.first_token_ns),
        finish_ns=time(requests.finish_ns),
        chunks=of or 0,
        long=(of or 0) > 1 or (prompt is not None and prompt > _MUCH_LONGER * requests.usual_prompt),
    )


def _choose(
    requests: Requests, alive: Ints, stalls: pl.DataFrame, start_ns: int, end_ns: int, limit: int
) -> Ints:
    """Positions of the chosen ones, in no order."""
    starts, ends, rids = (stalls[name].to_numpy() for name in ("start_ns", "end_ns", "rid"))
    victims = _first_different(rids[(starts < end_ns) & (ends > start_ns)], round(limit * _VICTIMS))
    kept = dict.fromkeys(np.flatnonzero(np.isin(requests.rid, victims)).tolist())
    by_prompt = alive[np.argsort(-requests.prompt[alive], kind="stable")]
    kept |= dict.fromkeys(by_prompt[: round(limit * _LONG)].tolist())
    for at in alive.tolist():
        if len(kept) >= limit:
            break
        kept.setdefault(at)
    return np.array(list(kept), dtype=np.int64)


def _first_different(values: NDArray[Any], count: int) -> list[int]:
    """The first `count` values, each once."""
    found: dict[int, None] = {}
    for at in range(0, len(values), _LOOKED_AT):
        found |= dict.fromkeys(values[at : at + _LOOKED_AT].tolist())
        if len(found) >= count:
            break
    return list(found)[:count]
