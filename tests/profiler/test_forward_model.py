"""A fitted model of forwards against forwards whose cost is known, and what it says of itself."""

import json
import random
from dataclasses import replace
from math import exp
from pathlib import Path

import numpy as np
import pytest

from engine.batch import ForwardBatch, ForwardMode
from profiler.cost import RooflineCost
from profiler.forward_features import forwards_of
from profiler.forward_fit_points import fit_points
from profiler.forward_fit_prior import Rates
from profiler.forward_model import ForwardModel, fit_forward_model
from profiler.hardware import find_card, peaks_of
from tests.support.fitted_runs import COST, decode_sums, extend_sums, record_8b
from tests.support.shapes import LLAMA_8B
from traces.reader import Trace

CHUNKS = {"whole": -1, "512": 512, "2048": 2048, "mixed": 512, "noisy": 512}


class Noisy:
    """The roofline with 3 % log-normal noise, and one forward in fifty three times as long."""

    def __init__(self) -> None:
        self._rng = random.Random(3)

    def forward_ns(self, batch: ForwardBatch) -> int:
        factor = exp(self._rng.gauss(0, 0.03)) * (3 if self._rng.random() < 0.02 else 1)
        return round(COST.forward_ns(batch) * factor)


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Trace]:
    folder = tmp_path_factory.mktemp("simulated")
    return {
        name: record_8b(
            folder / f"{name}.chunkscope",
            chunk,
            Noisy() if name == "noisy" else COST,
            enable_mixed_chunk=name == "mixed",
        )
        for name, chunk in CHUNKS.items()
    }


@pytest.fixture(scope="module")
def models(traces: dict[str, Trace]) -> dict[str, ForwardModel]:
    return {name: fit_forward_model(trace) for name, trace in traces.items()}


def typical(model: ForwardModel, kind: str) -> float:
    return next(part.typical for part in model.residuals if part.kind == kind)


def sources(model: ForwardModel) -> dict[str, str]:
    return {term.name: term.source for term in model.terms}


@pytest.mark.parametrize("name", ["whole", "512", "2048", "mixed"])
def test_simulated_forwards_are_told_again(models: dict[str, ForwardModel], name: str) -> None:
    model = models[name]
    assert model.num_forwards > 200
    assert model.residuals[0].kind == "all"
    assert model.residuals[0].forwards == model.num_forwards
    assert typical(model, "all") < 0.002
    assert all(part.typical < 0.01 for part in model.residuals)


def test_sizes_between_those_of_the_traces(traces: dict[str, Trace]) -> None:
    model = fit_forward_model([traces["512"], traces["2048"]])
    for prefix in (0, 3000, 10_000):
        for tokens in (600, 1000, 1500):
            sums = extend_sums(tokens, prefix)
            assert model.seconds(sums) == pytest.approx(COST.seconds(sums), rel=0.02)
    for rows in (1, 3, 8):
        sums = decode_sums(rows, 4000)
        assert model.seconds(sums) == pytest.approx(COST.seconds(sums), rel=0.02)


@pytest.mark.parametrize("name", ["512", "mixed"])
@pytest.mark.parametrize("tokens", [256, 1024, 4096])
def test_other_chunk_sizes_from_one(models: dict[str, ForwardModel], name: str, tokens: int) -> None:
    for prefix in (0, 8000):
        sums = extend_sums(tokens, prefix)
        assert models[name].seconds(sums) == pytest.approx(COST.seconds(sums), rel=0.05)


def test_noise_and_outliers_move_it_little(models: dict[str, ForwardModel]) -> None:
    model = models["noisy"]
    for sums in (extend_sums(512), extend_sums(512, 8000), decode_sums(8, 5000), decode_sums(2, 1000)):
        assert model.seconds(sums) == pytest.approx(COST.seconds(sums), rel=0.03)
    assert typical(model, "decode") == pytest.approx(0.02, abs=0.01)
    decode = model.spread_of(ForwardMode.DECODE)
    assert decode is not None
    assert decode.p50 == pytest.approx(1, abs=0.01)
    assert 1.02 < decode.p90 < 1.08
    assert 2.7 < decode.max < 3.5


def test_intervals_hold_what_was_simulated(models: dict[str, ForwardModel]) -> None:
    cases = [extend_sums(tokens, prefix) for tokens in (256, 512, 900) for prefix in (0, 2000, 9000)]
    cases += [decode_sums(rows, 3000) for rows in (1, 4, 9)]
    for name in ("512", "noisy"):
        inside = 0
        for sums in cases:
            low, high = models[name].interval(sums)
            assert low < models[name].seconds(sums) < high
            inside += low <= COST.seconds(sums) <= high
        assert inside >= 10, name


def test_terms_have_physical_rates(models: dict[str, ForwardModel]) -> None:
    model = models["2048"]
    compute, weights, prefix = (model.term(name) for name in ("compute", "weights", "pairs_prefix"))
    assert (compute.rate_unit, weights.rate_unit, prefix.rate_unit) == ("FLOP/s", "B/s", "FLOP/s")
    assert compute.rate == pytest.approx(0.65 * 989e12, rel=0.1)
    assert weights.rate == pytest.approx(0.8 * 4.8e12, rel=0.15)
    assert prefix.rate == pytest.approx(0.6 * 989e12, rel=0.1)
    assert model.term("pairs_decode").rate == pytest.approx(0.7 * 4.8e12, rel=0.05)
    assert model.term("fixed").rate is None
    assert all(term.low <= term.value <= term.high for term in model.terms)
    assert model.rates.source == "peaks of H200 SXM"


