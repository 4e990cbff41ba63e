"""Rates of computing and of moving data, as every view writes them: decimal prefixes, three digits."""

from ui.words import UNKNOWN

__all__ = ["bandwidth", "dtype_word", "flop_rate", "intensity", "percent"]

_PREFIXES = ("", "k", "M", "G", "T", "P", "E")
_DTYPES = {"float32": "fp32", "bfloat16": "bf16", "float16": "fp16"}


def flop_rate(value: float | None) -> str:
    """Floating-point operations a second: 98.1 GFLOP/s, 738 TFLOP/s."""
    return UNKNOWN if value is None else f"{_scaled(value)}FLOP/s"


def bandwidth(value: float | None) -> str:
    """Bytes a second: 15.2 GB/s."""
    return UNKNOWN if value is None else f"{_scaled(value)}B/s"


def intensity(value: float | None) -> str:
    """Work for a byte moved: 6.45 FLOP/byte."""
    return UNKNOWN if value is None else f"{_digits(value)} FLOP/byte"


def percent(share: float | None) -> str:
    """A share as a whole percentage, with one decimal below ten: 95 %, 4.2 %."""
    if share is None:
        return UNKNOWN
    value = share * 100
    return f"{value:,.{1 if abs(value) < 9.95 and round(value, 1) % 1 else 0}f} %"


def dtype_word(name: str) -> str:
    """The usual short name of a torch dtype: fp32, bf16; any other name as it is."""
    return _DTYPES.get(name, name)


def _scaled(value: float) -> str:
    power = 0
    while value >= 999.5 and power < len(_PREFIXES) - 1:
        value /= 1000
        power += 1
    return f"{_digits(value)} {_PREFIXES[power]}"


def _digits(value: float) -> str:
    """Three significant digits where there are fewer before the point."""
    return f"{value:,.{2 if value < 9.995 else 1 if value < 99.95 else 0}f}"
