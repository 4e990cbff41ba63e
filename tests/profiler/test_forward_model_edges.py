"""Models of few, strange or unusable forwards; what the host adds; and traces that do not go together."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.arithmetic import ForwardSums
from engine.batch import ForwardMode
from engine.errors import ConfigError
from engine.shapes import ModelShape
from profiler.forward_fit_curve import TERMS, ForwardCurve
from profiler.forward_fit_host import HostTime, host_time
from profiler.forward_model import ForwardModel, fit_forward_model
from tests.support.fitted_runs import HARDWARE, decode_sums, extend_sums
from tests.support.shapes import LLAMA_8B
from tests.support.traces import MemoryTrace, forward
from traces.schema import TABLES

NAMES = TABLES["forwards"].names
CPU = {"device": "cpu", "name": "Unheard-of CPU", "threads": 2}


def meta(shape: ModelShape = LLAMA_8B, **more: Any) -> dict[str, Any]:
    model = {**asdict(shape), "dtype": "bfloat16"}
    return {"provenance": "measured", "model": model, "hardware": CPU, **more}


def timed(at: int, sums: ForwardSums, seconds: float, **more: Any) -> dict[str, Any]:
    """A forward of one extend row, or of decode rows."""
    decode = sums.decode_tokens > 0
    return forward(
        at,
        at * 10**10,
        at * 10**10 + round(seconds * 1e9),
        ForwardMode.DECODE if decode else ForwardMode.EXTEND,
        num_extend_seqs=0 if decode else 1,
        num_decode_seqs=sums.decode_tokens,
        **{name: value for name, value in asdict(sums).items() if name in NAMES},
        **more,
    )


def trace_of(
    points: Sequence[tuple[ForwardSums, float]], about: Mapping[str, Any] | None = None
) -> MemoryTrace:
    forwards = [timed(at, sums, seconds) for at, (sums, seconds) in enumerate(points)]
    return MemoryTrace({"forwards": forwards}, meta() if about is None else about)


def source(model: ForwardModel, name: str) -> str:
    return model.term(name).source


def test_one_forward_is_enough_for_a_guess() -> None:
    model = fit_forward_model(trace_of([(extend_sums(500), 0.8)]))
    assert model.seconds(extend_sums(500)) == pytest.approx(0.8, rel=0.2)
    assert model.rates.source == "best rates of the forwards themselves"
    assert all(term.source != "measured" for term in model.terms)
    assert model.reach.tokens == (500, 500)


def test_decodes_alone_leave_prompts_to_the_shape() -> None:
    points = [(decode_sums(rows, 500 + at), 0.03 + 0.001 * rows) for rows in (1, 4, 8) for at in range(20)]
    model = fit_forward_model(trace_of(points))
    assert model.seconds(decode_sums(4, 510)) == pytest.approx(0.034, rel=0.05)
    assert source(model, "pairs_prefix") == source(model, "pairs_causal") == "prior"
    assert model.reach.beyond(extend_sums(100)) == ("tokens", "pairs_causal")
    few, many = model.seconds(extend_sums(100)), model.seconds(extend_sums(10_000))
    assert 20 < many / few < 1000


def test_one_chunk_size_does_not_invent_a_fixed_cost() -> None:
    """Only forwards of 512 tokens, at 1 ms a token: half as many take about half, not nothing and not all."""
    points = [(extend_sums(512, 512 * at), 0.512 + 0.02 * at) for at in range(8)] * 3
    model = fit_forward_model(trace_of(points))
    for at in range(8):
        assert model.seconds(extend_sums(512, 512 * at)) == pytest.approx(0.512 + 0.02 * at, rel=0.02)
    half = model.seconds(extend_sums(256))
    low, high = model.interval(extend_sums(256))
    assert 0.2 < half < 0.5
    assert low < 0.256 < high


@settings(max_examples=min(settings().max_examples // 8, 200))  # an example takes 60 ms
@given(st.data())
def test_times_are_positive_finite_and_grow(data: st.DataObject) -> None:
    sums = st.one_of(
        st.builds(extend_sums, st.integers(1, 20_000), st.integers(0, 200_000)),
        st.builds(decode_sums, st.integers(1, 500), st.integers(1, 100_000)),
    )
    points = data.draw(st.lists(st.tuples(sums, st.floats(1e-6, 1e4)), min_size=1, max_size=12))
    model = fit_forward_model(trace_of(points))
    probe = data.draw(sums)
    more = {name: data.draw(st.integers(0, 5000)) for name in asdict(probe)}
    larger = ForwardSums(**{name: value + more[name] for name, value in asdict(probe).items()})
    assert 0 < model.seconds(probe) <= model.seconds(larger) < float("inf")
    low, high = model.interval(probe)
    assert 0 < low < high
    covariance = np.array(model.covariance)
    assert (np.linalg.eigvalsh(covariance) > -1e-9).all()


@settings(max_examples=settings().max_examples // 4)
@given(
    st.lists(st.floats(-20, 3), min_size=len(TERMS), max_size=len(TERMS)),
    st.integers(1, 10**5),
    st.integers(0, 10**5),
)
def test_changes_are_the_curve_s_slopes(logs: list[float], tokens: int, prefix: int) -> None:
    vector = np.array(logs)
    behind = float(min(tokens, tokens * prefix))
    features = np.array(
        [[tokens, behind, tokens * prefix, tokens * (tokens + 1) // 2, 30, 1, 2]], dtype=np.float64
    )
    told = ForwardCurve.from_vector(vector).sensitivity(features)[0]
    for at in range(len(TERMS)):
        step = np.zeros(len(TERMS))
        step[at] = 1e-5
        up, down = (ForwardCurve.from_vector(vector + sign * step).seconds(features) for sign in (1, -1))
        assert told[at] == pytest.approx(float(np.log(up / down)[0]) / 2e-5, abs=1e-5)


def test_forwards_that_a_profiler_watched_are_left_out() -> None:
    points = [(extend_sums(500), 0.5)] * 9
    trace = trace_of(points)
    slow = timed(9, extend_sums(500), 5.0)
    kernels = [{"forward_id": 9, "rank": 0}]
    watched = MemoryTrace({"forwards": [*trace.tables["forwards"], slow], "kernels": kernels}, meta())
    model = fit_forward_model(watched)
    assert model.num_forwards == 9
    assert model.seconds(extend_sums(500)) == pytest.approx(0.5, rel=0.1)


def test_forwards_without_time_or_rows_are_left_out() -> None:
    trace = trace_of([(extend_sums(500), 0.5)])
    whole = trace.tables["forwards"][0]
    lacking = [{**whole, key: None} for key in ("start_ns", "pairs_prefix", "num_extend_seqs", "mode")]
    senseless = [{**whole, "end_ns": whole["start_ns"]}, {**whole, "mode": 9}, {**whole, "pairs_causal": -1}]
    model = fit_forward_model(MemoryTrace({"forwards": [whole, *lacking, *senseless]}, meta()))
    assert model.num_forwards == 1
    with pytest.raises(ConfigError, match="no forward has a device time"):
        fit_forward_model(MemoryTrace({"forwards": lacking}, meta()))


@pytest.mark.parametrize(
    ("other", "what"),
    [
        (meta(replace(LLAMA_8B, num_layers=16)), "different models: 8B and 8B"),
        (meta() | {"model": {**asdict(LLAMA_8B), "dtype": "float32"}}, "element types: bfloat16 and float32"),
        (
            meta(hardware={**CPU, "threads": 1}),
            "Unheard-of CPU, 2 threads .measured. and Unheard-of CPU, 1 thread ",
        ),
        (meta(hardware=HARDWARE, provenance="simulated"), "hardware: .* and H200 SXM .simulated."),
    ],
)
def test_traces_of_different_settings_are_refused(other: dict[str, Any], what: str) -> None:
    points = [(extend_sums(500), 0.5)]
    with pytest.raises(ConfigError, match=what) as refused:
        fit_forward_model([trace_of(points), trace_of(points, other)])
    assert str(refused.value).endswith("fit each alone")


def test_a_model_s_name_and_ceilings_may_differ() -> None:
    points = [(extend_sums(500), 0.5)]
    copy = meta(replace(LLAMA_8B, name="copy"), hardware={**CPU, "cores": 4, "ceilings": None})
    assert fit_forward_model([trace_of(points), trace_of(points, copy)]).num_forwards == 2


@pytest.mark.parametrize(
    ("about", "what"),
    [
        ({"provenance": "imported"}, "tells no model"),
        (meta() | {"model": {"num_layers": 2, "dtype": "float32"}}, "model: hidden_size is missing"),
        (meta(replace(LLAMA_8B, hidden_size=0)), "hidden_size is 0: it must be a whole number"),
        (meta() | {"model": {**asdict(LLAMA_8B), "head_dim": "128"}}, "head_dim is '128'"),
        (meta() | {"model": {**asdict(LLAMA_8B), "norms_per_layer": "2"}}, "norms_per_layer is '2'"),
        (meta(hardware={**CPU, "devices": 7}), "cannot be divided"),
        (meta() | {"model": {**asdict(LLAMA_8B), "dtype": "int4"}}, "'int4' has no known size"),
    ],
)
def test_traces_that_tell_too_little_are_refused(about: dict[str, Any], what: str) -> None:
    with pytest.raises(ConfigError, match=what) as refused:
        fit_forward_model(trace_of([(extend_sums(500), 0.5)], about))
    assert "\n" not in str(refused.value)


def test_no_trace_is_refused() -> None:
    with pytest.raises(ConfigError, match="no trace to fit"):
        fit_forward_model([])


def test_expectations_come_from_ceilings_or_a_data_sheet() -> None:
    points = [(extend_sums(500), 0.5)]
    rates = {"gemm": [{"dtype": "bfloat16", "flops_per_s": 1e12, "size": 512}], "copy_bytes_per_s": 1e10}
    ceilings = {**CPU, **rates, "date": "2026-01-01", "torch": "2", "copy_buffer_bytes": 1, "load": 0.1}
    measured = fit_forward_model(trace_of(points, meta(hardware={**CPU, "ceilings": ceilings})))
    assert measured.rates.source == "ceilings measured on Unheard-of CPU, 2 threads"
    assert measured.rates.flops_per_s == 1e12
    card = fit_forward_model(trace_of(points, meta(hardware={"device": "cuda", "name": "NVIDIA H200"})))
    assert card.rates.source == "data sheet of H200 SXM"
    unknown = fit_forward_model(trace_of(points, meta(hardware={"device": "cuda", "name": "Unheard-of 9"})))
    assert unknown.rates.source == "best rates of the forwards themselves"


def test_intervals_widen_away_from_what_was_measured() -> None:
    points = [(extend_sums(512), 0.5), (extend_sums(2048), 2.0)] * 5
    model = fit_forward_model(trace_of(points))

    def width(tokens: int) -> float:
        low, high = model.interval(extend_sums(tokens))
        return high / low

    assert width(512) < width(1024) > width(2048)
    assert width(2048) < width(4096) < width(8192)
    assert [size.tokens for size in model.misfits] == [512, 2048]


def test_a_size_that_is_missed_is_owned_up_to() -> None:
    """Forwards of 700 tokens take half as long again as their neighbours, as where GEMMs have a dip."""
    sizes = [128, 256, 512, 1024, 2048, 4096]
    points = [(extend_sums(size), size / 1000) for size in sizes for _ in range(5)]
    points += [(extend_sums(700), 1.05)] * 5
    model = fit_forward_model(trace_of(points))
    low, high = model.interval(extend_sums(700))
    assert model.seconds(extend_sums(700)) < 0.85
    assert low < 1.05 < high
    assert model.interval(extend_sums(2048))[1] < 1.2 * model.seconds(extend_sums(2048))


# What the host adds.


def hosted(start_ns: int, end_ns: int, work_ns: int, launched_ns: int, **more: Any) -> dict[str, Any]:
    """A decode forward with so much of the host's time; its plan takes half of it, its result the rest."""
    return forward(
        start_ns,
        start_ns,
        end_ns,
        plan_end_ns=start_ns + work_ns // 2,
        launch_start_ns=launched_ns,
        launch_end_ns=launched_ns,
        result_start_ns=end_ns,
        **{"result_end_ns": end_ns + work_ns - work_ns // 2, "decode_tokens": 1, **more},
    )


def run_of(gap_ns: int, *, plain: bool, work_ns: int = 300) -> MemoryTrace:
    """Five forwards of 1,000 ns with gaps between them; under overlap they are launched long before."""
    starts = [at * (1000 + gap_ns) for at in range(5)]
    forwards = [
        hosted(start, start + 1000, work_ns, start if plain else start - 500, overlapped=not plain)
        for start in starts
    ]
    return MemoryTrace({"forwards": forwards}, {"engine": {"disable_overlap_schedule": plain}})


def test_in_the_plain_loop_the_host_stands_between_forwards() -> None:
    assert host_time([run_of(250, plain=True)]) == HostTime(overhead_ns=250, launch_gap_ns=None)


def test_under_overlap_the_host_hides_and_a_gap_may_be_left() -> None:
    assert host_time([run_of(40, plain=False)]) == HostTime(overhead_ns=300, launch_gap_ns=40)
    assert host_time([run_of(0, plain=False)]) == HostTime(overhead_ns=300, launch_gap_ns=0)


def test_a_gap_that_overlap_leaves_is_no_work_of_the_host() -> None:
    both = [run_of(250, plain=True), run_of(40, plain=False)]
    assert host_time(both) == HostTime(overhead_ns=210, launch_gap_ns=40)


def test_waiting_for_arrivals_is_not_the_host_s_time() -> None:
    trace = run_of(250, plain=True)
    idle = hosted(10**9, 10**9 + 1000, 300, 10**9, decode_tokens=0, extend_tokens=5)
    forwards = [*trace.tables["forwards"], idle]
    assert host_time([MemoryTrace({"forwards": forwards}, trace.meta)]).overhead_ns == 250
    assert host_time([MemoryTrace({"forwards": [idle]}, trace.meta)]) == HostTime(None, None)


def test_a_watched_forward_is_no_gap() -> None:
    trace = run_of(250, plain=True)
    forwards = [{**each, "forward_id": at} for at, each in enumerate(trace.tables["forwards"])]
    kernels = [{"forward_id": at, "rank": 0} for at in (1, 3)]
    watched = MemoryTrace({"forwards": forwards, "kernels": kernels}, trace.meta)
    assert host_time([watched]).overhead_ns == 250
