"""Numbers and units, as views write them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ui import words


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "–"),
        (0, "0 s"),
        (1.5e-9, "1.50 ns"),
        (12.34e-6, "12.3 µs"),
        (0.00123, "1.23 ms"),
        (0.9996, "1.00 s"),
        (0.99949, "999 ms"),
        (9.999, "10.0 s"),
        (83.4, "83.4 s"),
        (12345.6, "12,346 s"),
        (-0.25, "-250 ms"),
    ],
)
def test_seconds(value: float | None, text: str) -> None:
    assert words.seconds(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "–"),
        (0, "0 B"),
        (1023, "1,023 B"),
        (1024, "1.00 KiB"),
        (98362432, "93.8 MiB"),
        (2**40, "1.00 TiB"),
        (2**80, "1,073,741,824 PiB"),
    ],
)
def test_binary_bytes(value: int | None, text: str) -> None:
    assert words.binary_bytes(value) == text


def test_the_rest() -> None:
    assert words.count(12000) == "12,000"
    assert words.count(None) == "–"
    assert words.plural(1, "request") == "1 request"
    assert words.plural(0, "request") == "0 requests"
    assert words.rate(1234.5) == "1,234 tokens/s"
    assert words.rate(None) == "–"
    assert words.factor(3.14159) == "3.14×"
    assert words.percent(0.955) == "95.5 %"


@given(st.floats(1e-9, 1e6))
def test_seconds_keep_their_value(value: float) -> None:
    number, unit = words.seconds(value).split()
    size = {"s": 1.0, "ms": 1e-3, "µs": 1e-6, "ns": 1e-9}[unit]
    assert float(number.replace(",", "")) * size == pytest.approx(value, rel=0.006)
