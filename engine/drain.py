"""Admission without a prefix cache for requests that ignore EOS: play their decoding to its end.

Such a request is known to run to its length, and when it ends all its KV is free again. So the pool's level
at each ending can be worked out, request by request, instead of being estimated by a ratio.
"""

from collections.abc import Iterable

from engine.request import Request

__all__ = ["DrainSimulation"]

RESERVE_TOKENS = 1  # that must stay free for each request still decoding


class DrainSimulation:
    """The requests that would decode together, by the tokens each has left; one object lives for one round.

    A refused candidate stays on the list for the rest of the round, and a later one with more left than any
    other is put before the last of the list, as in SGLang.
    """

    def __init__(self, new_token_ratio: float) -> None:
        self._ratio = new_token_ratio
        self._states: list[tuple[float, int]] | None = None  # (tokens left, tokens held)

    def fits(self, candidate: Request, others: Iterable[Request], free_tokens: int) -> bool:
        """Whether `free_tokens`, which the candidate's prompt no longer counts among, last for everybody.

        `others` are the running and the admitted requests; they are looked at once a round, for the first
        candidate.
        """
        if self._states is None:
            first = (self._state(request) for request in (candidate, *others))
            self._states = sorted((state for state in first if state[0] > 0), key=_left)
        else:
            self._insert(self._state(candidate))
        freed = 0
        for ended, (left, held) in enumerate(self._states):
            decoding = len(self._states) - ended
            if free_tokens + freed - left * decoding <= RESERVE_TOKENS * decoding:
                return False
            freed += held
        return True

    def _insert(self, state: tuple[float, int]) -> None:
        assert self._states is not None
        if state[0] > 0:
            larger = (i for i, other in enumerate(self._states) if state[0] <= other[0])
            self._states.insert(next(larger, max(0, len(self._states) - 1)), state)

    def _state(self, request: Request) -> tuple[float, int]:
        ratio = 1.0 if request.sampling.ignore_eos else self._ratio
        return request.max_new_tokens * ratio - request.output_len, len(request.tokens)


def _left(state: tuple[float, int]) -> float:
    return state[0]
