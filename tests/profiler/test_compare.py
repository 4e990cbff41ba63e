"""Each outcome of the demo's comparison has its own sentence, with the measured numbers in it."""

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from profiler.compare import CHUNKED, MIXED, WHOLE, compare, policy_row
from profiler.sentences import saturation_point
from profiler.summary import summarize
from profiler.wording import duration, mebibytes, times
from tests.support.traces import MemoryTrace


def run(
    gap_s: float | None,
    *,
    largest: int | None = 2000,
    memory: int | None = 400 << 20,
    forwards: int = 3,
    own_mode: str = "DECODE",
    p99: float | None = 0.5,
    ttft: float | None = 3.0,
    rate: float | None = 40.0,
    waiting: float | None = 10.0,
) -> dict[str, Any]:
    """A summary with just these numbers."""
    return {
        "largest_forward_tokens": largest,
        "memory_peak_bytes": 900 << 20,
        "activation_peak_bytes": memory,
        "output_tokens_per_s": rate,
        "ttft_s": {"p50": ttft, "p99": ttft, "max": ttft},
        "itl_s": {"p50": 0.02, "p99": p99, "max": gap_s},
        "waiting_s": waiting,
        "worst_stall": {
            "gap_s": gap_s,
            "rid": "decode-1",
            "forward_ids": list(range(10, 10 + forwards)),
            "modes": ["EXTEND"] * forwards,
            "own_mode": own_mode,
            "culprit_rids": ["long-1", "long-2"],
            "culprit_forward_id": 10 if forwards else None,
        },
    }


def said(whole: dict[str, Any], chunked: dict[str, Any], mixed: dict[str, Any]) -> str:
    return "\n".join(compare(whole, chunked, mixed).sentences)


def test_no_option_is_offered_that_mends_nothing() -> None:
    text = said(run(2.0, forwards=1), run(0.3, largest=256, forwards=0), mixed_run(0.31))
    assert "--enable-mixed-chunk" not in text


def mixed_run(gap_s: float | None = 0.3, **more: Any) -> dict[str, Any]:
    return run(gap_s, forwards=0, own_mode="MIXED", largest=256, **more)


def test_the_usual_outcome() -> None:
    text = said(run(2.0, forwards=1), run(2.1, largest=256, forwards=9, memory=100 << 20), mixed_run(0.3))
    assert (
        "Chunking alone makes the largest forward 7.8 times smaller, 256 tokens instead of 2,000, and its "
        "activation memory 4.0 times smaller, 100 MiB instead of 400 MiB, because no forward takes more "
        "than a chunk." in text
    )
    assert (
        "Chunking alone leaves the wall: the longest gap is 2.10 s against 2.00 s whole, 1.05 of it, because "
        "9 prefill forwards of others run one after another before the next token." in text
    )
    assert (
        "Mixing cuts the longest gap 7.0 times, from 2.10 s to 300 ms, because decodes ride along in prefill "
        "forwards: no prefill forward of others lies in it, where chunking alone had 9. All waiting for "
        "tokens goes from 10.00 s to 10.00 s in sum." in text
    )
    assert "--enable-mixed-chunk; with it the longest TTFT goes from 3.00 s to 3.00 s" in text
    assert "from 40.0 to 40.0 tokens/s" in text


@pytest.mark.parametrize(
    ("chunked_gap", "forwards", "begins", "ratio"),
    [
        (2.0, 9, "Chunking alone leaves the wall:", "1.00"),
        (1.85, 9, "Chunking alone leaves the wall:", "0.93"),
        (2.19, 9, "Chunking alone leaves the wall:", "1.09"),
        (2.5, 9, "Chunking alone makes the wall longer:", "1.25"),
        (1.5, 9, "Chunking alone shortens the wall and does not break it:", "0.75"),
        (0.4, 1, "Chunking alone breaks the wall:", "0.20"),
        (0.4, 0, "Chunking alone breaks the wall:", "0.20"),
    ],
)
def test_the_wall_under_chunking_alone(chunked_gap: float, forwards: int, begins: str, ratio: str) -> None:
    sentence = compare(run(2.0), run(chunked_gap, forwards=forwards), mixed_run()).sentences[1]
    assert sentence.startswith(begins)
    assert f"{ratio} of it" in sentence
    assert (str(forwards) if forwards > 1 else "prefill") in sentence


@pytest.mark.parametrize(
    ("mixed", "begins", "has"),
    [
        (mixed_run(0.2), "Mixing cuts the longest gap 10 times, from 2.00 s to 200 ms", "no prefill forward"),
        (mixed_run(1.7), "Mixing cuts the longest gap 1.2 times", "where chunking alone had 9"),
        (mixed_run(2.0), "Mixing does not cut the longest gap (1.0 times", "the one mixed forward in it"),
        (
            run(2.1, forwards=4),
            "Mixing does not cut the longest gap",
            "4 prefill forwards of others lie in it",
        ),
        (
            run(2.1, forwards=0),
            "Mixing does not cut the longest gap",
            "no prefill forward of others lies in it",
        ),
        (
            run(3.0, forwards=1),
            "Mixing makes the longest gap 1.5 times longer",
            "one prefill forward of others",
        ),
        (mixed_run(3.0), "Mixing makes the longest gap 1.5 times longer", "the one mixed forward in it"),
    ],
)
def test_what_mixing_does(mixed: dict[str, Any], begins: str, has: str) -> None:
    sentence = next(
        s for s in compare(run(2.0), run(2.0, forwards=9), mixed).sentences if s.startswith("Mixing")
    )
    assert sentence.startswith(begins)
    assert has in sentence


