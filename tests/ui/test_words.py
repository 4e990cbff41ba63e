"""Numbers and units, as views write them."""

import pytest

from ui import words


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0 B"),
        (1023, "1,023 B"),
        (1024, "1.00 KiB"),
        (98362432, "93.8 MiB"),
        (25 * 2**30 // 2, "12.5 GiB"),
        (500 * 2**30, "500 GiB"),
        (2**40, "1.00 TiB"),
        (2**80, "1,073,741,824 PiB"),
    ],
)
def test_binary_bytes(value: int, text: str) -> None:
    assert words.binary_bytes(value) == text


def test_known_values() -> None:
    assert words.count(12000) == "12,000"
    assert words.plural(1, "request") == "1 request"
    assert words.plural(0, "request") == "0 requests"
    assert words.plural(12000, "request") == "12,000 requests"
    assert words.rate(1234.5) == "1,234 tokens/s"
    assert words.rate(61.23) == "61.2 tokens/s"
    assert words.seconds(0.0246) == "24.6 ms"
    assert words.memory(2**30) == "1,024 MiB"


def test_unknown_is_never_a_zero() -> None:
    unknown = [f(None) for f in (words.binary_bytes, words.count, words.rate, words.seconds, words.memory)]
    assert {*unknown, words.name(None)} == {"–"}


def test_a_name_stays_on_its_line_and_off_the_terminal() -> None:
    assert words.name("a\n\x1b[31mb é") == "a\\n\\x1b[31mb é"
