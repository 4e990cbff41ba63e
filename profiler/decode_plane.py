"""What a forward of decode rows alone takes, as a plane over its rows and the KV tokens that they read."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["LEAST_FORWARDS", "DecodePlane", "decode_plane"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

LEAST_FORWARDS = 8  # that a plane is fitted to
_DECIMALS = 3  # of a nanosecond; what lies beyond is of the arithmetic


@dataclass(frozen=True, slots=True)
class DecodePlane:
    """Device time = base + per_row * rows + per_kv_token * KV tokens, in ns; no slope is negative."""

    base_ns: float
    per_row_ns: float
    per_kv_token_ns: float

    def ns(self, rows: Ints, kv_tokens: Ints) -> Floats:
        """(forwards,) what forwards of so many rows and KV tokens take."""
        times = self.base_ns + self.per_row_ns * rows + self.per_kv_token_ns * kv_tokens
        return np.asarray(np.round(times, _DECIMALS), dtype=np.float64)


def decode_plane(rows: Ints, kv_tokens: Ints, device_ns: Ints) -> DecodePlane | None:
    """The plane through DECODE forwards by least squares; None of fewer than `LEAST_FORWARDS`.

    A column that is the same in all of them has no slope. Where both cannot be told apart, or a slope of both
    comes out negative, the one column that leaves less, if its own is not; else neither.
    """
    if len(rows) < LEAST_FORWARDS:
        return None
    varying = [column for column in (0, 1) if np.ptp((rows, kv_tokens)[column])]
    apart = np.linalg.matrix_rank(_matrix(rows, kv_tokens, [0, 1])) == 3
    singles = [[column] for column in varying]
    tries: tuple[list[list[int]], ...] = ([varying] if apart else [], singles, [[]])
    for choices in tries:
        fits = [_fit(rows, kv_tokens, device_ns, columns) for columns in choices]
        sound = [(left, plane) for left, plane in fits if min(plane.per_row_ns, plane.per_kv_token_ns) >= 0]
        if sound:
            return min(sound, key=lambda fit: fit[0])[1]
    return None


def _fit(rows: Ints, kv_tokens: Ints, device_ns: Ints, columns: list[int]) -> tuple[float, DecodePlane]:
    """The sum of squares that a plane over some columns leaves, and the plane."""
    matrix = _matrix(rows, kv_tokens, columns)
    found = np.linalg.lstsq(matrix, device_ns.astype(np.float64), rcond=None)[0]
    left = float(((matrix @ found - device_ns) ** 2).sum())
    slopes = dict(zip(columns, found[1:].tolist(), strict=True))
    return left, DecodePlane(float(found[0]), slopes.get(0, 0.0), slopes.get(1, 0.0))


def _matrix(rows: Ints, kv_tokens: Ints, columns: list[int]) -> Floats:
    chosen = ((rows, kv_tokens)[column] for column in columns)
    return np.column_stack([np.ones(len(rows)), *chosen]).astype(np.float64)
