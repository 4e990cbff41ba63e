"""`WaitingQueue`: requests in the order in which admission tries them."""

from collections import OrderedDict
from collections.abc import Iterable, Iterator

from engine.request import Request

__all__ = ["WaitingQueue"]


class WaitingQueue:
    """Appending, looking at the head and taking any request out cost the same however many wait."""

    def __init__(self) -> None:
        self.pending_tokens = 0  # tokens of all waiting requests, cached prefixes included
        self._requests: OrderedDict[int, Request] = OrderedDict()  # by rid

    def __len__(self) -> int:
        return len(self._requests)

    def __iter__(self) -> Iterator[Request]:
        return iter(self._requests.values())

    def __contains__(self, request: Request) -> bool:
        return request.rid in self._requests

    @property
    def head(self) -> Request:
        """The request that is tried next. There must be one."""
        return next(iter(self._requests.values()))

    def append(self, request: Request) -> None:
        """Put a request at the end."""
        self._requests[request.rid] = request
        self.pending_tokens += len(request.tokens)

    def remove(self, request: Request) -> None:
        """Take out a request that waits here."""
        del self._requests[request.rid]
        self.pending_tokens -= len(request.tokens)

    def reorder(self, requests: Iterable[Request]) -> None:
        """Put the same requests into another order."""
        self._requests = OrderedDict((request.rid, request) for request in requests)
