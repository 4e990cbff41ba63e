"""The point on paper: its definition, size by size, and what a fit finds in the same forwards."""

import numpy as np
import pytest

from engine.peaks import Peaks
from profiler.paper.attention import GroupedAttention
from profiler.paper.cost import PaperCost
from profiler.paper.elements import ElementBytes
from profiler.paper.feed_forward import DenseFeedForward, Experts
from profiler.paper.model import FeedForward, Layer, PaperModel
from profiler.paper.point import paper_point
from profiler.price_sums import chunk_sums
from profiler.saturation import fit_saturation

H200 = Peaks("H200 SXM", "bfloat16", 989e12, 4.8e12, 141 * 2**30)


def cost_of(feed_forward: FeedForward, window: int | None = None) -> PaperCost:
    layer = Layer(GroupedAttention(32, 8, 128, window=window), feed_forward)
    return PaperCost(PaperModel("m", "m", 4096, 128_256, 2**20, ((layer, 32),)), H200, ElementBytes())


DENSE, SPARSE = DenseFeedForward(14336), Experts(32, 4, 1536)


@pytest.mark.parametrize(("feed_forward", "q"), [(DENSE, 0.95), (DENSE, 0.9), (SPARSE, 0.95)])
def test_it_is_the_smallest_size_with_a_share_of_the_best(feed_forward: FeedForward, q: float) -> None:
    cost = cost_of(feed_forward)
    found = paper_point(cost, 6000, q)
    rates = np.array([tokens / cost.seconds(chunk_sums(tokens)) for tokens in range(1, 6001)])
    assert found.status == "ok"
    assert found.tokens is not None
    assert rates.max() == pytest.approx(found.best_tokens_per_s, rel=1e-3)
    smallest = int(np.argmax(rates >= q * rates.max())) + 1
    assert found.tokens == pytest.approx(smallest, rel=5e-3)  # the best is looked for on a grid
    assert rates[found.tokens - 1] >= q * found.best_tokens_per_s > rates[found.tokens - 2]


def test_a_fit_of_such_forwards_finds_it() -> None:
    cost = cost_of(DENSE)
    sizes = np.unique(np.round(np.geomspace(16, 8192, 24))).astype(np.int64)
    times_s = np.array([cost.seconds(chunk_sums(int(tokens))) for tokens in sizes])
    fitted = fit_saturation(sizes, times_s, resamples=10)
    assert fitted.status == "ok"
    assert paper_point(cost, 8192).tokens == pytest.approx(fitted.tokens, rel=0.15)


def test_throughput_that_still_rises_has_none() -> None:
    found = paper_point(cost_of(Experts(512, 1, 8192), window=64), 512)
    assert (found.status, found.tokens) == ("not_saturated", None)
    assert found.best_tokens == 512


def test_below_the_ridge_weights_take_longer_to_read_than_to_multiply() -> None:
    compute, memory = 0.7 * 989e12, 0.8 * 4.8e12
    ridge = paper_point(cost_of(DENSE), 8192).ridge_tokens
    assert ridge is not None
    assert ridge == pytest.approx(compute / memory, abs=1)  # 2 FLOPs and 2 bytes a weight and token
    sparse = paper_point(cost_of(SPARSE), 16_384).ridge_tokens
    assert sparse is not None
    assert sparse > 5 * ridge  # of 32 experts a token multiplies 4
    assert paper_point(cost_of(Experts(512, 1, 8192)), 512).ridge_tokens is None
