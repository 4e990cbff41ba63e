"""Tokens that running requests are still expected to ask of the pool, kept as sums.

A request counts `max_new_tokens` less its output, clipped. Its share is weighed by the new-token ratio, or
counts whole where it ignores EOS: such a request is known to run to its length.
"""

from collections.abc import Iterable

from engine.request import Request

__all__ = ["CLIP_MAX_NEW_TOKENS", "Reserve"]

CLIP_MAX_NEW_TOKENS = 4096  # clips the reservation, never the generation


class Reserve:
    """The sums over the requests that joined and have not left; each change costs the same however many."""

    def __init__(self, running: Iterable[Request] = ()) -> None:
        self._shares: dict[int, int] = {}  # by rid, in tokens
        self._weighed_tokens = 0  # of requests that may end early
        self._whole_tokens = 0  # of those that ignore EOS
        for request in running:
            self.join(request)

    def join(self, request: Request) -> None:
        """Count a request that starts to decode; one that is counted already stays as it is."""
        if request.rid not in self._shares:
            self._shares[request.rid] = 0
            self._set(request, _share(request))

    def leave(self, request: Request) -> None:
        """Count a request no longer: it ended or gave its KV back. Nothing happens if it was not counted."""
        if request.rid in self._shares:
            self._set(request, 0)
            del self._shares[request.rid]

    def after_token(self, request: Request) -> None:
        """Note that a request's output grew by a token; nothing happens if it is not counted."""
        share = self._shares.get(request.rid)
        if share is None or (share == CLIP_MAX_NEW_TOKENS and _share(request) == share):
            return
        self._shares[request.rid] = share - 1  # as `_set` would, at the price of one call less a row
        if request.sampling.ignore_eos:
            self._whole_tokens -= 1
        else:
            self._weighed_tokens -= 1

    def tokens(self, new_token_ratio: float) -> float:
        """Tokens expected of all requests that are counted."""
        return self._whole_tokens + self._weighed_tokens * new_token_ratio

    def of(self, request: Request, new_token_ratio: float) -> float:
        """Tokens expected of one request."""
        return _share(request) * (1.0 if request.sampling.ignore_eos else new_token_ratio)

    def _set(self, request: Request, tokens: int) -> None:
        change = tokens - self._shares[request.rid]
        self._shares[request.rid] = tokens
        if request.sampling.ignore_eos:
            self._whole_tokens += change
        else:
            self._weighed_tokens += change


def _share(request: Request) -> int:
    return min(request.max_new_tokens - request.output_len, CLIP_MAX_NEW_TOKENS)
