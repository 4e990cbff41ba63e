"""Rates as views write them."""

import pytest

from ui import si_words
from ui.words import UNKNOWN


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0.00 FLOP/s"),
        (9.5, "9.50 FLOP/s"),
        (999.4, "999 FLOP/s"),
        (999.6, "1.00 kFLOP/s"),
        (98.1e9, "98.1 GFLOP/s"),
        (738e12, "738 TFLOP/s"),
        (2e21, "2,000 EFLOP/s"),
    ],
)
def test_three_digits_and_a_prefix(value: float, text: str) -> None:
    assert si_words.flop_rate(value) == text
    assert si_words.bandwidth(value) == text.replace("FLOP/s", "B/s")


@pytest.mark.parametrize(
    ("share", "text"),
    [(0.0, "0 %"), (0.042, "4.2 %"), (0.04, "4 %"), (0.0999, "10 %"), (0.954, "95 %"), (12.5, "1,250 %")],
)
def test_a_share(share: float, text: str) -> None:
    assert si_words.percent(share) == text


def test_names_and_intensity() -> None:
    assert [si_words.dtype_word(name) for name in ("float32", "bfloat16", "int4")] == ["fp32", "bf16", "int4"]
    assert si_words.intensity(2.976) == "2.98 FLOP/byte"


def test_unknown_is_never_a_zero() -> None:
    every = (si_words.flop_rate, si_words.bandwidth, si_words.intensity, si_words.percent)
    assert {word(None) for word in every} == {UNKNOWN}
