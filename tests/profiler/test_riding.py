"""Decodes that ride along: mixed rows get their forwards' times, others stay."""

from dataclasses import replace

import pytest

from engine.arithmetic import ForwardSums
from engine.batch import ForwardBatch
from profiler.advice import Advice, advise
from profiler.price_rows import Limits
from profiler.riding import riding
from tests.profiler.test_saturation_board import FEW, told_runs
from traces.reader import open_trace

LONGEST, MEDIAN = 300, 177  # tokens of the longest prompt; of prompt and output, the median


class Cost:
    """A token costs a second, a pair of a query and a key from before a thousandth."""

    def seconds(self, sums: ForwardSums) -> float:
        return sums.tokens + (sums.pairs_prefix + sums.pairs_decode) / 1000

    def forward_ns(self, batch: ForwardBatch) -> int:
        raise AssertionError("nothing is tried anew")


@pytest.fixture(scope="module")
def advice(tmp_path_factory: pytest.TempPathFactory) -> Advice:
    path = told_runs(tmp_path_factory.mktemp("riding"))["mixed"]
    found = advise(open_trace(path), Limits(itl_max_s=10.0))
    return replace(found, basis=replace(found.basis, cost=Cost()))


def test_a_mixed_forward_has_a_shorter_chunk_and_the_decodes(advice: Advice) -> None:
    assert FEW[1][2] == LONGEST
    for row, ridden in zip(advice.rows, riding(advice, 20).rows, strict=True):
        chunk = row.options.chunk_tokens
        if not row.options.mixed or chunk is None or chunk <= 20:
            assert ridden == row
            continue
        size = min(chunk - 20, LONGEST)
        decodes = 20 + 20 * MEDIAN / 1000
        assert ridden.first_forward_s == pytest.approx(size + decodes)
        assert ridden.last_forward_s == pytest.approx(size + size * (LONGEST - size) / 1000 + decodes)
        assert ridden.longest_wait_s == ridden.last_forward_s
        kept = ("first_forward_s", "last_forward_s", "longest_wait_s")
        assert replace(ridden, **{name: getattr(row, name) for name in kept}) == row


def test_the_choice_is_made_anew_under_the_same_limits(advice: Advice) -> None:
    ridden = riding(advice, 20)
    assert ridden.choice.limits == advice.choice.limits
    assert ridden.choice == ridden.choose(advice.choice.limits)
    assert advice.choice.row is not None
    assert ridden.choice.row != advice.choice.row


def test_a_longer_wait_that_was_tried_stays(advice: Advice) -> None:
    long = replace(advice, rows=tuple(replace(row, longest_wait_s=1e6) for row in advice.rows))
    assert {row.longest_wait_s for row in riding(long, 20).rows} == {1e6}
