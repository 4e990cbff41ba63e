"""What decode rows would take alone, in exact arithmetic: the oracle's side of the mixed extra."""

import statistics
from collections.abc import Sequence
from fractions import Fraction

__all__ = ["alone_ns"]

Decode = tuple[int, int, int]  # rows, KV tokens that they read, nanoseconds
Plane = tuple[Fraction, Fraction, Fraction]  # at no rows, a row, a KV token
LEAST = 8  # forwards that a plane is laid through


def alone_ns(rows: int, kv_tokens: int, decodes: Sequence[Decode]) -> int | None:
    """By the decode forwards like these rows, else by the plane through all; None where there are too few."""
    alike = [
        ns for r, kv, ns in decodes if 4 * abs(r - rows) <= rows and 4 * abs(kv - kv_tokens) <= kv_tokens
    ]
    if alike:
        return round(statistics.median(map(Fraction, alike)))
    if len(decodes) < LEAST:
        return None
    base, per_row, per_kv_token = _plane(decodes)
    return round(round(base + per_row * rows + per_kv_token * kv_tokens, 3))


def _plane(decodes: Sequence[Decode]) -> Plane:
    """By least squares: over both columns, else the better one, else the mean; no slope is negative."""
    for choices in ([(True, True)], [(True, False), (False, True)]):
        planes = [plane for by in choices if (plane := _fitted(decodes, *by)) and min(plane[1:]) >= 0]
        if planes:
            return min(planes, key=lambda plane: _left(decodes, plane))
    return Fraction(sum(ns for _, _, ns in decodes), len(decodes)), Fraction(0), Fraction(0)


def _fitted(decodes: Sequence[Decode], by_rows: bool, by_kv_tokens: bool) -> Plane | None:
    """By the normal equations of the centred columns; None where these leave a slope open."""
    columns = list(zip(*decodes, strict=True))
    means = [Fraction(sum(column), len(decodes)) for column in columns]
    rows, kv, ns = ([value - mean for value in c] for c, mean in zip(columns, means, strict=True))
    if by_rows and by_kv_tokens:
        whole = _dot(rows, rows) * _dot(kv, kv) - _dot(rows, kv) ** 2
        if not whole:
            return None
        per_row = (_dot(rows, ns) * _dot(kv, kv) - _dot(kv, ns) * _dot(rows, kv)) / whole
        per_kv = (_dot(kv, ns) * _dot(rows, rows) - _dot(rows, ns) * _dot(rows, kv)) / whole
    else:
        column = rows if by_rows else kv
        if not any(column):
            return None
        slope = _dot(column, ns) / _dot(column, column)
        per_row, per_kv = (slope, Fraction(0)) if by_rows else (Fraction(0), slope)
    return means[2] - per_row * means[0] - per_kv * means[1], per_row, per_kv


def _left(decodes: Sequence[Decode], plane: Plane) -> Fraction:
    """The sum of squares that a plane leaves."""
    return sum(((plane[0] + plane[1] * r + plane[2] * kv - ns) ** 2 for r, kv, ns in decodes), Fraction(0))


def _dot(a: Sequence[Fraction], b: Sequence[Fraction]) -> Fraction:
    return sum((x * y for x, y in zip(a, b, strict=True)), Fraction(0))
