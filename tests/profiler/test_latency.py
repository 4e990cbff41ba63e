"""Token times, percentiles and rates against hand-worked traces."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.batch import Outcome
from profiler.latency import Spread, first_token_times, gaps, latency, token_times
from tests.support.traces import MemoryTrace, decode_row, extend_row, forward, request


def two_requests() -> MemoryTrace:
    """r0 and r1 prefill in forward 0 and decode in 1 and 3; forward 2 is a middle chunk of r2."""
    return MemoryTrace(
        {
            "requests": [request(0, 5), request(1, 10), request(2, 20)],
            "forwards": [
                forward(0, 10, 40),
                forward(1, 50, 60),
                forward(2, 70, 170, result_end_ns=175),
                forward(3, 180, 190),
            ],
            "rows": [
                extend_row(0, 0, 7, token_index=0),
                extend_row(0, 1, 3, token_index=0),
                decode_row(1, 0, 1),
                decode_row(1, 1, 1),
                extend_row(2, 2, 50),
                decode_row(3, 0, 2),
                decode_row(3, 1, 2),
            ],
        }
    )


def test_a_tokens_time_is_the_end_of_its_forwards_result() -> None:
    trace = MemoryTrace(
        {"forwards": [forward(4, 10, 30, result_end_ns=33)], "rows": [extend_row(4, 1, 9, token_index=0)]}
    )
    assert token_times(trace).row(0, named=True) == {
        "rank": 0, "rid": 1, "token_index": 0, "forward_id": 4, "t_ns": 33,
    }  # fmt: skip


def test_gaps_lie_between_consecutive_tokens_and_middle_chunks_give_none() -> None:
    found = gaps(two_requests()).select("rid", "token_index", "gap_ns", "own_forward_id").rows()
    assert found == [(0, 1, 20, 1), (0, 2, 130, 3), (1, 1, 20, 1), (1, 2, 130, 3)]


def test_ttft_counts_from_arrival_to_the_first_token() -> None:
    assert first_token_times(two_requests()).select("rid", "ttft_ns").rows() == [(0, 35), (1, 30)]


def test_ttft_falls_back_on_the_request_when_its_rows_are_missing() -> None:
    trace = MemoryTrace({"requests": [request(3, 100, first_token_ns=250), request(4, 100)]})
    assert first_token_times(trace).select("rid", "ttft_ns").rows() == [(3, 150)]


def test_latency_of_hand_worked_trace() -> None:
    found = latency(two_requests())
    assert found.output_tokens == 6
    assert found.output_tokens_per_s == pytest.approx(6 / (190 - 5) * 1e9)
    assert found.itl.p50 == pytest.approx(75e-9)
    assert found.itl.max == 130e-9
    assert found.waiting_s == gaps(two_requests())["gap_ns"].sum() / 1e9


def test_rate_counts_from_the_first_plan_when_arrivals_are_unknown() -> None:
    trace = MemoryTrace({"forwards": [forward(0, 100, 300)], "rows": [extend_row(0, 0, 9, token_index=0)]})
    assert latency(trace).output_tokens_per_s == pytest.approx(1 / 200 * 1e9)


def test_an_empty_trace_has_unknown_latency() -> None:
    found = latency(MemoryTrace({}))
    assert found.ttft == found.itl == Spread(None, None, None)
    assert (found.output_tokens, found.output_tokens_per_s, found.waiting_s) == (0, None, None)


def test_dropped_samples_and_lost_forwards_are_no_tokens() -> None:
    trace = MemoryTrace(
        {
            "forwards": [forward(0, 0, 10)],
            "rows": [
                decode_row(0, 0, 0),
                decode_row(0, 1, 3, outcome=Outcome.FINISHED_DROPPED.value),
                decode_row(0, 2, -1),
                decode_row(9, 3, 1),
            ],
        }
    )
    assert token_times(trace)["rid"].to_list() == [0]


def test_a_missing_token_makes_no_gap() -> None:
    trace = MemoryTrace(
        {
            "forwards": [forward(i, i * 10, i * 10 + 5) for i in range(4)],
            "rows": [decode_row(0, 0, 0), decode_row(1, 0, 1), decode_row(3, 0, 3)],
        }
    )
    assert gaps(trace)["token_index"].to_list() == [1]


def test_a_token_that_two_ranks_recorded_counts_once() -> None:
    trace = MemoryTrace(
        {
            "forwards": [forward(0, 0, 10), forward(1, 0, 12, rank=1)],
            "rows": [decode_row(1, 0, 0, rank=1), decode_row(0, 0, 0)],
        }
    )
    assert token_times(trace).select("rank", "t_ns").rows() == [(0, 10)]


@given(st.lists(st.integers(0, 10**12), min_size=1, max_size=60))
def test_percentiles_interpolate_linearly(durations: list[int]) -> None:
    found = Spread.of_ns(pl.Series(durations, dtype=pl.Int64))
    expected = np.percentile(durations, [50, 99, 100]) / 1e9
    assert [found.p50, found.p99, found.max] == pytest.approx(list(expected), rel=1e-9)
