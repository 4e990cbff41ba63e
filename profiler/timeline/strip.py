"""The forward strip of a window, and step lines of counters, from columns and a pyramid of the forwards."""

import numpy as np
from numpy.typing import NDArray

from profiler.forward_table import ForwardTable
from profiler.pyramid import Pyramid
from profiler.timeline.tiles import Counters, Strip

__all__ = ["counters", "forward_pyramid", "strip"]

Ints = NDArray[np.int64]

SINGLES = 2  # forwards a column that are still shown each by itself
_COUNTERS = (
    *("pages_total", "pages_free", "pages_evictable", "pages_protected", "pages_private"),
    *("inflight_middle_chunks", "waiting_reqs", "running_reqs"),
)


def forward_pyramid(forwards: ForwardTable, origin_ns: int) -> Pyramid:
    """One track of all forwards; its times count from `origin_ns`."""
    bounds = np.array([0, len(forwards)])
    return Pyramid.build(bounds, forwards.start_ns - origin_ns, forwards.end_ns - forwards.start_ns)


def strip(
    forwards: ForwardTable, pyramid: Pyramid, origin_ns: int, start_ns: int, end_ns: int, columns: int
) -> Strip:
    """Forwards that reach into [start_ns, end_ns), or buckets of them."""
    first, last = _reaching(forwards, start_ns, end_ns)
    level = pyramid.level_for((end_ns - start_ns) / columns)
    if last - first <= SINGLES * columns or level is None:
        at = np.arange(first, last)
        lengths = forwards.end_ns[at] - forwards.start_ns[at]
        return _strip(forwards, at, forwards.start_ns[at], forwards.end_ns[at], np.ones_like(at), lengths)
    chosen = level.window(0, start_ns - origin_ns, end_ns - origin_ns)
    begin = (level.bucket[chosen] << level.shift) + origin_ns
    at = level.longest[chosen]
    end = np.maximum(begin + (1 << level.shift), forwards.end_ns[at])
    return _strip(forwards, at, begin, end, level.count[chosen], level.busy_ns[chosen])


def counters(forwards: ForwardTable, start_ns: int, end_ns: int, columns: int) -> Counters:
    """The state that holds at `start_ns`, and what each column of the window has of extremes."""
    times = forwards.start_ns
    first = max(0, int(np.searchsorted(times, start_ns, side="right")) - 1)
    last = int(np.searchsorted(times, end_ns, side="left"))
    at = np.arange(first, max(first, last))
    if len(at) > SINGLES * 2 * columns:
        at = _extremes(forwards, at, start_ns, max(1, (end_ns - start_ns) // columns))
    return Counters(t_ns=times[at], **{name: getattr(forwards, name)[at] for name in _COUNTERS})


def _reaching(forwards: ForwardTable, start_ns: int, end_ns: int) -> tuple[int, int]:
    first = int(np.searchsorted(forwards.start_ns, start_ns, side="left"))
    while first and forwards.end_ns[first - 1] > start_ns:
        first -= 1
    return first, max(first, int(np.searchsorted(forwards.start_ns, end_ns, side="left")))


def _strip(forwards: ForwardTable, at: Ints, start: Ints, end: Ints, count: Ints, busy: Ints) -> Strip:
    return Strip(
        start_ns=start,
        end_ns=end,
        forward_id=forwards.forward_id[at],
        mode=forwards.mode[at],
        extend_tokens=forwards.extend_tokens[at],
        decode_tokens=forwards.decode_tokens[at],
        budget_tokens=forwards.chunk_budget_start_tokens[at],
        count=count,
        busy_ns=busy,
    )


def _extremes(forwards: ForwardTable, at: Ints, start_ns: int, width_ns: int) -> Ints:
    """Of each column: first and last forward, least and most free pages, most in-flight chunks."""
    column = np.maximum(forwards.start_ns[at] - start_ns, 0) // width_ns
    first = np.flatnonzero(np.diff(column, prepend=-1))
    kept = [first, np.append(first[1:], len(at)) - 1]
    for values in (
        forwards.pages_free[at] + forwards.pages_evictable[at],
        -(forwards.pages_free[at] + forwards.pages_evictable[at]),
        forwards.inflight_middle_chunks[at],
    ):
        largest = np.maximum.reduceat(values, first)
        run = np.repeat(np.arange(len(first)), np.diff(first, append=len(at)))
        hits = np.flatnonzero(values == largest[run])
        kept.append(hits[np.flatnonzero(np.diff(run[hits], prepend=-1))])
    chosen: Ints = at[np.unique(np.concatenate(kept))]
    return chosen
