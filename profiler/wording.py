"""Numbers as sentences write them: a unit, a comma in thousands, ms below one second."""

__all__ = ["count", "duration", "mebibytes", "plural", "shortened", "times", "tokens"]


def count(value: int) -> str:
    """12,000."""
    return f"{value:,}"


def plural(number: int, noun: str) -> str:
    """A counted noun with a regular plural: 1 request, 12,000 requests."""
    return f"{count(number)} {noun}{'' if number == 1 else 's'}"


def tokens(number: int) -> str:
    """1 token, 12,000 tokens."""
    return plural(number, "token")


def duration(seconds: float) -> str:
    """Milliseconds below one second (0.42 ms, 24.6 ms, 653 ms), else seconds with two decimals (1.53 s)."""
    ms = seconds * 1e3
    if round(ms) >= 1000:
        return f"{seconds:,.2f} s"
    decimals = 0 if ms >= 99.95 else 1 if ms >= 0.995 else 2
    return f"{ms:.{decimals}f} ms"


def shortened(text: str, most: int = 48) -> str:
    """A name, cut with an ellipsis where it is longer."""
    return text if len(text) <= most else text[: most - 1] + "…"


def times(factor: float) -> str:
    """How many times: 1.3 times, 15 times."""
    return f"{factor:,.0f} times" if factor >= 9.95 else f"{factor:.1f} times"


def mebibytes(size_bytes: int) -> str:
    """1,234 MiB."""
    return f"{size_bytes / 2**20:,.0f} MiB"
