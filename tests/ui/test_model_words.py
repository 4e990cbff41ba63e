"""The model of a forward in words."""

import pytest

from profiler.forward_fit_curve import TERMS
from profiler.forward_model import fit_forward_model
from tests.profiler.test_saturation_board import told_runs
from traces.reader import open_trace
from ui.model_words import attention_words, flops, model_words, residual_words, short_time, term_words


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (12.34, "12.3 s"),
        (1.0, "1.00 s"),
        (0.9996, "1.00 s"),
        (4.2e-3, "4.20 ms"),
        (20.2e-6, "20.2 µs"),
        (123e-9, "123 ns"),
        (8e-13, "0.80 ps"),
    ],
)
def test_short_times_have_three_digits(seconds: float, words: str) -> None:
    assert short_time(seconds) == words


def test_flops_are_counted_without_a_second() -> None:
    assert flops(1_234_000_000_000) == "1.23 TFLOP"
    assert flops(None) == "–"


def test_a_model_is_told_with_the_values_that_were_found(tmp_path_factory: pytest.TempPathFactory) -> None:
    model = fit_forward_model(open_trace(told_runs(tmp_path_factory.mktemp("words"))["mixed"]))
    fixed, weights, compute = (short_time(model.term(name).value) for name in ("fixed", "weights", "compute"))
    elementwise = short_time(model.term("elementwise").value)
    matrices = f"smooth max({weights} weights, T × {compute})"
    assert model_words(model) == f"t(T) = {fixed} + {matrices} + T × {elementwise} + attention + logits"
    assert short_time(model.term("pairs_prefix").value) in attention_words(model)
    assert residual_words(model).endswith(f" over {model.num_forwards} forwards")
    terms = term_words(model)
    assert [term.value for term in terms[:3]] == [fixed, weights, compute]
    assert all(" to " in term.interval for term in terms)
    assert not {term.name for term in terms} & (set(TERMS) - {"fixed", "weights"})
    assert {term.source for term in terms} <= {"measured", "partly measured", "expected, not seen here"}