def test_terms_say_what_measured_them(models: dict[str, ForwardModel]) -> None:
    chunked, whole = sources(models["2048"]), sources(models["whole"])
    for name in ("weights", "compute", "pairs_prefix", "pairs_decode"):
        assert chunked[name] == "measured"
    assert chunked["rows_with_logits"] == "prior"  # a microsecond of milliseconds
    assert whole["pairs_causal"] == "measured"
    assert whole["behind_prefix"] == "prior"  # no forward had a prefix
    assert whole["pairs_prefix"] == "between"  # its kernel is the triangle's


def test_it_knows_where_the_forwards_end(models: dict[str, ForwardModel]) -> None:
    reach = models["512"].reach
    assert reach.tokens[0] < reach.decode_rows[1] < reach.tokens[1] == 512
    assert reach.beyond(extend_sums(512, 4000)) == ()
    assert reach.beyond(extend_sums(513)) == ("tokens", "pairs_causal")
    assert reach.beyond(extend_sums(100, 20_000)) == ("prefix_tokens",)
    assert reach.beyond(decode_sums(200, 10)) == ("decode_rows",)
    assert models["whole"].reach.beyond(extend_sums(100, 1)) == ("prefix_tokens", "pairs_prefix")


def test_prefixes_have_residuals_of_their_own(models: dict[str, ForwardModel]) -> None:
    of = {part.kind: part.forwards for part in models["512"].residuals}
    ranges = [kind for kind in of if kind.startswith("prefix")]
    assert ranges == ["prefix 1 to 1,023", "prefix 1,024 to 4,095", "prefix 4,096 to 16,383"]
    assert of["behind a prefix"] <= sum(of[kind] for kind in ranges) <= of["all"] - of["decode"]


def test_peaks_of_the_caller_s(traces: dict[str, Trace]) -> None:
    model = fit_forward_model(traces["512"], rates=Rates(2e14, 1e12, "a guess"))
    assert model.rates.source == "a guess"
    assert model.slowness < 0.5
    sums = extend_sums(512, 3000)
    assert model.seconds(sums) == pytest.approx(COST.seconds(sums), rel=0.03)


def test_one_forward_is_reckoned_as_many_are(
    traces: dict[str, Trace], models: dict[str, ForwardModel]
) -> None:
    model = models["512"]
    forwards = forwards_of(traces["512"], LLAMA_8B)
    assert len(forwards) == model.num_forwards
    at_once = model.curve.seconds(forwards.features)
    points = fit_points(traces["512"], model)
    assert points["fit_s"].to_list() == pytest.approx(at_once.tolist())
    assert points["ratio"].to_list() == pytest.approx((forwards.seconds / at_once).tolist())
    row = points.filter(layout="behind a prefix").row(0, named=True)
    sums = replace(extend_sums(row["tokens"], row["prefix_tokens"]), rows_with_logits=0)  # a middle chunk
    assert model.seconds(sums) == pytest.approx(row["fit_s"])


def test_rows_with_logits_are_told_by_the_head_s_work(traces: dict[str, Trace]) -> None:
    forwards = forwards_of(traces["512"], LLAMA_8B)
    rows = forwards.column("rows_with_logits")
    decode = forwards.mode == ForwardMode.DECODE.value
    assert (rows[decode] == forwards.decode_tokens[decode]).all()
    alone = forwards.layout == 1
    assert set(rows[alone].tolist()) == {0.0, 1.0}


def test_the_order_of_traces_does_not_matter(traces: dict[str, Trace]) -> None:
    one = fit_forward_model([traces["512"], traces["mixed"]])
    other = fit_forward_model([traces["mixed"], traces["512"]])
    np.testing.assert_allclose(one.curve.vector(), other.curve.vector(), rtol=1e-3)


def test_all_of_it_is_json(models: dict[str, ForwardModel]) -> None:
    document = json.loads(json.dumps(models["mixed"].as_json(), allow_nan=False))
    assert document["setting"] == "8B, bfloat16, on H200 SXM"
    assert document["provenance"] == "simulated"
    assert [term["name"] for term in document["terms"]] == [t.name for t in models["mixed"].terms]


@pytest.mark.long
@pytest.mark.parametrize("card", ["H200", "H100", "A100", "L4", "MI300X"])
@pytest.mark.parametrize("chunk", [256, 1024])
def test_any_card_and_model(tmp_path: Path, card: str, chunk: int) -> None:
    rng = random.Random(f"{card} {chunk}")
    kv_heads = rng.choice([2, 4, 8])
    shape = replace(
        LLAMA_8B,
        num_layers=rng.randint(8, 40),
        hidden_size=1024 * rng.randint(1, 4),
        num_kv_heads=kv_heads,
        num_heads=kv_heads * rng.choice([1, 4, 8]),
        intermediate_size=1024 * rng.randint(2, 16),
    )
    peaks = peaks_of(find_card(card)[0], "bfloat16")
    cost = RooflineCost(shape, peaks, 2)
    model = fit_forward_model(record_8b(tmp_path / "run.chunkscope", chunk, cost, shape=shape, peaks=peaks))
    assert typical(model, "all") < 0.005
    for tokens in (chunk, chunk * 3 // 2):
        for prefix in (0, 5000):
            sums = extend_sums(tokens, prefix)
            assert model.seconds(sums) == pytest.approx(cost.seconds(sums), rel=0.1)
