"""Numbers and units as every view writes them. Unknown (None) is a dash, never a zero."""

import math

__all__ = [
    "UNKNOWN",
    "binary_bytes",
    "count",
    "factor",
    "percent",
    "plural",
    "rate",
    "seconds",
]

UNKNOWN = "–"

TIME_UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))
BYTE_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")


def count(value: int | None) -> str:
    """A whole number with thousands separated: 12,000."""
    return UNKNOWN if value is None else f"{value:,}"


def plural(number: int, noun: str) -> str:
    """A counted noun with a regular plural: 1 request, 12,000 requests."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def seconds(value: float | None) -> str:
    """A duration in the unit that leaves one to three digits before the point, three significant: 12.3 ms."""
    if value is None:
        return UNKNOWN
    for size, unit in TIME_UNITS:
        if abs(value) >= size * 0.9995:
            return f"{_three_digits(value / size)} {unit}"
    return "0 s" if value == 0 else f"{_three_digits(value / 1e-9)} ns"


def rate(value: float | None, of: str = "tokens") -> str:
    """So many of something a second, three significant digits: 1,230 tokens/s."""
    return UNKNOWN if value is None else f"{_three_digits(value)} {of}/s"


def factor(value: float | None) -> str:
    """A ratio: 3.21×."""
    return UNKNOWN if value is None else f"{_three_digits(value)}×"


def percent(share: float | None) -> str:
    """A share of 1 as a percentage: 95 %."""
    return UNKNOWN if share is None else f"{_three_digits(share * 100)} %"


def binary_bytes(value: int | None) -> str:
    """A size in powers of 1,024, three significant digits: 1.25 GiB."""
    if value is None:
        return UNKNOWN
    power = min(int(math.log2(abs(value))) // 10, len(BYTE_UNITS) - 1) if value else 0
    if power == 0:
        return f"{value:,} B"
    return f"{_three_digits(value / 1024**power)} {BYTE_UNITS[power]}"


def _three_digits(value: float) -> str:
    """Three significant digits, no exponent, whole numbers of more digits kept whole."""
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    decimals = max(0, 2 - math.floor(math.log10(abs(float(f"{value:.3g}"))) + 1e-9))
    return f"{value:,.{decimals}f}"
