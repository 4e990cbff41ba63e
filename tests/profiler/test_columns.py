"""Sorting, medians and gaps over columns, against slow ways to the same answer."""

import numpy as np
import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from engine.batch import ForwardMode, Role
from profiler.forward_table import forward_table
from profiler.range_median import RangeMedian
from profiler.request_rows import request_rows
from profiler.stable_order import stable_order
from profiler.token_gaps import DeviceTime, token_gaps
from tests.support.traces import MemoryTrace, decode_row, extend_row, forward, request


@given(st.lists(st.one_of(st.integers(0, 5), st.integers(0, (1 << 32) - 1))))
def test_stable_order_is_pythons(ids: list[int]) -> None:
    order = stable_order(np.array(ids, dtype=np.uint32))
    assert order.tolist() == sorted(range(len(ids)), key=lambda i: ids[i])


@given(st.lists(st.integers(-5, 1 << 40), max_size=40), st.data())
def test_medians_of_slices_are_numpys(values: list[int], data: st.DataObject) -> None:
    edges = st.tuples(st.integers(0, len(values)), st.integers(0, len(values))).map(sorted)
    slices = data.draw(st.lists(edges, min_size=1))
    low, high = (np.array(part) for part in zip(*slices, strict=True))
    medians = RangeMedian(np.array(values, dtype=np.int64)).of(low, high) if values else []
    for median, (a, b) in zip(medians, slices, strict=False):
        assert np.isnan(median) if a == b else median == np.median(values[a:b])


@st.composite
def orderly(draw: st.DrawFn) -> MemoryTrace:
    """Forwards in order of start and end, which may overlap; each has some of four requests as rows."""
    t, forwards, rows, given_ = 0, [], [], dict.fromkeys(range(4), 0)
    end = 0
    for i in range(draw(st.integers(1, 14))):
        t += draw(st.integers(0, 30))
        end = max(end, t) + draw(st.integers(0, 40))
        result = end + draw(st.integers(0, 9))
        forwards.append(forward(i, t, end, draw(st.sampled_from(list(ForwardMode))), result_end_ns=result))
        for rid in draw(st.sets(st.integers(0, 3), min_size=1)):
            if draw(st.booleans()):
                rows.append(decode_row(i, rid, given_[rid]))
                given_[rid] += 1
            else:
                rows.append(extend_row(i, rid, 5, role=Role.MIDDLE))
    return MemoryTrace({"requests": [request(r) for r in range(4)], "forwards": forwards, "rows": rows})


@given(orderly())
def test_others_device_time_in_a_gap_is_what_adding_up_gives(trace: MemoryTrace) -> None:
    forwards = forward_table(trace)
    rows = request_rows(trace, forwards)
    if (np.diff(forwards.result_end_ns) < 0).any():
        return  # tokens that come before earlier ones make no gap of this kind
    device_time = DeviceTime.of_forwards(forwards)
    assert device_time is not None
    gaps = token_gaps(rows, forwards)
    busy, touching = device_time.of_others(gaps, rows)
    table = pl.from_arrow(trace.table("rows"))
    for g in range(len(gaps.row)):
        rid = int(rows.rids[gaps.request[g]])
        own = set(table.filter(pl.col("rid") == rid)["forward_id"])
        shared = [
            min(end, int(gaps.end_ns[g])) - max(start, int(gaps.start_ns[g]))
            for i, start, end in zip(
                forwards.forward_id.tolist(),
                forwards.start_ns.tolist(),
                forwards.end_ns.tolist(),
                strict=True,
            )
            if i not in own
        ]
        assert busy[g] == sum(s for s in shared if s > 0)
        assert touching[g] == sum(s > 0 for s in shared)