@pytest.mark.parametrize(
    ("chunked", "has"),
    [
        (run(2.0, largest=2000), "does not shrink the largest forward (2,000 tokens whole, 2,000 chunked)"),
        (run(2.0, largest=500, memory=None), "500 tokens instead of 2,000, its memory not measured"),
        (
            run(2.0, largest=500, memory=401 << 20),
            "while its activation memory does not fall (401 MiB, 400 MiB whole)",
        ),
        (run(2.0, largest=None), "What chunking does to the largest forward is not known"),
    ],
)
def test_what_chunking_does_to_the_forward(chunked: dict[str, Any], has: str) -> None:
    assert has in compare(run(2.0), chunked, mixed_run()).sentences[0]


def test_a_hidden_wall_is_pointed_out_only_where_p99_hides_it() -> None:
    hidden = said(run(2.0), run(2.0, p99=0.025), mixed_run())
    assert "Read the longest gap before p99: chunking alone has 2.00 s behind a p99 of 25.0 ms." in hidden
    assert "before p99" not in said(run(2.0), run(2.0, p99=1.9), mixed_run())


def test_unknown_gaps_are_said_to_be_unknown() -> None:
    text = said(run(None, p99=None), run(None, p99=None), run(None, p99=None, ttft=None, rate=None))
    assert "longest gap is not known" in text
    assert "What mixing does to the longest gap is not known" in text
    assert "--enable-mixed-chunk" not in text


def test_rows_carry_the_numbers_of_each_policy() -> None:
    rows = compare(run(2.0), run(2.1, largest=256), mixed_run()).rows
    assert [row.policy for row in rows] == [WHOLE, CHUNKED, MIXED]
    assert [row.worst_gap_s for row in rows] == [2.0, 2.1, 0.3]
    assert (rows[0].worst_gap_rid, rows[0].worst_gap_forward_id, rows[0].worst_gap_culprit) == (
        "decode-1",
        10,
        "long-1",
    )
    assert rows[0].worst_gap_forwards == 3
    assert rows[1].largest_forward_tokens == 256
    assert rows[0].itl.p99 == 0.5


def test_an_empty_trace_makes_a_row_and_sentences() -> None:
    nothing = summarize(MemoryTrace({}))
    row = policy_row(WHOLE, nothing)
    assert (row.worst_gap_s, row.worst_gap_culprit, row.ttft.p50) == (None, None, None)
    assert compare(nothing, nothing, nothing).sentences


@given(
    st.tuples(*[st.floats(1e-4, 1e3)] * 3),
    st.tuples(*[st.integers(1, 10**6)] * 2),
    st.tuples(*[st.integers(0, 30)] * 2),
)
def test_the_words_never_contradict_the_numbers(
    gaps: tuple[float, ...], largest: tuple[int, ...], forwards: tuple[int, ...]
) -> None:
    whole, chunked, mixed = gaps
    text = said(
        run(whole, largest=largest[0]),
        run(chunked, largest=largest[1], forwards=forwards[0]),
        run(mixed, forwards=forwards[1]),
    )
    assert ("smaller" in text.split("\n")[0]) == (largest[1] < largest[0])
    assert ("makes the wall longer" in text) == (chunked / whole > 1.1)
    assert ("leaves the wall" in text) == (1 / 1.1 <= chunked / whole <= 1.1)
    assert ("Mixing cuts" in text) == (chunked > mixed * 1.1)
    assert ("Mixing makes the longest gap" in text) == (mixed > chunked * 1.1)
    assert f"{chunked / whole:.2f} of it" in text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.000421, "0.42 ms"),
        (0.0042, "4.2 ms"),
        (0.0246, "24.6 ms"),
        (0.09994, "99.9 ms"),
        (0.09996, "100 ms"),
        (0.6534, "653 ms"),
        (0.9994, "999 ms"),
        (0.9996, "1.00 s"),
        (1.534, "1.53 s"),
        (12345.678, "12,345.68 s"),
        (0.0, "0.00 ms"),
    ],
)
def test_durations_are_ms_below_a_second_and_s_from_there(seconds: float, text: str) -> None:
    assert duration(seconds) == text


@given(st.floats(0, 1e5))
def test_durations_keep_two_digits_and_read_back(seconds: float) -> None:
    number, unit = duration(seconds).split()
    value = float(number.replace(",", "")) * (1 if unit == "s" else 1e-3)
    assert value == pytest.approx(seconds, rel=0.051, abs=5.1e-6)
    assert (unit == "s") == (round(seconds * 1e3) >= 1000)


def test_factors_and_sizes() -> None:
    assert [times(f) for f in (1.04, 6.24, 9.94, 9.96, 1234.5)] == [
        "1.0 times", "6.2 times", "9.9 times", "10 times", "1,234 times",
    ]  # fmt: skip
    assert mebibytes(3 << 30) == "3,072 MiB"


def test_the_saturation_point_in_words() -> None:
    point = {
        "status": "ok", "tokens": 1430, "low": 1300, "high": 1660, "q": 0.95, "fit_kind": "smoother",
        "layout": "one prompt a forward, no prefix", "num_sizes": 10,
    }  # fmt: skip
    assert saturation_point(point) == (
        "Forwards saturate at 1,430 tokens [1,300, 1,660]: the fewest that reach 95 % of the best throughput "
        "(one prompt a forward, no prefix; smoother fit over 10 sizes)."
    )
    rising = saturation_point(point | {"status": "not_saturated", "tokens": None})
    assert rising.startswith("Forwards do not saturate within the sizes seen")
    few = saturation_point(point | {"status": "too_few_points", "tokens": None, "num_sizes": 3})
    assert re.search(r"not known: 3 sizes of forwards, 8 are needed", few)
