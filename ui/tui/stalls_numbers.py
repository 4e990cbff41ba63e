"""Durations of one column, in one unit and with one precision, as its largest needs."""

from dataclasses import dataclass

from ui.words import UNKNOWN

__all__ = ["Durations", "share_words"]

_MS, _S = 1e6, 1e9
_MOST_DECIMALS = 6  # a nanosecond


@dataclass(frozen=True, slots=True)
class Durations:
    """How the durations of a column are written."""

    unit: str
    unit_ns: float
    decimals: int

    @classmethod
    def in_ms(cls, largest_ns: int, decimals: int = 0) -> "Durations":
        """In milliseconds: `decimals` from 100 ms on, one more for each tenth of that."""
        limit_ns = 100 * _MS
        while 0 < largest_ns < limit_ns and decimals < _MOST_DECIMALS:
            decimals, limit_ns = decimals + 1, limit_ns / 10
        return cls("ms", _MS, decimals)

    @classmethod
    def of_sums(cls, largest_ns: int) -> "Durations":
        """In seconds with two decimals where the largest is a second or more, else in milliseconds."""
        return cls("s", _S, 2) if round(largest_ns / _MS) >= 1000 else cls.in_ms(largest_ns)

    def of(self, ns: int | None) -> str:
        """A duration without its unit; one that is too short for the precision says so."""
        if ns is None:
            return UNKNOWN
        least = 10**-self.decimals
        if 0 < ns / self.unit_ns < least / 2:
            return f"<{least:.{self.decimals}f}"
        return f"{ns / self.unit_ns:,.{self.decimals}f}"

    def with_unit(self, ns: int | None) -> str:
        """A duration with its unit."""
        return UNKNOWN if ns is None else f"{self.of(ns)} {self.unit}"


def share_words(part_ns: int, whole_ns: int) -> str:
    """A share with one decimal, as columns of shares have it: 75.9 %."""
    return f"{100 * part_ns / whole_ns:.1f} %" if whole_ns else UNKNOWN
