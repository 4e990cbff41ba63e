"""Where the arrows take a limit, twelve steps a decade from 1 ms to 100 s, and a number of decodes."""

from bisect import bisect_left, bisect_right

__all__ = ["LEAST_S", "MOST_DECODES", "MOST_S", "next_decodes", "next_limit"]

LEAST_S, MOST_S = 1e-3, 100.0
MOST_DECODES = 512

_START_S = 1.0
_E12 = (10, 12, 15, 18, 22, 27, 33, 39, 47, 56, 68, 82)
_STEPS_S = (*(step / 10 * 10.0**decade for decade in range(-3, 2) for step in _E12), MOST_S)
_DECODES = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, MOST_DECODES)


def next_decodes(decodes: int | None, steps: int) -> int | None:
    """The number so many steps above or below; below the first step it is the trace's own, None."""
    at = (-1 if decodes is None else _DECODES.index(decodes)) + steps
    return None if at < 0 else _DECODES[min(at, len(_DECODES) - 1)]


def next_limit(limit_s: float | None, steps: int, start_s: float | None) -> float | None:
    """The limit so many steps above, or below where `steps` is negative; above the last step there is none.

    No limit is followed, downwards, by the step at or below `start_s`, or by one second without it.
    """
    if limit_s is None:
        if steps > 0:
            return None
        return _STEPS_S[max(bisect_right(_STEPS_S, _START_S if start_s is None else start_s) - 1, 0)]
    if steps > 0:
        at = bisect_right(_STEPS_S, limit_s) + steps - 1
        return None if at >= len(_STEPS_S) else _STEPS_S[at]
    return _STEPS_S[max(bisect_left(_STEPS_S, limit_s) + steps, 0)]
