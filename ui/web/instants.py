"""Links that lead from a line to its instant: Compare with the cursor there, and the gap chosen."""

from collections.abc import Sequence
from typing import Any
from urllib.parse import urlencode

from dash import html

from profiler.ledger.parts import GapDetail
from ui.web.attributes import data
from ui.web.runs import Run

__all__ = ["instant_link", "instant_query"]

_VISIBLE = 0.02  # of the run: an interval that is narrower is shown with its surroundings
_AROUND = 12  # times its length
_LEAST_NS = 1_000_000


def instant_link(
    content: Any, run: Run, start_ns: int, end_ns: int, gap: GapDetail | None = None, **more: Any
) -> html.A:
    """A link to Compare with the cursor at `start_ns`, of the trace, and the interval in view."""
    query = instant_query(run, start_ns, end_ns, None if gap is None else (gap.rid, gap.token_index))
    return html.A(content, href=f"/compare?{urlencode(query)}", **data(instant=""), **more)


def instant_query(run: Run, start_ns: int, end_ns: int, gap: tuple[int, int] | None = None) -> dict[str, int]:
    """What the address of such a link holds; `gap` is a request and the index of its token."""
    timeline = run.timeline
    last = max(1, timeline.end_ns - timeline.start_ns)
    start, end = (min(max(0, t - timeline.start_ns), last) for t in (start_ns, end_ns))
    t0, t1 = _around(start, end, last)
    chosen = {} if gap is None else {"rid": gap[0], "tok": gap[1]}
    return {"run": run.index, **chosen, "t0": t0, "t1": t1, "t": start}


def _around(start: int, end: int, last: int) -> Sequence[int]:
    if end - start >= _VISIBLE * last:
        return 0, last
    span = max(_LEAST_NS, _AROUND * (end - start))
    t0 = max(0, (start + end - span) // 2)
    return t0, min(last, t0 + span)
